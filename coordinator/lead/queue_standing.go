package lead

import (
	"cmp"
	"fmt"

	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue/rule"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/shown"
)

// standingOf is the part of a unit in its queue.
func standingOf(u *work.Unit) rule.Standing {
	switch {
	case u == nil || u.Life.Gone() || u.Phase().Ended():
		return rule.Gone
	case u.Attempt != nil && !u.Waiting():
		return rule.Runs
	case u.Attempt != nil || u.Life.IsBeingAdopted():
		return rule.Starts
	case u.Life.EndAsked():
		return rule.Gone
	case u.IsSuspended() || u.Grows() || u.IsMending() || u.AwaitsMembers() || u.Hold != work.NoHold:
		return rule.Aside
	}
	return rule.Waits
}

// waitingForQueue says why a rule holds a unit back. It names no work of others.
func waitingForQueue(b *rule.Block) (code, message string) {
	switch b.Code {
	case rule.Held:
		return shown.QueueHeld, fmt.Sprintf("queue %s is on Hold: nothing of it starts until an operator opens it", b.Queue)
	case rule.Behind:
		return shown.QueueStrict, fmt.Sprintf("queue %s is Strict, and work ahead in it has not started", b.Queue)
	}
	return shown.QueueFull, fmt.Sprintf("queue %s lets %d members run: %d hold something, and the unit needs %d", b.Queue, b.Max, b.Running, b.Needs)
}

// isOnHold reports whether nothing of the unit's queue starts.
func (l *Leader) isOnHold(u *work.Unit) bool { return l.queues.Rules(u.Record.Queue).Hold }

// isHeldByQueue reports whether a rule of its queue holds a unit back.
func (l *Leader) isHeldByQueue(u *work.Unit) bool {
	return l.queues.Holds(u.Record.Queue, u.Key) != nil
}

// blockOf is the rule that holds a unit back which waits; nil where none does.
func (l *Leader) blockOf(u *work.Unit) *rule.Block {
	if standingOf(u) != rule.Waits {
		return nil
	}
	if b := l.queues.Holds(u.Record.Queue, u.Key); b != nil {
		return b
	}
	return l.queues.Bounds(u.Record.Queue, startsWith(u))
}

// startsWith is the number of members that start together with a unit, its own among them:
// those of a group count also where they differ.
func startsWith(u *work.Unit) int {
	if !u.Gathers() {
		return u.Demand.Members
	}
	ready := u.Group.Ready()
	return max(u.Demand.Members, min(len(ready), u.Group.Rule.MinMembers))
}

// positionOf is the place of a unit in its queue, 0 where it is not in the order.
func (l *Leader) positionOf(u *work.Unit) int {
	if l.room.Order().Position(u.Key) == 0 {
		return 0
	}
	l.noteQueues()
	return l.queues.Position(u.Record.Queue, u.Key)
}

// policyFor is the policy by which places for work of a queue are chosen now.
func (l *Leader) policyFor(queue string) place.Policy {
	return l.learner.Policy(cmp.Or(l.queues.Rules(queue).Policy, l.rules.PlacementPolicy), l.state)
}

// boundedQueue is the queue of a unit where members that run are bounded, else "".
func (l *Leader) boundedQueue(u *work.Unit) string {
	if l.queues.Rules(u.Record.Queue).MaxRunning == 0 {
		return ""
	}
	return u.Record.Queue
}

// fillsQueue is the evidence of a unit that is over the bound of its queue; nil where
// members that start together may start.
func (l *Leader) fillsQueue(u *work.Unit, together int) *sched.Evidence {
	if l.queues.Bounds(u.Record.Queue, together) == nil {
		return nil
	}
	return &sched.Evidence{Code: sched.OverQueue}
}

// noteQueues takes over the parts of units in their queues that have changed.
func (l *Leader) noteQueues() {
	for _, path := range l.work.QueueNews.Take() {
		u := l.work.Units[path]
		part := rule.Unit{Standing: standingOf(u)}
		if part.Key.Path = path; u != nil {
			part.Queue, part.Key, part.Members = u.Record.Queue, u.Key, u.Record.Held()
		}
		l.queues.Put(part)
	}
}

// noteAdded notes the units that a change of a job adds, which belong to the job once the
// store has the change: that the first unit runs lets them take their place in the queue.
func (l *Leader) noteAdded(j *work.Job) {
	own := j.OwnUnits()
	next := own[len(own)-1].Record.Path()
	for next.N++; l.work.Units[next.String()] != nil; next.N++ {
		l.work.QueueNews.Note(next.String())
	}
}

// evidenceOf is why a waiting unit was not placed, nil where it was not tried.
func (l *Leader) evidenceOf(u *work.Unit) *sched.Evidence {
	if e := l.room.EvidenceOf(u.Path); e != nil {
		return e
	}
	return u.Wait.Evidence
}
