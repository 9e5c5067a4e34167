package rig

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/test/invariant"
)

// audit follows the store and tells the checker of the invariants of each
// revision, and of what leaders and agents say (facts.go).
type audit struct {
	t      testing.TB
	limits map[string]lead.Namespace
	cancel context.CancelFunc
	ended  chan struct{}

	mu       sync.Mutex
	checker  *invariant.Checker
	aborted  int // ABORTED records ever written
	restarts restarts
	cards    cards
}

func startAudit(t testing.TB, s *mem.Store, limits map[string]lead.Namespace) *audit {
	ctx, cancel := context.WithCancel(context.Background())
	a := &audit{t: t, limits: limits, cancel: cancel, ended: make(chan struct{}), restarts: restarts{}, cards: cards{}}
	a.begin()
	s = s.Connect(mem.Options{})
	batches := s.Watch(ctx, record.Root, store.WatchOptions{From: 1})
	go func() {
		defer close(a.ended)
		for {
			b, open := <-batches
			if !open {
				return
			}
			var back *record.WentBackError
			if errors.As(b.Err, &back) { // what is acknowledged is lost, as the test wants it
				s.Acknowledge(back)
				a.begin()
				a.expectAdoptions()
				batches = s.Watch(ctx, record.Root, store.WatchOptions{From: 1})
				continue
			}
			if b.Err != nil {
				a.t.Errorf("the audit fell behind: %v", b.Err)
				return
			}
			a.follow(b)
		}
	}()
	return a
}

// begin knows of nothing yet but how hosts have restarted, and their cards.
func (a *audit) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.aborted = 0
	a.checker = invariant.New(invariant.Rig())
	for namespace, limits := range a.limits {
		a.checker.Limit(namespace, limits.Hard)
	}
	for node, at := range a.restarts {
		a.checker.Restarted(node, at)
	}
	for node, uuids := range a.cards {
		a.checker.Cards(node, slices.Collect(maps.Keys(uuids))...)
	}
}

// expectAdoptions follows a restore: an operator may adopt what agents hold.
func (a *audit) expectAdoptions() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checker.ExpectAdoptions()
}

// stop ends the audit.
func (a *audit) stop() {
	a.cancel()
	<-a.ended
}

// follow takes a revision.
func (a *audit) follow(b record.Batch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	batch, failed := invariant.Decode(b)
	for _, err := range failed {
		// Of units and nodes some tests want to see what becomes of it.
		if strings.HasPrefix(err.Key, record.TxPrefix) || strings.HasPrefix(err.Key, record.QuotaPrefix) {
			a.t.Error(err)
		}
	}
	for _, change := range batch.Changes {
		if r, is := change.(invariant.Record); is && r.New != nil && r.New.State == grant.RecordAborted {
			a.aborted++
		}
	}
	batch.At = time.Now()
	a.report(a.checker.Apply(batch))
}

// report fails the test; mu is held.
func (a *audit) report(violations []invariant.Violation) {
	for _, v := range violations {
		a.t.Error(v)
	}
}
