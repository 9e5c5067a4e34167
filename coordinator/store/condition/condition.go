// Package condition knows from the answers to a coordinator's own calls whether the
// store takes writes and whether the store answers, and lets deletions
// through to a store without space. The requests to the store, the time of a wait and
// the answers to clients are decided elsewhere.
package condition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

const (
	// Slow is the time without an answer after which the store counts as silent.
	Slow = 2 * time.Second
	// Late is the time of an answer after which the store counts as slow: several calls of
	// a request may take longer than a client waits.
	Late = 500 * time.Millisecond
	// kept is how long the last call without a timely answer counts.
	kept = 5 * time.Second
	// probeEvery is the least time between two probes.
	probeEvery = 2 * time.Second
)

// SilentError is the fault of a store with no answers, or late ones.
type SilentError struct {
	For time.Duration // the wait for an answer
}

// Error names the time.
func (e *SilentError) Error() string {
	return fmt.Sprintf("the store (etcd) has not answered for %.1f s", e.For.Seconds())
}

// LateError is the fault of a store with slow answers.
type LateError struct {
	For time.Duration // the time of an answer
}

// Error names the time.
func (e *LateError) Error() string {
	return fmt.Sprintf("the store (etcd) is slow: an answer takes %.1f s", e.For.Seconds())
}

// Store is a store with its condition. Many goroutines may use a Store.
type Store struct {
	store.Store
	log *slog.Logger

	mu       sync.Mutex
	last     uint64
	begun    map[uint64]time.Time // the calls under way
	waiting  time.Time            // the begin of the first call since the last answer; or zero
	failedAt time.Time            // the end of the last call without an answer
	late     time.Duration        // of the last answer after Late or longer
	lateAt   time.Time            // the end of this call; zero after an answer in time
	refusal  error                // of the last write: record.ErrNoSpace, record.ErrReadOnly or nil
	probed   time.Time
}

// Observe returns s with its condition. A nil logger discards.
func Observe(s store.Store, log *slog.Logger) *Store {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Store{Store: s, log: log, begun: map[uint64]time.Time{}}
}

// Fault is the present fault of the store, by the answers until now: nil,
// record.ErrNoSpace, record.ErrReadOnly or a *SilentError.
func (s *Store) Fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if longest := s.longest(); longest >= Slow {
		return &SilentError{For: longest}
	}
	return s.refusal
}

// Late is Fault, or a *LateError where there is no fault and an answer takes Late or longer.
func (s *Store) Late() error {
	if err := s.Fault(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if longest := s.longest(); longest >= Late {
		return &LateError{For: longest}
	}
	return nil
}

// longest is the time of the longest wait for an answer, of those that count now.
func (s *Store) longest() (longest time.Duration) {
	now := time.Now()
	for _, began := range s.begun {
		longest = max(longest, now.Sub(began))
	}
	if !s.waiting.IsZero() && (len(s.begun) > 0 || now.Sub(s.failedAt) < kept) {
		longest = max(longest, now.Sub(s.waiting))
	}
	if longest < Slow && !s.lateAt.IsZero() && now.Sub(s.lateAt) < kept {
		longest = max(longest, s.late)
	}
	return longest
}

// Look is Fault after a probe: a coordinator without writes learns no fault of the store
// from its own calls, and not that a fault is over.
func (s *Store) Look(ctx context.Context) error {
	s.mu.Lock()
	probe := time.Since(s.probed) >= probeEvery
	if probe {
		s.probed = time.Now()
	}
	s.mu.Unlock()
	if probe {
		ctx, cancel := context.WithTimeout(ctx, Slow+Slow/10)
		defer cancel()
		// The compare never holds, so no key is written. A store without space refuses the put first.
		never := record.CreateRevIs(record.Root+"probe", math.MaxInt64)
		_, _ = s.Txn(ctx, record.Txn{If: []record.Compare{never}, Then: []record.Op{record.Put(record.Root+"probe", nil)}})
	}
	return s.Fault()
}

// begin notes that a call is under way.
func (s *Store) begin() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	now := time.Now()
	s.begun[s.last] = now
	if s.waiting.IsZero() {
		s.waiting = now
	}
	return s.last
}

// end notes the end of a call, with a write or without, and returns err.
func (s *Store) end(call uint64, writes bool, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	took := now.Sub(s.begun[call])
	delete(s.begun, call)
	switch {
	case errors.Is(err, record.ErrUnknownOutcome), errors.Is(err, context.DeadlineExceeded):
		s.failedAt = now
	case errors.Is(err, context.Canceled):
		if len(s.begun) == 0 {
			s.waiting = time.Time{}
		}
	case took >= Late:
		s.waiting, s.late, s.lateAt = time.Time{}, took, now
	default:
		s.waiting, s.lateAt = time.Time{}, time.Time{}
	}
	switch {
	case errors.Is(err, record.ErrNoSpace):
		s.refusal = record.ErrNoSpace
	case errors.Is(err, record.ErrReadOnly):
		s.refusal = record.ErrReadOnly
	case writes && err == nil:
		s.refusal = nil
	}
	return err
}

// Txn implements store.KVStore. Where the store has no space for the entry of the
// audit beside deletions, the deletions go without the entry, a line in the log then.
func (s *Store) Txn(ctx context.Context, t record.Txn) (result record.TxnResult, err error) {
	for entries := []record.Op(nil); ; {
		call := s.begin()
		result, err = s.Store.Txn(ctx, t)
		_ = s.end(call, slices.ContainsFunc(t.Then, isPut), err)
		deletions, beside, pure := withoutAudit(t.Then)
		if entries != nil || !errors.Is(err, record.ErrNoSpace) || !pure || len(beside) == 0 || len(deletions) == 0 {
			if err == nil && result.Succeeded {
				s.note(entries)
			}
			return result, err
		}
		t.Then, entries = deletions, beside
	}
}

func isPut(o record.Op) bool { return !o.Delete }

// withoutAudit parts the operations of a Txn; pure: all but the entries of the audit
// are deletions.
func withoutAudit(ops []record.Op) (deletions, entries []record.Op, pure bool) {
	for _, o := range ops {
		switch {
		case o.Delete:
			deletions = append(deletions, o)
		case strings.HasPrefix(o.Key, record.AuditPrefix):
			entries = append(entries, o)
		default:
			return nil, nil, false
		}
	}
	return deletions, entries, true
}

// note logs entries of the audit for which the store has no space.
func (s *Store) note(entries []record.Op) {
	for _, o := range entries {
		a, err := record.Decode[record.Audit](o.Key, o.Value)
		if err != nil {
			continue // not of this version
		}
		s.log.Warn("audit_left_out", "person", a.Person, "verb", a.Verb, "kind", a.Kind, "namespace", a.Namespace, "name", a.Name,
			"token", a.Token, "request_id", a.RequestID, "address", a.Address, "error", record.ErrNoSpace)
	}
}

// Get implements store.KVStore.
func (s *Store) Get(ctx context.Context, key string) (record.KV, bool, resource.Revision, error) {
	call := s.begin()
	kv, found, rev, err := s.Store.Get(ctx, key)
	return kv, found, rev, s.end(call, false, err)
}

// Grant implements store.Leaser.
func (s *Store) Grant(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	call := s.begin()
	lease, err := s.Store.Grant(ctx, ttl)
	return lease, s.end(call, true, err)
}

// KeepAlive implements store.Leaser.
func (s *Store) KeepAlive(ctx context.Context, id record.LeaseID) error {
	call := s.begin()
	return s.end(call, false, s.Store.KeepAlive(ctx, id))
}
