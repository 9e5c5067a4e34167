package invariant

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/quota/quotajson"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// Batch is what one revision of the store changes.
type Batch struct {
	Revision resource.Revision
	At       time.Time // when the harness saw it, for Messages
	Changes  []Change
}

// Change is one key that was written or deleted: one of the types below.
type Change interface{ apply(*Checker) }

type (
	// Record is a transaction's record; nil where it was deleted.
	Record struct {
		Tx  resource.TxID
		New *store.TxRecord
	}
	// Unit is a unit's record; nil where it was deleted.
	Unit struct {
		Path store.UnitPath
		New  *store.UnitRecord
	}
	// Order is a place in the order, by its key.
	Order struct {
		Key  string
		Path store.UnitPath
		UID  resource.UnitUID
		Gone bool
	}
	// Index is an entry of a node's index of transactions.
	Index struct {
		Node resource.NodeID
		Tx   resource.TxID
		Gone bool
	}
	// Identity is a node's identity; nil where it was deleted.
	Identity struct {
		Node resource.NodeID
		New  *store.NodeIdentity
	}
	// Candidate is a candidate's key. The oldest leads.
	Candidate struct {
		Key   string
		Epoch resource.Epoch // the revision that created the key
		Gone  bool
	}
	// Quota is a resource quota without scopes; Hard is nil where it was deleted.
	Quota struct {
		Namespace, Name string
		Hard            resource.Vector
	}
	// Tree is a quota tree; nil where it was deleted.
	Tree struct {
		Name string
		New  *quota.TreeSpec
	}
	// Job is a job's record by "namespace/name"; nil where it was deleted.
	Job struct {
		Name string
		New  *store.JobRecord
	}
)

// KeyError is a key whose value cannot be read.
type KeyError struct {
	Key string
	Err error
}

// Error implements error.
func (e *KeyError) Error() string { return fmt.Sprintf("%s: %v", e.Key, e.Err) }

// Unwrap returns what is wrong.
func (e *KeyError) Unwrap() error { return e.Err }

// Decode reads what a store says of one revision. A key that cannot be read is
// no change, but for an identity, which counts as deleted; the errors are those
// keys.
func Decode(b store.Batch) (Batch, []*KeyError) {
	out := Batch{Revision: b.Revision}
	var failed []*KeyError
	for _, e := range b.Events {
		change, err := decode(e)
		if err != nil {
			failed = append(failed, &KeyError{e.KV.Key, err})
		}
		if change != nil {
			out.Changes = append(out.Changes, change)
		}
	}
	return out, failed
}

// DecodeState reads a store's content at one revision, as one batch.
func DecodeState(kvs []store.KV, revision resource.Revision) (Batch, []*KeyError) {
	b := store.Batch{Revision: revision}
	for _, kv := range kvs {
		b.Events = append(b.Events, store.Event{Type: store.EventPut, KV: kv})
	}
	return Decode(b)
}

// value decodes an event's value; nil where the key was deleted.
func value[R store.Record](e store.Event) (*R, error) {
	if e.Type == store.EventDelete {
		return nil, nil
	}
	r, err := store.Decode[R](e.KV.Key, e.KV.Value)
	return &r, err
}

func decode(e store.Event) (Change, error) {
	key, gone := e.KV.Key, e.Type == store.EventDelete
	switch {
	case strings.HasPrefix(key, store.TxPrefix):
		tx, err := store.ParseTxKey(key)
		r, wrong := value[store.TxRecord](e)
		return unless(errors.Join(err, wrong), Record{tx, r})
	case strings.HasPrefix(key, store.UnitsPrefix):
		path, err := store.ParseUnitKey(key)
		r, wrong := value[store.UnitRecord](e)
		return unless(errors.Join(err, wrong), Unit{path, r})
	case strings.HasPrefix(key, store.OrderPrefix):
		place, err := store.ParseOrderKey(key)
		r, wrong := value[store.OrderRecord](e)
		o := Order{Key: key, Path: place.Unit, Gone: gone}
		if wrong == nil && r != nil {
			o.UID = r.UnitUID
		}
		return unless(errors.Join(err, wrong), o)
	case strings.HasPrefix(key, store.JobsPrefix):
		namespace, name, err := store.ParseJobKey(key)
		r, wrong := value[store.JobRecord](e)
		return unless(errors.Join(err, wrong), Job{namespace + "/" + name, r})
	case strings.HasPrefix(key, store.LeaderPrefix):
		return Candidate{key, resource.Epoch(e.KV.CreateRev), gone}, nil
	case strings.HasPrefix(key, store.NodesPrefix):
		return decodeNode(e)
	case strings.HasPrefix(key, store.QuotaPrefix):
		return decodeQuota(e)
	}
	return nil, nil
}

func unless(err error, c Change) (Change, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

func decodeNode(e store.Event) (Change, error) {
	key, err := store.ParseNodeKey(e.KV.Key)
	switch {
	case err != nil:
		return nil, err
	case key.Part == store.NodeTxPart:
		return Index{key.ID, key.Tx, e.Type == store.EventDelete}, nil
	case key.Part == store.NodeIdentityPart:
		identity, err := value[store.NodeIdentity](e)
		if err != nil {
			identity = nil
		}
		return Identity{key.ID, identity}, err
	}
	return nil, nil
}

func decodeQuota(e store.Event) (Change, error) {
	key, err := store.ParseQuotaKey(e.KV.Key)
	if err != nil || key.Kind != store.QuotaTrees && key.Kind != store.QuotaResources {
		return nil, err
	}
	record, err := value[store.QuotaRecord](e)
	switch {
	case err != nil:
		return nil, err
	case record == nil && key.Kind == store.QuotaTrees:
		return Tree{Name: key.Name}, nil
	case record == nil:
		return Quota{Namespace: key.Namespace, Name: key.Name}, nil
	case key.Kind == store.QuotaTrees:
		spec, err := quotajson.Tree(record.Document, quotajson.Natural)
		return unless(err, Tree{key.Name, &spec})
	}
	var document api.ResourceQuota
	if err := json.Unmarshal(record.Document, &document); err != nil {
		return nil, err
	}
	if len(document.Spec.Scopes) > 0 || document.Spec.ScopeSelector != nil {
		return nil, nil // it counts some of the namespace's units, which no record says
	}
	q := Quota{Namespace: key.Namespace, Name: key.Name, Hard: resource.Vector{}}
	for name, text := range document.Spec.Hard {
		amount, wrong := api.ParseAmount(name, text)
		err, q.Hard[name] = errors.Join(err, wrong), amount
	}
	return unless(err, q)
}
