package coordinator

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/resource"
)

// This file is the way of agents' messages into the loop: a bounded share of
// each turn for each node, and no message ends more than the term.

const (
	// mostHeard is about how many messages one turn of the loop takes.
	mostHeard = 1024
	// loopShare is one part in how many of the loop's time a node may take, and
	// loopBurst what it may take at once beyond that. Then it rests, longestRest at
	// most at a time.
	loopShare   = 5
	loopBurst   = 100 * time.Millisecond
	longestRest = time.Second
	// idleRest is how long a node rests that goes on saying nothing new.
	idleRest = 10 * time.Millisecond
)

// hear takes what agents have said. It reports whether anything was new, and
// whether the term can go on.
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
		} else if n := l.nodes[agents.NodeOf(e)]; n != nil && !n.idle.take(at, idleRate) {
			l.mail.Rest(n.view.ID, at, idleRest)
		}
		if last := i+1 == len(events) || agents.NodeOf(events[i+1]) != agents.NodeOf(e); last {
			if n := l.nodes[agents.NodeOf(e)]; n != nil {
				if owed := n.loop.spend(at, loopShare*at.Sub(began), loopShare*loopBurst); owed > 0 {
					l.mail.Rest(n.view.ID, at, min(owed, longestRest))
				}
			}
			began = at
		}
	}
	return news, true
}

// receive handles one message. A panic isolates its node and ends the term: the
// next one begins with what the store holds, whatever was half done here.
func (l *leader) receive(e agents.Event) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			l.fell(agents.NodeOf(e), r, debug.Stack())
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
