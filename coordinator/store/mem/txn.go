package mem

import (
	"context"
	"slices"

	"github.com/musterd/muster/coordinator/record"
)

// Txn commits t.
func (s *Store) Txn(ctx context.Context, t record.Txn) (record.TxnResult, error) {
	if err := t.Check(s.o.MaxTxnOps); err != nil {
		return record.TxnResult{}, err
	}
	if n := t.Size(); n > maxTxnBytes {
		return record.TxnResult{}, &record.TooLargeError{Bytes: n}
	}
	if duplicateKey(t.Then) {
		return record.TxnResult{}, record.ErrDuplicateKey
	}
	if s.o.BeforeCommit != nil {
		if err := s.o.BeforeCommit(t); err != nil {
			return record.TxnResult{}, err
		}
	}
	result, err := s.commit(ctx, t)
	if err == nil && s.o.AfterCommit != nil {
		if err := s.o.AfterCommit(t, result); err != nil {
			return record.TxnResult{}, err
		}
	}
	return result, err
}

func duplicateKey(ops []record.Op) bool {
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

func (s *Store) commit(ctx context.Context, t record.Txn) (record.TxnResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return record.TxnResult{}, err
	}
	if s.full && slices.ContainsFunc(t.Then, func(o record.Op) bool { return !o.Delete }) {
		return record.TxnResult{}, record.ErrNoSpace
	}
	for i := range t.If {
		c := &t.If[i]
		kv := s.live(c.Key)
		have := kv.CreateRev
		if c.Target == record.CompareModRev {
			have = kv.ModRev
		}
		if have != c.Rev {
			return record.TxnResult{Revision: s.saw()}, nil
		}
	}
	for i := range t.Then {
		if id := t.Then[i].Lease; id != 0 && s.leases[id] == nil {
			return record.TxnResult{}, record.ErrLeaseGone
		}
	}
	s.apply(t.Then)
	return record.TxnResult{Succeeded: true, Revision: s.saw()}, nil
}

// live returns the key's present version; its revisions are 0 if there is none.
func (db *database) live(key string) record.KV {
	vs := db.keys[key]
	if len(vs) == 0 || vs[len(vs)-1].deleted {
		return record.KV{}
	}
	return vs[len(vs)-1].kv
}

// apply does the operations in one new revision, or none if nothing changes.
func (db *database) apply(ops []record.Op) {
	rev := db.rev + 1
	events := make([]record.Event, 0, len(ops))
	for i := range ops {
		o := &ops[i]
		before := db.live(o.Key)
		if o.Delete && before.ModRev == 0 {
			continue
		}
		e := record.Event{KV: record.KV{Key: o.Key, ModRev: rev}}
		if before.ModRev != 0 {
			prev := before
			e.Prev = &prev
			if l := db.leases[before.Lease]; l != nil {
				delete(l.keys, o.Key)
			}
		}
		if o.Delete {
			e.Type = record.EventDelete
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
