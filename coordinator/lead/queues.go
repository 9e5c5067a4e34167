package lead

import (
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/queue/rule"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/spelling"
)

// This file carries out the rules of queues, which package rule keeps. A unit that a
// rule holds back is held in the order; a unit over the bound of running members sleeps
// with its class until members of the queue end (E8). No rule ends an attempt, but for
// Hold, which gives up the attempts that are undecided.

// takeQueueNews takes over what has changed in queues, and offers or holds the units
// that the rules hold back no more, or from now on.
func (l *Leader) takeQueueNews() {
	for l.work.QueueNews.Any() || l.queues.HasNews() {
		l.noteQueues()
		for _, n := range l.queues.TakeNews() {
			l.followQueue(n)
		}
	}
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
	offered := map[*work.Group]bool{}
	for _, path := range paths {
		l.followRule(l.work.Units[path], offered)
	}
}

// followRule offers a unit that waits, or holds it, as the rules of its queue say now.
// offered are the groups that were offered already.
func (l *Leader) followRule(u *work.Unit, offered map[*work.Group]bool) {
	switch {
	case u == nil || u.Life.EndAsked():
	case u.Attempt != nil:
		if l.isOnHold(u) && u.Waiting() && u.Attempt.MayCommit() && u.Attempt.Machine.Undecided() {
			l.step(u.Attempt, txn.BudgetSpent{})
		}
	case u.Adopting != "":
		if l.isOnHold(u) {
			l.abandon(l.adoptions[u.Adopting])
		}
	case !u.Life.IsBeingAdopted():
		if !u.Gathers() {
			l.offer(u)
		} else if !offered[u.Group] {
			offered[u.Group] = true
			l.offer(u)
		}
		l.storeHeld(u)
		l.noteWaiting(u)
		l.notify(u)
	}
}

// storeHeld stores a new unit that a rule of its queue holds back: no trial will.
func (l *Leader) storeHeld(u *work.Unit) {
	if u.Create != nil && u.Life.Phase() == work.Creating && !u.Life.IsBeingWritten() && !l.room.Offered(u.Path) {
		l.enqueue(u)
	}
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
		return api.Errorf(429, "queue %s has %d of %d waiting members: there is no room for %d more; submit again once some have started, or ask an operator to raise spec.maxWaitingMembers",
			queue, count.Waiting, rules.MaxWaiting, members).Because(api.TooManyObjects)
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
	if l.objects.Queues.Len() == 0 || queue == api.DefaultQueue || l.objects.Queues.Get(queue) != nil || l.queues.Has(queue) {
		return nil
	}
	known := slices.Compact(slices.Sorted(slices.Values(append(append(l.objects.Queues.Names(), l.queues.Named()...), api.DefaultQueue))))
	if near := spelling.Nearest(queue, known, 2); near != "" {
		return api.Errorf(422, "%s: there is no queue %q; is %q meant?", field, queue, near)
	}
	return api.Errorf(422, "%s: there is no queue %q: muster get queues lists the queues; an operator may create it", field, queue)
}

// refusesQueue refuses a submission by the rules of its queue.
func (l *Leader) refusesQueue(s *submission) *api.Status {
	first, members := s.units[0], 0
	for _, u := range s.units {
		members += u.Record.Members
	}
	named, together := false, first.Record.Members
	if s.job != nil {
		named = s.job.Doc.Spec.Queue != ""
	} else {
		named = first.Allocation.Spec.Queue != ""
		together = max(together, first.Allocation.Group().MinMembers)
	}
	return l.refusesEntry(first.Record.Namespace, first.Record.Queue, named, members, together)
}
