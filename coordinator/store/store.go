// Package store is the coordinator's view of its only durable state: the keys
// and records of PROTOCOL.md section 1, the small interface that a store must
// offer, and the leader's election built on that interface.
//
// It decides how state is written down and what an answer of the store means
// (done, refused, unknown). It does not decide what to write: transactions are
// coordinator/txn's, order is coordinator/queue's, limits are
// coordinator/quota's. Implementations: store/etcd (external or embedded) and
// store/mem (tests); store/storetest is the contract that all of them pass.
package store

import (
	"context"
	"time"

	"github.com/musterd/muster/resource"
)

// LeaseID names a lease; 0 is no lease.
type LeaseID int64

// Lease is a time to live that keys can be attached to. When it ends, all its
// keys are deleted in one revision.
type Lease struct {
	ID LeaseID
	// TTL is what the store granted: whole seconds, never less than asked.
	TTL time.Duration
}

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
}

// Put writes a key without a lease; a lease the key had is detached. The store
// does not keep value after the Txn has returned.
func Put(key string, value []byte) Op { return Op{Key: key, Value: value} }

// PutLeased writes a key that lives no longer than the lease.
func PutLeased(key string, value []byte, lease LeaseID) Op {
	return Op{Key: key, Value: value, Lease: lease}
}

// Delete removes a key; one that is absent already is not an error.
func Delete(key string) Op { return Op{Key: key, Delete: true} }

// Txn is all or nothing: Then is done if every Compare of If holds, in one
// revision. A key may be written at most once. The number of operations, which
// is the larger of len(If) and len(Then), is bounded by Store.MaxTxnOps.
type Txn struct {
	If   []Compare
	Then []Op
}

// Ops is the number that counts against MaxTxnOps.
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

// RangeOptions narrow a Range. The zero value reads everything now.
type RangeOptions struct {
	// AtRevision reads the past; 0 is now. Below the floor it is a
	// *CompactedError, above the newest revision ErrFutureRevision.
	AtRevision resource.Revision
	// Limit is the most keys returned; 0 is no limit.
	Limit int
	// StartAfter skips keys up to and including it.
	StartAfter string
}

// EventType says what happened to a key.
type EventType uint8

// The event types.
const (
	EventPut EventType = iota
	EventDelete
)

// Event is one key's change. KV of a delete has the key and, as ModRev, the
// revision of the delete; nothing else.
type Event struct {
	Type EventType
	KV   KV
	// Prev is the key before the change, with WatchOptions.Prev; nil if it
	// did not exist or its revision has been compacted.
	Prev *KV
}

// Batch is all the events below a watched prefix of exactly one revision, in
// the store's order. Without events it is progress: nothing below the prefix
// up to Revision is outstanding.
type Batch struct {
	Revision resource.Revision
	Events   []Event
	// Err is set in the last batch of a watch that cannot go on, e.g. a
	// *CompactedError. Such a batch has neither revision nor events.
	Err error
}

// WatchOptions say where a watch begins.
type WatchOptions struct {
	// From is the first revision wanted, at least 1. Read at R, then watch
	// from R+1, and nothing is missed or doubled.
	From resource.Revision
	// Prev asks for Event.Prev.
	Prev bool
}

// KVStore reads and writes. All reads are linearizable: they see every Txn
// that was acknowledged before they began.
type KVStore interface {
	// Txn commits t or refuses it. An error is either definite, and then
	// nothing was and will be written (*TooManyOpsError, *TooLargeError,
	// ErrLeaseGone, ErrDuplicateKey, …), or it wraps ErrUnknownOutcome, and
	// then t may have landed or may yet; one that also wraps ErrWentBack
	// landed, if it did, in the restored store. The implementation never
	// repeats a Txn by itself.
	Txn(ctx context.Context, t Txn) (TxnResult, error)
	// Get reads one key. The revision is that of the store at the read.
	Get(ctx context.Context, key string) (kv KV, found bool, rev resource.Revision, err error)
	// Range reads all keys that begin with prefix, ascending, as of one
	// revision, which it returns. Large ranges are paged internally.
	Range(ctx context.Context, prefix string, o RangeOptions) ([]KV, resource.Revision, error)
}

// Watcher follows changes.
type Watcher interface {
	// Watch delivers every revision that touches the prefix, in order, from
	// o.From on, over any loss of connection. The channel closes when ctx
	// ends, when the store is closed, or after a batch with Err: a
	// *CompactedError or a *WentBackError, after which the receiver reads anew
	// and watches from there. Watch does not block; its goroutine waits while
	// the receiver is slow.
	Watch(ctx context.Context, prefix string, o WatchOptions) <-chan Batch
}

// Leaser gives out leases.
type Leaser interface {
	// Grant makes a lease. ttl is rounded up to whole seconds.
	Grant(ctx context.Context, ttl time.Duration) (Lease, error)
	// KeepAlive starts the lease's time anew, once. ErrLeaseGone if it has
	// ended.
	KeepAlive(ctx context.Context, id LeaseID) error
	// Revoke ends the lease and deletes its keys. ErrLeaseGone if it has
	// ended already.
	Revoke(ctx context.Context, id LeaseID) error
}

// Store is all of it. Methods may be called from any goroutine and block no
// longer than their ctx: while the store cannot be reached or has no majority,
// reads, grants and renewals are tried again until then. After Close calls
// return ErrClosed.
type Store interface {
	KVStore
	Watcher
	Leaser
	// Acknowledge ends the refusals that follow a *WentBackError. Its caller
	// has dropped everything that was read from the store before and has ended
	// every term of leadership. An error that is not the present one, e.g. an
	// earlier one, changes nothing.
	Acknowledge(*WentBackError)
	// Compact forgets what is older than rev, which stays readable. At or
	// below the present floor it is a *CompactedError.
	Compact(ctx context.Context, rev resource.Revision) error
	// MaxTxnOps is the most operations of one Txn, as found at start.
	MaxTxnOps() int
	// Close ends all watches and frees the store. It may block for the time
	// that a clean stop takes.
	Close() error
}
