package lead

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/resource"
)

// This file judges how a node answers Reserve commands. A node that fails them
// is the last choice of placement for a while. A member that fits nowhere else
// still goes there.

// tried tells the breakers of an attempt's nodes that it begins.
func (l *Leader) tried(a *work.Attempt) {
	now := l.post.Now()
	for _, id := range a.Machine.Nodes() {
		n := l.nodes[id]
		n.breaker.BeginTry(now, a.Machine.ID())
		n.setTripped(now)
	}
}

// watchVotes bounds how long votes are collected. Nodes that have not voted
// within a quarter of that are the last choice for others from then on, so that
// one attempt waits for a node that hangs, and not many.
func (l *Leader) watchVotes(a *work.Attempt) {
	early := l.rules.VoteBudget / 4
	l.setTimer(a, early, func() {
		now := l.post.Now()
		for _, id := range a.Machine.Nodes() {
			if _, answered := a.Machine.Answer(id); !answered {
				a.AddLate(id)
				n := l.nodes[id]
				n.breaker.Slow(now, a.Machine.ID())
				n.setTripped(now)
			}
		}
		l.setBudget(a, l.rules.VoteBudget-early)
	})
}

// closeBreakers closes the breakers of the nodes that voted in time for an attempt
// which has committed.
func (l *Leader) closeBreakers(a *work.Attempt) {
	now := l.post.Now()
	for _, id := range a.Machine.Nodes() {
		n := l.nodes[id]
		switch {
		case a.Late[id]:
			n.breaker.AbandonTry(a.Machine.ID())
		case n.breaker.RecordSuccess():
			l.post.Info("node_answers_again", "node", id)
		}
		n.setTripped(now)
	}
}

// judgeNodes counts the faults of an attempt that was aborted: its unit avoids
// the nodes at fault while others fit, and their breakers count the failure.
func (l *Leader) judgeNodes(a *work.Attempt) {
	now, tx := l.post.Now(), a.Machine.ID()
	for _, id := range slices.SortedFunc(slices.Values(a.Machine.Nodes()), cmp.Compare[resource.NodeID]) {
		n := l.nodes[id]
		f := a.Failed[id]
		if f == "" {
			n.breaker.AbandonTry(tx)
			n.setTripped(now)
			continue
		}
		a.Unit.Wait.AvoidNode(id)
		a.Unit.Wait.NoteFailure(work.Failure{Node: id, Fault: f, Said: a.Said[id]})
		l.post.Count(post.MetricFaults, string(f))
		if n.breaker.Failed(now, tx, f) && l.mayLog(n) {
			l.post.Warn("node_suspect", "node", id, "fault", string(f), "failures", n.breaker.Failures(), "until", n.breaker.Until())
		}
		n.setTripped(now)
	}
}
