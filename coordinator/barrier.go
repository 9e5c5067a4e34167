package coordinator

import (
	"context"
	"sync"

	"github.com/musterd/muster/coordinator/lead/batch"
)

// barrier lets readers wait for the writes, and reads that settle writes, which
// are under way.
type barrier struct {
	mu      sync.Mutex
	pending batch.Pending
	moved   chan struct{} // closed and replaced when pending changes; nil while nobody waits
}

// begin notes that something is under way, until end.
func (b *barrier) begin() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pending.Begin()
}

// end is called once the leader has taken in the write's outcome; each write
// that this outcome caused has begun before.
func (b *barrier) end(id uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending.End(id)
	b.wake()
}

// doubted notes that a write had no answer.
func (b *barrier) doubted() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending.Doubt()
	b.wake()
}

// wake lets waiters look again. b.mu is held.
func (b *barrier) wake() {
	if b.moved != nil {
		close(b.moved)
		b.moved = nil
	}
}

// pass waits until all that was under way when it was called has ended. It
// reports false if something is in doubt, or when ctx or over ends.
func (b *barrier) pass(ctx context.Context, over <-chan struct{}) bool {
	b.mu.Lock()
	last := b.pending.Began()
	for {
		if progress := b.pending.UpTo(last); progress != batch.Waits {
			b.mu.Unlock()
			return progress == batch.Passed
		}
		if b.moved == nil {
			b.moved = make(chan struct{})
		}
		moved := b.moved
		b.mu.Unlock()
		select {
		case <-moved:
		case <-over:
			return false
		case <-ctx.Done():
			return false
		}
		b.mu.Lock()
	}
}
