package follow

import (
	"context"
	"sync"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// readIndex asks the store for its revision: no write acknowledged before the
// call is newer than the answer. Calls that come while one is under way share
// the next one.
type readIndex struct {
	store store.KVStore

	mu      sync.Mutex
	running bool
	next    *indexRead // not yet sent; nil while nobody waits for it
}

// indexRead is one question; done closes when its answer is there.
type indexRead struct {
	done     chan struct{}
	revision resource.Revision
	err      error
}

// read returns the store's revision; it ends early with ctx.
func (r *readIndex) read(ctx context.Context) (resource.Revision, error) {
	r.mu.Lock()
	if r.next == nil {
		r.next = &indexRead{done: make(chan struct{})}
	}
	mine := r.next
	if !r.running {
		r.running = true
		go r.ask()
	}
	r.mu.Unlock()
	select {
	case <-mine.done:
		return mine.revision, mine.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// ask answers the waiting calls, one question at a time, until none waits.
func (r *readIndex) ask() {
	for {
		r.mu.Lock()
		now := r.next
		r.next = nil
		if now == nil {
			r.running = false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), CatchUp)
		_, _, now.revision, now.err = r.store.Get(ctx, record.LeaderPrefix)
		cancel()
		close(now.done)
	}
}
