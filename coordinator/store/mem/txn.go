package mem

import (
	"context"
	"slices"

	"github.com/musterd/muster/coordinator/store"
)

// Txn commits t.
func (s *Store) Txn(ctx context.Context, t store.Txn) (store.TxnResult, error) {
	if err := t.Check(s.o.MaxTxnOps); err != nil {
		return store.TxnResult{}, err
	}
	if n := t.Size(); n > maxTxnBytes {
		return store.TxnResult{}, &store.TooLargeError{Bytes: n}
	}
	if duplicateKey(t.Then) {
		return store.TxnResult{}, store.ErrDuplicateKey
	}
	if s.o.BeforeCommit != nil {
		if err := s.o.BeforeCommit(t); err != nil {
			return store.TxnResult{}, err
		}
	}
	result, err := s.commit(ctx, t)
	if err == nil && s.o.AfterCommit != nil {
		if err := s.o.AfterCommit(t, result); err != nil {
			return store.TxnResult{}, err
		}
	}
	return result, err
}

func duplicateKey(ops []store.Op) bool {
	if len(ops) <= 8 {
		for i := range ops {
			for j := range i {
				if ops[i].Key == ops[j].Key {
					return true
				}
			}
		}
		return false
	}
	seen := make(map[string]struct{}, len(ops))
	for i := range ops {
		seen[ops[i].Key] = struct{}{}
	}
	return len(seen) != len(ops)
}

func (s *Store) commit(ctx context.Context, t store.Txn) (store.TxnResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return store.TxnResult{}, err
	}
	for i := range t.If {
		c := &t.If[i]
		kv := s.live(c.Key)
		have := kv.CreateRev
		if c.Target == store.CompareModRev {
			have = kv.ModRev
		}
		if have != c.Rev {
			return store.TxnResult{Revision: s.saw()}, nil
		}
	}
	for i := range t.Then {
		if id := t.Then[i].Lease; id != 0 && s.leases[id] == nil {
			return store.TxnResult{}, store.ErrLeaseGone
		}
	}
	if s.full && slices.ContainsFunc(t.Then, func(o store.Op) bool { return !o.Delete }) {
		return store.TxnResult{}, store.ErrNoSpace
	}
	s.apply(t.Then)
	return store.TxnResult{Succeeded: true, Revision: s.saw()}, nil
}

// live returns the key's present version; its revisions are 0 if there is none.
func (db *database) live(key string) store.KV {
	vs := db.keys[key]
	if len(vs) == 0 || vs[len(vs)-1].deleted {
		return store.KV{}
	}
	return vs[len(vs)-1].kv
}

// apply does the operations in one new revision, or none if nothing changes.
func (db *database) apply(ops []store.Op) {
	rev := db.rev + 1
	events := make([]store.Event, 0, len(ops))
	for i := range ops {
		o := &ops[i]
		before := db.live(o.Key)
		if o.Delete && before.ModRev == 0 {
			continue
		}
		e := store.Event{KV: store.KV{Key: o.Key, ModRev: rev}}
		if before.ModRev != 0 {
			prev := before
			e.Prev = &prev
			if l := db.leases[before.Lease]; l != nil {
				delete(l.keys, o.Key)
			}
		}
		if o.Delete {
			e.Type = store.EventDelete
		} else {
			e.KV.Value = append([]byte{}, o.Value...)
			e.KV.CreateRev = before.CreateRev
			if before.ModRev == 0 {
				e.KV.CreateRev = rev
			}
			e.KV.Lease = o.Lease
			if l := db.leases[o.Lease]; l != nil {
				l.keys[o.Key] = struct{}{}
			}
		}
		versions, known := db.keys[o.Key]
		if !known {
			db.fresh = append(db.fresh, o.Key)
		}
		db.keys[o.Key] = append(versions, version{kv: e.KV, deleted: o.Delete})
		events = append(events, e)
	}
	if len(events) == 0 {
		return
	}
	db.rev = rev
	done := change{rev: rev, events: events}
	db.changes = append(db.changes, done)
	for w := range db.watchers {
		w.see(done)
	}
}
