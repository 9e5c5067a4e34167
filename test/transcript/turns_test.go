package transcript_test

import (
	"cmp"
	"slices"
	"sync"
	"testing/synctest"

	"github.com/musterd/muster/resource"
)

// step is where in the protocol an event stands.
type step int

// In this order go events of which none waits for another.
const (
	stepHello step = iota
	stepWelcome
	stepRegistration
	stepRegistered
	stepAgentsFence
	stepReserve
	stepVote
	stepDecision
	stepHeld
	stepRelease
	stepFreed
	stepForget
	stepWrite
)

// turns lets one event happen at a time: everything that wants to happen waits
// until nothing else moves, and then goes in order of step and node. What
// depends on what is the programs' own doing; what is free to happen in any
// order happens in the same order in every run.
type turns struct {
	wake  chan struct{} // capacity 1: there is something in line
	quiet chan chan struct{}

	mu   sync.Mutex
	line []turn
}

// turn is one event that waits. tie orders events of the same step and node.
type turn struct {
	step step
	node resource.NodeID
	tie  string
	pass chan struct{}
}

func newTurns() *turns {
	t := &turns{wake: make(chan struct{}, 1), quiet: make(chan chan struct{})}
	go t.run()
	return t
}

// take waits for the event's turn.
func (t *turns) take(s step, node resource.NodeID, tie string) {
	mine := turn{s, node, tie, make(chan struct{})}
	t.mu.Lock()
	t.line = append(t.line, mine)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
	<-mine.pass
}

// run lets events happen until the line is closed.
func (t *turns) run() {
	for {
		var asked chan struct{}
		select {
		case <-t.wake:
		case reply, open := <-t.quiet:
			if !open {
				return
			}
			asked = reply
		}
		for synctest.Wait(); t.next(); synctest.Wait() {
		}
		if asked != nil {
			close(asked)
		}
	}
}

// next lets the first in line go; false if there is none.
func (t *turns) next() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.line) == 0 {
		return false
	}
	slices.SortStableFunc(t.line, func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.node, b.node), cmp.Compare(a.tie, b.tie))
	})
	close(t.line[0].pass)
	t.line = t.line[1:]
	return true
}

// settle returns when nothing moves any more until time passes.
func (t *turns) settle() {
	reply := make(chan struct{})
	t.quiet <- reply
	<-reply
}

// stop ends it; nothing may take a turn any more.
func (t *turns) stop() { close(t.quiet) }
