package mem

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

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
	s.lastID++
	id := s.lastID
	s.leases[id] = &lease{
		ttl:   ttl,
		ends:  time.Now().Add(ttl),
		timer: time.AfterFunc(ttl, func() { s.expire(id) }),
		keys:  make(map[string]struct{}),
	}
	return store.Lease{ID: id, TTL: ttl}, nil
}

// KeepAlive starts the lease's time anew.
func (s *Store) KeepAlive(ctx context.Context, id store.LeaseID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	l := s.leases[id]
	if l == nil {
		return store.ErrLeaseGone
	}
	l.ends = time.Now().Add(l.ttl)
	l.timer.Reset(l.ttl)
	return nil
}

// Revoke ends the lease and deletes its keys.
func (s *Store) Revoke(ctx context.Context, id store.LeaseID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	if s.leases[id] == nil {
		return store.ErrLeaseGone
	}
	s.end(id)
	return nil
}

// expire runs when a lease's timer fires, which may be just before a KeepAlive
// that set it anew got the lock.
func (s *Store) expire(id store.LeaseID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[id]; l != nil && !s.isClosed() && !time.Now().Before(l.ends) {
		s.end(id)
	}
}

func (s *Store) end(id store.LeaseID) {
	l := s.leases[id]
	l.timer.Stop()
	var ops []store.Op
	for _, key := range slices.Sorted(maps.Keys(l.keys)) {
		ops = append(ops, store.Delete(key))
	}
	s.apply(ops)
	delete(s.leases, id)
}
