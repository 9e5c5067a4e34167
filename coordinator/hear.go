package coordinator

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/pace"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file takes agents' messages into the loop. Each node has a bounded share
// of each turn, and a message can end the term but not the process.

const (
	// mostHeard is about how many messages one turn of the loop takes.
	mostHeard = 1024
	// A node may take one part in loopShare of the loop's time, and loopBurst more
	// at once. Beyond that the node rests, for longestRest at most at a time.
	loopShare   = 5
	loopBurst   = 100 * time.Millisecond
	longestRest = time.Second
	// idleRest is how long a node rests that goes on saying nothing new.
	idleRest = 10 * time.Millisecond
)

// idleRate bounds the messages of one node that change nothing.
var idleRate = pace.Rate{Every: 20 * time.Millisecond, Burst: 64}

// turnShare is a node's share of the loop's time.
type turnShare struct {
	idle pace.Bucket // messages that changed nothing
	loop pace.Bucket // time
}

// share returns a node's, made on first sight; nil where the leader does not know
// the node.
func (t *term) share(id resource.NodeID) *turnShare {
	if !t.Knows(id) {
		return nil
	}
	s := t.shares[id]
	if s == nil {
		s = &turnShare{}
		t.shares[id] = s
	}
	return s
}

// hear handles waiting messages of agents. It reports whether any of them was
// new, and whether the term can go on.
func (t *term) hear() (news, goesOn bool) {
	began := time.Now()
	events := t.mail.Take(began, mostHeard)
	for i, e := range events {
		id, idle := e.NodeID(), t.IdleMessages()
		if !t.receive(e) {
			return news, false
		}
		at := time.Now()
		s := t.share(id)
		if t.IdleMessages() == idle {
			news = true
		} else if s != nil && !s.idle.Take(at, idleRate) {
			t.mail.Rest(id, at, idleRest)
			t.apply(lead.NodeThrottled{Node: id, Until: t.clock.now().Add(lead.LoudBreak)})
		}
		if last := i+1 == len(events) || events[i+1].NodeID() != id; last {
			if s != nil {
				if owed := s.loop.Spend(at, loopShare*at.Sub(began), loopShare*loopBurst); owed > 0 {
					t.mail.Rest(id, at, min(owed, longestRest))
				}
			}
			began = at
		}
	}
	return news, true
}

// receive handles one message. A panic isolates the message's node and ends the
// term, because the leader's state may be half changed; the next term loads the
// store.
func (t *term) receive(e grant.Event) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			t.endAfterPanic(e.NodeID(), r, debug.Stack())
			ok = false
		}
	}()
	if c, opens := e.(agents.Connected); opens {
		e = lead.StreamOpened{Hello: c.Hello, Fit: c.Fit}
	}
	t.apply(lead.AgentEvent{Event: e})
	return true
}

// endAfterPanic ends the term after a panic over a node's message.
func (t *term) endAfterPanic(id resource.NodeID, cause any, stack []byte) {
	detail := lead.Clip(fmt.Sprintf("the leader could not go on after a message of it: %v", cause))
	t.log.Error("protocol_violation", "node", id, "reason", lead.ViolationPanic, "detail", detail, "stack", string(stack))
	t.sever(id, detail)
}
