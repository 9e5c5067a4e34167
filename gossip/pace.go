package gossip

import (
	"context"
	"sync"
	"time"

	"github.com/musterd/muster/gossip/digest"
)

const (
	// leastInterval is the least time between two digests of one node.
	leastInterval = 100 * time.Millisecond
	// ringInterval is the least mean time between two digests of a whole ring.
	ringInterval = 20 * time.Millisecond
)

// publishInterval is the least time between two digests of one node in a ring
// of so many members: max(100 ms, members × 20 ms). Every digest costs every
// member a few packets, so the ring as a whole gets at most 50 a second however
// large it is: a node of 5 may publish every 100 ms, of 100 every 2 s, of 500
// every 10 s.
func publishInterval(members int) time.Duration {
	return max(leastInterval, time.Duration(members)*ringInterval)
}

// pacer sends the newest digest it was offered, never faster than
// publishInterval. run owns the sending.
type pacer struct {
	send    func(digest.Digest)
	members func() int
	wake    chan struct{} // capacity 1: a digest waits

	mu      sync.Mutex
	newest  digest.Digest // waiting or sent last
	waiting bool
	offered bool
}

func newPacer(members func() int, send func(digest.Digest)) *pacer {
	return &pacer{send: send, members: members, wake: make(chan struct{}, 1)}
}

// offer replaces the waiting digest when d is newer. It never blocks.
func (p *pacer) offer(d digest.Digest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.offered && !digest.Newer(d, p.newest) {
		return
	}
	p.newest, p.waiting, p.offered = d, true, true
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *pacer) take() (digest.Digest, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waited := p.waiting
	p.waiting = false
	return p.newest, waited
}

// run sends until ctx ends. The first digest after a quiet time goes out at
// once.
func (p *pacer) run(ctx context.Context) {
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		if wait := publishInterval(p.members()) - time.Since(last); !last.IsZero() && wait > 0 {
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
		}
		if d, ok := p.take(); ok {
			last = time.Now()
			p.send(d)
		}
	}
}
