package coordinator

import (
	"context"
	"time"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/resource"
)

// This file is the goroutine of a term: it hands the leader its inputs, one at a
// time, and carries out the effects of each before the next.

// post hands f to the loop; it may block, and drops f once the loop has ended.
func (t *term) post(f func()) {
	select {
	case t.inbox <- f:
	case <-t.ended:
	}
}

// tell hands the leader an input; it may block, and drops the input once the
// loop has ended.
func (t *term) tell(in lead.Input) { t.post(func() { t.apply(in) }) }

// visit runs f in the loop, between two inputs, and waits for it.
func (t *term) visit(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case t.inbox <- func() { f(); close(done) }:
	case <-t.ended:
		return post.ErrDeposed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-t.ended:
		return post.ErrDeposed
	}
}

// apply hands the leader an input and carries out the effects. The loop alone
// calls it.
func (t *term) apply(in lead.Input) {
	now := t.clock.now()
	if t.observe != nil {
		t.observe(now, in)
	}
	t.carryOut(t.Leader.Apply(now, in, t.effects[:0]))
}

// run is the loop. It returns when ctx ends, or when the term cannot go on.
func (t *term) run(ctx context.Context) {
	defer close(t.ended)
	defer t.mail.Close()
	defer t.alarm.Stop()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	again := make(chan struct{})
	close(again)
	var busy <-chan struct{} // ready while the last pass was cut short
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-t.inbox:
			f()
			t.drain()
		case <-t.mail.Waiting():
			news, goesOn := t.hear()
			if !goesOn {
				return
			}
			if !news {
				continue
			}
			t.drain()
		case <-busy:
			t.drain()
		case <-t.alarm.C:
			t.apply(lead.AlarmDue{})
		case <-second.C:
			t.tellFollowed()
			t.apply(lead.SecondPassed{})
		}
		t.schedule()
		if busy = nil; t.Busy() {
			busy = again
		}
	}
}

// schedule has the leader try the waiting units.
func (t *term) schedule() {
	now := t.clock.now()
	if t.observe != nil {
		t.observe(now, nil)
	}
	t.carryOut(t.Pass(now, t.effects[:0]))
}

// drain takes the other waiting inputs, so that one scheduling pass and one
// shared Txn serve them all.
func (t *term) drain() {
	for range inboxSize {
		select {
		case f := <-t.inbox:
			f()
		default:
			return
		}
	}
}

// tellFollowed hands the leader the cache's views of its nodes that have
// changed.
func (t *term) tellFollowed() {
	for id := range t.Specifications() {
		t.tellFollowedOf(id)
	}
	for id := range t.told {
		if !t.Knows(id) {
			delete(t.told, id)
			delete(t.shares, id)
		}
	}
}

func (t *term) tellFollowedOf(id resource.NodeID) {
	if !t.Knows(id) {
		return
	}
	now := t.follows(id)
	if before, known := t.told[id]; known && before.Same(now) {
		return
	}
	t.told[id] = now
	t.apply(now)
}
