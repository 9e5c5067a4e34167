package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Trip has the leader's loop panic over a message of a node, as a fault of the
// loop would.
func (c *Coordinator) Trip(id resource.NodeID) {
	l := c.term.Load()
	l.post(func() {
		l.observe = func(_ time.Time, in lead.Input) {
			if in, is := in.(lead.AgentEvent); is && in.Event.NodeID() == id {
				panic("a fault of the loop")
			}
		}
	})
	l.mail.Put(grant.Replied{Node: id, Tx: "u.1.1.00000000000000000000000000000000", State: grant.Reserved})
}

// Tell hands a message of a node to the leader's mailbox.
func (c *Coordinator) Tell(e grant.Event) {
	if l := c.term.Load(); l != nil {
		l.mail.Put(e)
	}
}

// Generation counts how often everything that waits was woken in this term.
func (c *Coordinator) Generation() (generation uint64) {
	l := c.term.Load()
	done := make(chan struct{})
	l.post(func() { generation = l.WakeUps(); close(done) })
	<-done
	return generation
}

// Check verifies the invariants of the leader's units between two inputs, and that
// no unit waits that could begin; nil where no term answers.
func (c *Coordinator) Check(ctx context.Context) error {
	l := c.term.Load()
	if l == nil {
		return nil
	}
	var broken error
	look := func() {
		if log, ok := c.config.Decisions.(*recordingLog); ok {
			log.rec.looked()
		}
		if broken = l.Check(); broken != nil || l.Busy() {
			return
		}
		if path := l.Overlooked(); path != "" {
			broken = fmt.Errorf("%s waits although it could begin, and nothing wakes it", path)
		}
	}
	if err := l.visit(ctx, look); err != nil {
		return nil //nolint:nilerr // the term is over
	}
	return broken
}

// HoldLoop stops the leader's loop until release is called, and returns once the
// loop stands still.
func (c *Coordinator) HoldLoop() (release func()) {
	held, end := make(chan struct{}), make(chan struct{})
	c.term.Load().post(func() { close(held); <-end })
	<-held
	return func() { close(end) }
}
