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
	"github.com/musterd/muster/coordinator/record"
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
		New *record.Tx
	}
	// Unit is a unit's record; nil where it was deleted.
	Unit struct {
		Path record.UnitPath
		New  *record.Unit
	}
	// Order is a place in the order, by its key.
	Order struct {
		Key  string
		Path record.UnitPath
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
		New  *record.NodeIdentity
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
	// Mode is the mode of the quota trees.
	Mode struct{ Maintenance bool }
	// Job is a job's record by "namespace/name"; nil where it was deleted.
	Job struct {
		Name string
		New  *record.Job
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
func Decode(b record.Batch) (Batch, []*KeyError) {
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
func DecodeState(kvs []record.KV, revision resource.Revision) (Batch, []*KeyError) {
	b := record.Batch{Revision: revision}
	for _, kv := range kvs {
		b.Events = append(b.Events, record.Event{Type: record.EventPut, KV: kv})
	}
	return Decode(b)
}

// value decodes an event's value; nil where the key was deleted.
func value[R record.Type](e record.Event) (*R, error) {
	if e.Type == record.EventDelete {
		return nil, nil
	}
	r, err := record.Decode[R](e.KV.Key, e.KV.Value)
	return &r, err
}

func decode(e record.Event) (Change, error) {
	key, gone := e.KV.Key, e.Type == record.EventDelete
	switch {
	case strings.HasPrefix(key, record.TxPrefix):
		tx, err := record.ParseTxKey(key)
		r, wrong := value[record.Tx](e)
		return unless(errors.Join(err, wrong), Record{tx, r})
	case strings.HasPrefix(key, record.UnitsPrefix):
		path, err := record.ParseUnitKey(key)
		r, wrong := value[record.Unit](e)
		return unless(errors.Join(err, wrong), Unit{path, r})
	case strings.HasPrefix(key, record.OrderPrefix):
		place, err := record.ParseOrderKey(key)
		r, wrong := value[record.Order](e)
		o := Order{Key: key, Path: place.Unit, Gone: gone}
		if wrong == nil && r != nil {
			o.UID = r.UnitUID
		}
		return unless(errors.Join(err, wrong), o)
	case strings.HasPrefix(key, record.JobsPrefix):
		namespace, name, err := record.ParseJobKey(key)
		r, wrong := value[record.Job](e)
		return unless(errors.Join(err, wrong), Job{namespace + "/" + name, r})
	case strings.HasPrefix(key, record.LeaderPrefix):
		return Candidate{key, resource.Epoch(e.KV.CreateRev), gone}, nil
	case strings.HasPrefix(key, record.NodesPrefix):
		return decodeNode(e)
	case strings.HasPrefix(key, record.QuotaPrefix):
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

func decodeNode(e record.Event) (Change, error) {
	key, err := record.ParseNodeKey(e.KV.Key)
	switch {
	case err != nil:
		return nil, err
	case key.Part == record.NodeTxPart:
		return Index{key.ID, key.Tx, e.Type == record.EventDelete}, nil
	case key.Part == record.NodeIdentityPart:
		identity, err := value[record.NodeIdentity](e)
		if err != nil {
			identity = nil
		}
		return Identity{key.ID, identity}, err
	}
	return nil, nil
}

func decodeQuota(e record.Event) (Change, error) {
	key, err := record.ParseQuotaKey(e.KV.Key)
	if err == nil && key.Kind == record.QuotaModes {
		m, err := value[record.QuotaMode](e)
		return unless(err, Mode{err == nil && m != nil && m.Maintenance})
	}
	if err != nil || key.Kind != record.QuotaTrees && key.Kind != record.QuotaResources {
		return nil, err
	}
	kept, err := value[record.Quota](e)
	switch {
	case err != nil:
		return nil, err
	case kept == nil && key.Kind == record.QuotaTrees:
		return Tree{Name: key.Name}, nil
	case kept == nil:
		return Quota{Namespace: key.Namespace, Name: key.Name}, nil
	case key.Kind == record.QuotaTrees:
		spec, err := quotajson.Tree(kept.Document, quotajson.Natural)
		return unless(err, Tree{key.Name, &spec})
	}
	var document api.ResourceQuota
	if err := json.Unmarshal(kept.Document, &document); err != nil {
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
