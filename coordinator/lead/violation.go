package lead

import (
	"time"

	"github.com/musterd/muster/coordinator/lead/breaker"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file isolates nodes whose agents break the protocol (ADR 13): they take
// no new work, durably, until an operator uncordons them.

// handleLie handles a lie: it accuses the node, or logs the doubt.
func (l *Leader) handleLie(n *node, bad *lie) {
	if bad.doubt {
		if l.mayLog(n) {
			l.post.Warn("message_not_counted", "node", n.view.ID, "reason", bad.reason, "detail", Clip(bad.detail))
		}
		return
	}
	l.isolateNode(n, bad)
}

// isolateNode isolates a node: the leader cordons the node, ends its stream, and
// places its undecided attempts elsewhere. Committed units stay there.
func (l *Leader) isolateNode(n *node, bad *lie) {
	l.post.Count(post.MetricViolations, bad.reason)
	if l.mayLog(n) {
		l.post.Error("protocol_violation", "node", n.view.ID, "reason", bad.reason, "detail", Clip(bad.detail))
	}
	first := n.violation() == nil
	if first {
		n.setAccused(&record.Violation{Reason: bad.reason, Detail: Clip(bad.detail), At: l.post.Stamp()})
		l.setReady(n)
	}
	l.post.Add(post.Effect{Kind: post.DistrustNode, Node: n.view.ID})
	for _, tx := range l.attemptsOn(n.view.ID) {
		if a := l.work.Attempts[tx]; a != nil && a.Machine.Undecided() {
			a.Fail(n.view.ID, breaker.WrongVote)
			l.step(a, txn.Refused{Node: n.view.ID, Reasons: []resource.Reason{{Code: resource.ReasonViolation, Detail: Clip(bad.detail)}}})
		}
	}
	l.makeDurable(n)
}

// makeDurable writes an isolation that is not in the store yet.
func (l *Leader) makeDurable(n *node) {
	if n.accused != nil && n.specRev != 0 && !n.accusing {
		n.beginAccusing()
		l.writeViolation(n, n.accused)
	}
}

// writeViolation makes an isolation durable, so that the next leader knows of it.
func (l *Leader) writeViolation(n *node, v *record.Violation) {
	id := n.view.ID
	if l.nodes[id] != n || n.accused != v { // deleted, or let back meanwhile
		n.finishAccusing()
		return
	}
	spec := n.spec
	spec.Violation, spec.Unschedulable = v, true
	key := record.NodeSpecKey(id)
	value, err := record.Encode(spec)
	if err != nil {
		l.post.Error("violation_not_written", "node", id, "error", err) // it holds for this term
		return
	}
	l.post.Settle(post.Decision{
		Compares: []record.Compare{record.ModRevIs(key, n.specRev)},
		Ops:      []record.Op{record.Put(key, value)},
		Done: func(o txn.Outcome, rev resource.Revision, _ error) {
			if o != txn.Landed {
				l.post.After(violationAgain, func() { l.readSpec(n, func() { l.writeViolation(n, v) }) })
				return
			}
			n.finishAccusing()
			if n.accused == v {
				n.setAccused(nil)
			}
			n.setSpec(spec, rev)
			l.setReady(n)
		},
	}, key, post.Wrote(key, func(written record.NodeSpec) bool { return written.Violation != nil && *written.Violation == *v }))
}

// violationAgain is the time between attempts to write an isolation while the
// node registers.
const violationAgain = 100 * time.Millisecond

// endIsolation lets a node back that an operator has uncordoned; that is durable.
func (l *Leader) endIsolation(n *node) {
	n.clearFaults()
	n.setTripped(l.post.Now())
	l.setReady(n)
	l.post.Add(post.Effect{Kind: post.TrustNode, Node: n.view.ID})
	l.wakeAll() // an isolation that is not durable yet leaves the specification as it is
}

// resumeDeferredWork runs once a second: it does for a node the work that was put off because
// of too many messages.
func (l *Leader) resumeDeferredWork(n *node) {
	n.setTripped(l.post.Now())
	l.makeDurable(n)
	if n.wakes {
		n.setWakes(false)
		l.state.MarkGrown(&n.view)
		l.noteChange()
		l.room.Unleft()
	}
	if n.unanswered && n.connected {
		n.clearUnanswered()
		l.post.Command(n.view.ID, grant.Resync{})
	}
}
