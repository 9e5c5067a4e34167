package coordinator

import (
	"context"
	"sync"
)

// barrier knows which of a leader's writes, and reads that settle writes, are
// under way. What has landed in the store is shown by followers at once, and by
// the leader when it has heard of it: a read that waits for what was under way
// when it was asked shows nothing older than anybody was shown before.
type barrier struct {
	mu    sync.Mutex
	began uint64          // how many have begun
	low   uint64          // all up to this one have ended
	ended map[uint64]bool // those above low that have
	// doubt: a write had no answer, and since then there was no moment at which
	// nothing was under way.
	doubt bool
	moved chan struct{} // closed and replaced when low or doubt changes; nil while nobody waits
}

// begin notes that something is under way, until end.
func (b *barrier) begin() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.began++
	return b.began
}

// end is called once the leader has taken in what came of it; whatever that has
// begun has begun before.
func (b *barrier) end(id uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended == nil {
		b.ended = map[uint64]bool{}
	}
	b.ended[id] = true
	for b.ended[b.low+1] {
		b.low++
		delete(b.ended, b.low)
	}
	if b.low == b.began {
		b.doubt = false
	}
	b.wake()
}

// doubted notes that a write had no answer.
func (b *barrier) doubted() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.doubt = true
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
	last := b.began
	for {
		if b.doubt || b.low >= last {
			passed := !b.doubt
			b.mu.Unlock()
			return passed
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
