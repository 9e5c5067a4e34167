package mem

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
)

// Grant makes a lease.
func (s *Store) Grant(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	if ttl <= 0 {
		return store.Lease{}, fmt.Errorf("grant a lease of %v: want a positive time", ttl)
	}
	ttl = (ttl + time.Second - 1).Truncate(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return store.Lease{}, err
	}
	if s.full {
		return store.Lease{}, record.ErrNoSpace
	}
	s.lastID++
	s.lend(s.lastID, ttl)
	return store.Lease{ID: s.lastID, TTL: ttl}, nil
}

// lend starts a lease without keys.
func (db *database) lend(id record.LeaseID, ttl time.Duration) *lease {
	l := &lease{
		ttl:  ttl,
		ends: time.Now().Add(ttl),
		keys: make(map[string]struct{}),
	}
	l.timer = time.AfterFunc(ttl, func() { db.expire(id) })
	db.leases[id] = l
	return l
}

// KeepAlive starts the lease's time anew.
func (s *Store) KeepAlive(ctx context.Context, id record.LeaseID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	l := s.leases[id]
	if l == nil {
		return record.ErrLeaseGone
	}
	l.ends = time.Now().Add(l.ttl)
	l.timer.Reset(l.ttl)
	return nil
}

// Revoke ends the lease and deletes its keys.
func (s *Store) Revoke(ctx context.Context, id record.LeaseID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	if s.leases[id] == nil {
		return record.ErrLeaseGone
	}
	s.end(id)
	return nil
}

// expire runs when a lease's timer fires, which may be just before a KeepAlive
// that set it anew got the lock.
func (db *database) expire(id record.LeaseID) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if l := db.leases[id]; l != nil && !db.over && !time.Now().Before(l.ends) {
		db.end(id)
	}
}

func (db *database) end(id record.LeaseID) {
	l := db.leases[id]
	l.timer.Stop()
	var ops []record.Op
	for _, key := range slices.Sorted(maps.Keys(l.keys)) {
		ops = append(ops, record.Delete(key))
	}
	db.apply(ops)
	delete(db.leases, id)
}
