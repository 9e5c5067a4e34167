package cluster

import (
	"context"
	"slices"
	"sync"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

// Witness follows the store from its first revision, and holds each revision
// against the invariants that records alone can break (test/invariant).
type Witness struct {
	ended chan struct{} // closed once it follows no more

	mu       sync.Mutex
	checker  *invariant.Checker
	counts   Counts
	problems []string
}

// Counts are what a witness has seen.
type Counts struct {
	Committed, Released, Evicted, Aborted, Elections int
}

// worst bounds how many problems are kept: the first ones tell.
const worst = 20

func newWitness() *Witness {
	return &Witness{ended: make(chan struct{}), checker: invariant.New(invariant.Cluster())}
}

func startWitness(c *Cluster) *Witness {
	ctx, cancel := context.WithCancel(context.Background())
	w := newWitness()
	batches := c.Store.Watch(ctx, record.Root, store.WatchOptions{From: 1})
	go func() {
		defer close(w.ended)
		for b := range batches {
			w.mu.Lock()
			w.follow(b)
			w.mu.Unlock()
		}
	}()
	c.t.Cleanup(func() {
		cancel()
		<-w.ended
		for _, p := range w.Problems() {
			c.t.Error(p)
		}
	})
	return w
}

// Problems are what it found to be wrong.
func (w *Witness) Problems() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.problems)
}

// Counts returns what it has seen so far.
func (w *Witness) Counts() Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts
}

// Revision is the last revision that it has seen.
func (w *Witness) Revision() resource.Revision {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.checker.Revision()
}

func (w *Witness) report(problem string) {
	if len(w.problems) < worst {
		w.problems = append(w.problems, problem)
	}
}

// follow takes a revision; mu is held.
func (w *Witness) follow(b record.Batch) {
	if b.Err != nil {
		w.report("the witness cannot go on: " + b.Err.Error())
		return
	}
	batch, failed := invariant.Decode(b)
	for _, err := range failed {
		w.report(err.Error())
	}
	before := w.checker.Leader()
	for _, v := range w.checker.Apply(batch) {
		w.report(v.String())
	}
	if now := w.checker.Leader(); now != before && now != 0 {
		w.counts.Elections++
	}
	for _, change := range batch.Changes {
		if r, is := change.(invariant.Record); is && r.New != nil {
			w.count(r.New.State)
		}
	}
}

func (w *Witness) count(state grant.RecordState) {
	switch state {
	case grant.RecordCommitted:
		w.counts.Committed++
	case grant.RecordEvicting:
		w.counts.Evicted++
	case grant.RecordReleased:
		w.counts.Released++
	case grant.RecordAborted:
		w.counts.Aborted++
	}
}
