package record

import (
	"fmt"

	"github.com/musterd/muster/resource"
)

// LeaseID names a lease; 0 is no lease.
type LeaseID int64

// KV is one key as of some revision. Value must not be modified.
type KV struct {
	Key       string
	Value     []byte
	CreateRev resource.Revision // of the Txn that created the key
	ModRev    resource.Revision // of the Txn that last wrote it
	Lease     LeaseID
}

// Compare is one condition of a Txn. Build it with Absent, ModRevIs or
// CreateRevIs; the zero value compares nothing and is refused.
type Compare struct {
	Key    string
	Target CompareTarget
	Rev    resource.Revision
}

// CompareTarget is what a Compare looks at.
type CompareTarget uint8

// The targets. An absent key has revision 0 for both.
const (
	CompareNothing CompareTarget = iota
	CompareCreateRev
	CompareModRev
)

// Absent holds while the key does not exist.
func Absent(key string) Compare { return Compare{Key: key, Target: CompareCreateRev} }

// ModRevIs holds while the key was last written at rev; 0 means absent.
func ModRevIs(key string, rev resource.Revision) Compare {
	return Compare{Key: key, Target: CompareModRev, Rev: rev}
}

// CreateRevIs holds while the key is the one created at rev; 0 means absent.
func CreateRevIs(key string, rev resource.Revision) Compare {
	return Compare{Key: key, Target: CompareCreateRev, Rev: rev}
}

// Op is one write of a Txn: Put, PutLeased or Delete.
type Op struct {
	Key    string
	Value  []byte
	Lease  LeaseID
	Delete bool
	// Of points to the record that Value encodes, nil where the writer does not keep
	// it: a reader in the same process then need not decode Value. Nobody changes the
	// record, and no store looks at it.
	Of any
}

// Put writes a key without a lease; a lease the key had is detached. The store
// does not keep value after the Txn has returned.
func Put(key string, value []byte) Op { return Op{Key: key, Value: value} }

// PutRecord is Put of a record, which the caller changes no more, nor anything that
// it points to.
func PutRecord[R Type](key string, r R) (Op, error) {
	value, err := Encode(r)
	return Op{Key: key, Value: value, Of: &r}, err
}

// MustPutRecord is PutRecord for a record that its caller has made whole, as MustEncode.
func MustPutRecord[R Type](key string, r R) Op {
	return Op{Key: key, Value: MustEncode(r), Of: &r}
}

// PutLeased writes a key that lives no longer than the lease.
func PutLeased(key string, value []byte, lease LeaseID) Op {
	return Op{Key: key, Value: value, Lease: lease}
}

// Delete removes a key; one that is absent already is not an error.
func Delete(key string) Op { return Op{Key: key, Delete: true} }

// Txn is all or nothing: Then is done if every Compare of If holds, in one
// revision. A key may be written at most once. The number of operations, which
// is the larger of len(If) and len(Then), is bounded by the store.
type Txn struct {
	If   []Compare
	Then []Op
}

// Ops is the number that counts against the store's bound.
func (t Txn) Ops() int { return max(len(t.If), len(t.Then)) }

// TxnResult is a definite outcome.
type TxnResult struct {
	// Succeeded: all compares held and Then is done. Otherwise nothing was
	// written; which compare failed is not known.
	Succeeded bool
	// Revision is the Txn's own if it changed anything, else the store's
	// current one.
	Revision resource.Revision
}

// Size is the number of bytes of all keys and values.
func (t Txn) Size() int {
	n := 0
	for i := range t.If {
		n += len(t.If[i].Key)
	}
	for i := range t.Then {
		n += len(t.Then[i].Key) + len(t.Then[i].Value)
	}
	return n
}

// Check refuses, before anything is sent, what no store takes: more than limit
// operations, an empty key, a compare of nothing, a delete with a value.
func (t Txn) Check(limit int) error {
	if n := t.Ops(); n > limit {
		return &TooManyOpsError{Ops: n, Limit: limit}
	}
	for i := range t.If {
		c := &t.If[i]
		if c.Key == "" || c.Rev < 0 || c.Target == CompareNothing || c.Target > CompareModRev {
			return fmt.Errorf("transaction: compare %d of key %q with revision %d: use Absent, ModRevIs or CreateRevIs", i, c.Key, c.Rev)
		}
	}
	for i := range t.Then {
		o := &t.Then[i]
		if o.Key == "" || o.Delete && (o.Value != nil || o.Lease != 0) {
			return fmt.Errorf("transaction: operation %d on key %q: use Put, PutLeased or Delete", i, o.Key)
		}
	}
	return nil
}
