package lead

import (
	"slices"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is a node whose agent has seen that the store went back (ADR 10):
// it promises nothing and obeys nothing until an operator reconciles it. What it
// holds is shown, nothing is concluded from it, and what the records demand of
// it waits.

// isolate takes an agent's word on its quarantine; "" is none. The registration
// of one in quarantine is of revisions that are gone: it counts for nothing, and
// the agent registers anew when the quarantine ends.
func (n *node) isolate(why string) {
	n.isolated = why
	if n.judgeQuarantine(); why != "" {
		n.clearRegistration()
	}
}

// learnGrants keeps everything that an agent says it holds for leaders, and wakes who
// waits for it. Of grants with another origin there is nothing to reconcile.
func (l *Leader) learnGrants(n *node, o grant.Occupancy) {
	n.setGrants(o)
	l.noteNewsOf(n)
}

// noteNewsOf notes that something of a node was heard, for the reconciliation that
// may wait for it.
func (l *Leader) noteNewsOf(n *node) {
	if r := l.reconciliation; r != nil && slices.Contains(r.concerned, n.view.ID) {
		r.news = true
	}
}

// send gives an agent a command that follows from a record. One in quarantine
// would refuse it: it is repeated when the agent has registered.
func (l *Leader) send(id resource.NodeID, c grant.Command) {
	if n := l.nodes[id]; n != nil && n.quarantine != "" {
		return
	}
	l.post.Command(id, c)
}

// registration is who may promise on a node, as the store has it.
type registration struct {
	identity    resource.Revision
	spec        resource.Revision // written by every registration
	incarnation resource.Incarnation
}

// compares make a Txn fail once the agent has registered again: it may have
// stopped what it held.
func (r registration) compares(id resource.NodeID) []record.Compare {
	// model: mutants NO_INCARNATION_COMPARE, ADOPT_WITHOUT_REGISTRATION
	return []record.Compare{record.ModRevIs(record.NodeIdentityKey(id), r.identity), record.ModRevIs(record.NodeSpecKey(id), r.spec)}
}

// reply answers an event about a transaction that this leader does not drive.
// Beyond the rate limit the event has no answer, and the node is asked for all
// its grants later.
func (l *Leader) reply(n *node, c grant.Command) {
	if !n.answered.Take(l.post.Now(), answerRate) {
		n.setUnanswered()
		return
	}
	l.send(n.view.ID, c)
}
