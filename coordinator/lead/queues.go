package lead

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue/rule"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/spelling"
)

// This file carries out the rules of queues, which package rule keeps. A unit that a
// rule holds back is held in the order; a unit over the bound of running members sleeps
// with its class until members of the queue end (E8). No rule ends an attempt, but for
// Hold, which gives up the attempts that are undecided.

// queueNews names the units whose part in their queue may have changed. The zero value
// names nobody.
type queueNews struct{ units map[string]bool }

// note notes that the part of a unit in its queue may have changed.
func (n *queueNews) note(path string) {
	if n == nil { // the unit is known to no leader yet
		return
	}
	if n.units == nil {
		n.units = map[string]bool{}
	}
	n.units[path] = true
}

// standingOf is the part of a unit in its queue.
func standingOf(u *unit) rule.Standing {
	switch {
	case u == nil || u.gone || u.phase().Ended():
		return rule.Gone
	case u.attempt != nil && !u.waiting():
		return rule.Runs
	case u.attempt != nil || u.isBeingAdopted():
		return rule.Starts
	case u.ending != nil:
		return rule.Gone
	case u.isSuspended() || u.grows() || u.awaitsMembers() || u.hold != noHold:
		return rule.Aside
	}
	return rule.Waits
}

// takeQueueNews takes over what has changed in queues, and offers or holds the units
// that the rules hold back no more, or from now on.
func (l *Leader) takeQueueNews() {
	for len(l.queueNews.units) > 0 || l.queues.HasNews() {
		l.noteQueues()
		for _, n := range l.queues.TakeNews() {
			l.followQueue(n)
		}
	}
}

// noteAdded notes the units that a change of a job adds, which belong to the job once the
// store has the change: that the first unit runs lets them take their place in the queue.
func (l *Leader) noteAdded(j *job) {
	next := j.units[len(j.units)-1].record.Path()
	for next.N++; l.units[next.String()] != nil; next.N++ {
		l.queueNews.note(next.String())
	}
}

// noteQueues takes over the parts of units in their queues that have changed.
func (l *Leader) noteQueues() {
	for _, path := range slices.Sorted(maps.Keys(l.queueNews.units)) {
		u := l.units[path]
		part := rule.Unit{Standing: standingOf(u)}
		if part.Key.Path = path; u != nil {
			part.Queue, part.Key, part.Members = u.record.Queue, u.key, u.record.Members
		}
		l.queues.Put(part)
	}
	clear(l.queueNews.units)
}

// positionOf is the place of a unit in its queue, 0 where it is not in the order.
func (l *Leader) positionOf(u *unit) int {
	if l.room.Order().Position(u.key) == 0 {
		return 0
	}
	l.noteQueues()
	return l.queues.Position(u.record.Queue, u.key)
}

// followQueue carries out the rules of a queue that has changed.
func (l *Leader) followQueue(n rule.News) {
	if n.Freed {
		l.noteChange()
		l.room.Emptied(n.Queue)
	}
	head, _ := l.queues.Head(n.Queue)
	switch {
	case n.Changed:
		l.followRules(l.queues.Waiting(n.Queue))
	case l.queues.Rules(n.Queue).Strict && head != n.Before:
		l.followRules(append(l.queues.Abreast(n.Queue, n.Before), l.queues.Abreast(n.Queue, head)...))
	}
}

// followRules follows the rules of their queue for units. The units of a group that
// gathers are offered together, once.
func (l *Leader) followRules(paths []string) {
	offered := map[*group]bool{}
	for _, path := range paths {
		l.followRule(l.units[path], offered)
	}
}

// followRule offers a unit that waits, or holds it, as the rules of its queue say now.
// offered are the groups that were offered already.
func (l *Leader) followRule(u *unit, offered map[*group]bool) {
	switch {
	case u == nil || u.ending != nil:
	case u.attempt != nil:
		if l.isOnHold(u) && u.waiting() && u.attempt.mayCommit() && u.attempt.machine.Undecided() {
			l.step(u.attempt, txn.BudgetSpent{})
		}
	case u.adopting != nil:
		if l.isOnHold(u) {
			l.abandon(u.adopting)
		}
	case !u.isBeingAdopted():
		if !u.gathers() {
			l.offer(u)
		} else if !offered[u.group] {
			offered[u.group] = true
			l.offer(u)
		}
		l.storeHeld(u)
		l.noteWaiting(u)
		l.notify(u)
	}
}

// storeHeld stores a new unit that a rule of its queue holds back: no trial will.
func (l *Leader) storeHeld(u *unit) {
	if u.create != nil && u.lifecycle == phaseCreating && !u.isBeingWritten() && !l.room.Offered(u.path) {
		l.enqueue(u)
	}
}

// isOnHold reports whether nothing of the unit's queue starts.
func (l *Leader) isOnHold(u *unit) bool { return l.queues.Rules(u.record.Queue).Hold }

// isHeldByQueue reports whether a rule of its queue holds a unit back.
func (l *Leader) isHeldByQueue(u *unit) bool { return l.queues.Holds(u.record.Queue, u.key) != nil }

// fillsQueue is the evidence of a unit that is over the bound of its queue; nil where
// members that start together may start.
func (l *Leader) fillsQueue(u *unit, together int) *sched.Evidence {
	if l.queues.Bounds(u.record.Queue, together) == nil {
		return nil
	}
	return &sched.Evidence{Code: sched.OverQueue}
}

// startsWith is the number of members that start together with a unit, its own among them:
// those of a group count also where they differ.
func startsWith(u *unit) int {
	if !u.gathers() {
		return u.Demand.Members
	}
	ready := u.group.ready()
	return max(u.Demand.Members, min(len(ready), u.group.rule.MinMembers))
}

// boundedQueue is the queue of a unit where members that run are bounded, else "".
func (l *Leader) boundedQueue(u *unit) string {
	if l.queues.Rules(u.record.Queue).MaxRunning == 0 {
		return ""
	}
	return u.record.Queue
}

// blockOf is the rule that holds a unit back which waits; nil where none does.
func (l *Leader) blockOf(u *unit) *rule.Block {
	if standingOf(u) != rule.Waits {
		return nil
	}
	if b := l.queues.Holds(u.record.Queue, u.key); b != nil {
		return b
	}
	return l.queues.Bounds(u.record.Queue, startsWith(u))
}

// policyFor is the policy by which places for work of a queue are chosen now.
func (l *Leader) policyFor(queue string) place.Policy {
	return l.learner.Policy(cmp.Or(l.queues.Rules(queue).Policy, l.rules.PlacementPolicy), l.state)
}

// setQueueRules takes over the rules of a queue as its object has them.
func (l *Leader) setQueueRules(name string) {
	var rules rule.Rules
	if k := l.objects.Queues.Get(name); k != nil {
		rules = edit.QueueRules(&k.Object)
	}
	l.queues.SetRules(name, rules)
}

// loadQueueRules takes over the rules of all queues.
func (l *Leader) loadQueueRules() error {
	for _, name := range l.objects.Queues.Names() {
		l.setQueueRules(name)
	}
	return nil
}

// changesQueue has the write of a queue followed by its rules.
func (l *Leader) changesQueue(w edit.Write) edit.Write {
	landed := w.Landed
	w.Landed = func(rev resource.Revision) {
		landed(rev)
		l.setQueueRules(w.Queue)
	}
	return w
}

// Members implements edit.Lines.
func (l judged) Members(queue string) (waiting, running int) {
	c := l.queues.Count(queue)
	return c.Waiting, c.Running
}

// refusesEntry refuses new members of a queue: named says whether the work names the
// queue itself, and together is how many of the members start at once.
func (l *Leader) refusesEntry(namespace, queue string, named bool, members, together int) *api.Status {
	field := "spec.queue"
	if !named {
		field = "spec.defaultQueue of namespace " + namespace
	}
	if status := l.unknownQueue(field, queue); status != nil {
		return status
	}
	rules, count := l.queues.Rules(queue), l.queues.Count(queue)
	switch l.queues.Enters(queue, members, together) {
	case rule.QueueClosed:
		return api.Errorf(403, "%s: queue %s is Closed and takes no new work: name another queue, or ask an operator to open it", field, queue)
	case rule.TooMany:
		status := api.Errorf(429, "queue %s has %d of %d waiting members: there is no room for %d more; submit again once some have started, or ask an operator to raise spec.maxWaitingMembers",
			queue, count.Waiting, rules.MaxWaiting, members)
		status.Reason = api.TooManyObjects
		return status
	case rule.NeverRuns:
		return api.Errorf(422, "%s: %d members start together, and queue %s lets %d run: ask for fewer, name another queue, or ask an operator to raise spec.maxRunningMembers",
			field, together, queue, rules.MaxRunning)
	case rule.Admitted:
	}
	return nil
}

// unknownQueue refuses a queue that nothing has. Until an operator has written a queue,
// each name is a queue.
func (l *Leader) unknownQueue(field, queue string) *api.Status {
	if l.objects.Queues.Len() == 0 || queue == DefaultQueue || l.objects.Queues.Get(queue) != nil || l.queues.Has(queue) {
		return nil
	}
	known := slices.Compact(slices.Sorted(slices.Values(append(append(l.objects.Queues.Names(), l.queues.Named()...), DefaultQueue))))
	if near := spelling.Nearest(queue, known, 2); near != "" {
		return api.Errorf(422, "%s: there is no queue %q; is %q meant?", field, queue, near)
	}
	return api.Errorf(422, "%s: there is no queue %q: muster get queues lists the queues; an operator may create it", field, queue)
}

// refusesQueue refuses a submission by the rules of its queue.
func (l *Leader) refusesQueue(s *submission) *api.Status {
	first, members := s.units[0], 0
	for _, u := range s.units {
		members += u.record.Members
	}
	named, together := false, first.record.Members
	if s.job != nil {
		named = s.job.doc.Spec.Queue != ""
	} else {
		named = first.allocation.Spec.Queue != ""
		together = max(together, first.allocation.Group().MinMembers)
	}
	return l.refusesEntry(first.record.Namespace, first.record.Queue, named, members, together)
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
