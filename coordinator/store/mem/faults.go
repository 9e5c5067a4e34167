package mem

import (
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// SetFull has the store behave as etcd does with its NOSPACE alarm raised:
// until it is called with false, a Txn with a put and a grant are ErrNoSpace,
// and everything else goes on.
func (s *Store) SetFull(full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = full
}

// Backup is a copy of a store's content.
type Backup struct {
	rev, floor resource.Revision
	keys       map[string][]version
	names      []string
	changes    []change
	leases     map[record.LeaseID]time.Duration
	lastID     record.LeaseID
}

// Backup copies the content as it is now.
func (s *Store) Backup() Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sortNames()
	b := Backup{
		rev: s.rev, floor: s.floor, keys: make(map[string][]version, len(s.keys)), names: slices.Clone(s.names),
		changes: slices.Clone(s.changes), leases: make(map[record.LeaseID]time.Duration), lastID: s.lastID,
	}
	for key, versions := range s.keys {
		b.keys[key] = slices.Clone(versions)
	}
	for id, l := range s.leases {
		b.leases[id] = l.ttl
	}
	return b
}

// Restore puts a backup in the place of the content. Its leases begin anew. A
// client that has seen more than is in the backup is told so by a
// *record.WentBackError.
func (s *Store) Restore(b Backup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.leases {
		l.timer.Stop()
	}
	clear(s.leases)
	s.rev, s.floor, s.lastID = b.rev, b.floor, b.lastID
	s.names, s.fresh, s.changes = slices.Clone(b.names), nil, slices.Clone(b.changes)
	s.keys = make(map[string][]version, len(b.keys))
	for key, versions := range b.keys {
		s.keys[key] = slices.Clone(versions)
	}
	for _, id := range slices.Sorted(maps.Keys(b.leases)) {
		s.lend(id, b.leases[id])
	}
	for _, key := range s.names {
		if l := s.leases[s.live(key).Lease]; l != nil {
			l.keys[key] = struct{}{}
		}
	}
	for _, client := range s.stores {
		if client.seen > b.rev && client.wentBack == nil {
			client.wentBack = &record.WentBackError{Had: client.seen, Has: b.rev}
		}
	}
	for w := range s.watchers {
		w.pending = slices.DeleteFunc(w.pending, func(batch record.Batch) bool { return batch.Revision > b.rev })
		if w.store.wentBack != nil {
			w.push(record.Batch{Err: w.store.wentBack})
		}
	}
}

// Acknowledge ends the refusals that follow a *record.WentBackError.
func (s *Store) Acknowledge(e *record.WentBackError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e != nil && s.wentBack == e {
		s.seen, s.wentBack = 0, nil
	}
}
