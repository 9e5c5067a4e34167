package coordinator

import (
	"fmt"
	"runtime/debug"
	"time"

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

// hear handles waiting messages of agents. It reports whether any of them was
// new, and whether the term can go on.
func (l *leader) hear() (news, goesOn bool) {
	began := time.Now()
	events := l.mail.Take(began, mostHeard)
	for i, e := range events {
		idle := l.idle
		if !l.receive(e) {
			return news, false
		}
		at := time.Now()
		if l.idle == idle {
			news = true
		} else if n := l.nodes[e.NodeID()]; n != nil && !n.idle.take(at, idleRate) {
			l.mail.Rest(n.view.ID, at, idleRest)
			n.loud = at.Add(loudBreak)
			n.setTripped(at)
		}
		if last := i+1 == len(events) || events[i+1].NodeID() != e.NodeID(); last {
			if n := l.nodes[e.NodeID()]; n != nil {
				if owed := n.loop.spend(at, loopShare*at.Sub(began), loopShare*loopBurst); owed > 0 {
					l.mail.Rest(n.view.ID, at, min(owed, longestRest))
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
func (l *leader) receive(e grant.Event) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			l.fell(e.NodeID(), r, debug.Stack())
			ok = false
		}
	}()
	l.agentEvent(e)
	return true
}

// fell ends the term after a panic over a node's message.
func (l *leader) fell(id resource.NodeID, cause any, stack []byte) {
	detail := clip(fmt.Sprintf("the leader could not go on after a message of it: %v", cause))
	l.log.Error("protocol_violation", "node", id, "reason", violationPanic, "detail", detail, "stack", string(stack))
	l.sever(id, detail)
}
