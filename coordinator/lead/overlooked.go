package lead

import (
	"iter"
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/coordinator/queue/rule"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// This file is what a simulation compares with the store and the ledgers, between
// two inputs (test/sim). Nothing of it changes what the leader does.

// Phase is a unit's, by its path; false where the leader knows no such unit.
func (l *Leader) Phase(path string) (api.Phase, bool) {
	u := l.work.Units[path]
	if u == nil {
		return "", false
	}
	return u.Phase(), true
}

// Offer is what placement knows of a node. It must not be changed.
func (l *Leader) Offer(id resource.NodeID) *cluster.Node { return &l.nodes[id].view }

// Accused reports whether a node is isolated.
func (l *Leader) Accused(id resource.NodeID) bool {
	n := l.nodes[id]
	return n != nil && n.violation() != nil
}

// Unheard are the terminal records that wait for nodes to tell of themselves.
func (l *Leader) Unheard() iter.Seq2[resource.TxID, map[resource.NodeID]bool] {
	return func(yield func(resource.TxID, map[resource.NodeID]bool) bool) {
		for tx, nodes := range l.retired.unheard {
			if !yield(tx, nodes) {
				return
			}
		}
	}
}

// Overlooked names, after a pass, a unit that waits for room and could begin on
// the state as it is: what made the room has woken nobody. "" where there is none.
// A unit that waits for something else is left out: a backoff, a Txn of its own,
// an adoption. So is everything where the alarm that wakes all is due.
func (l *Leader) Overlooked() string {
	if l.isAlarmDue() {
		return ""
	}
	for _, key := range l.room.Order().Head(l.room.Order().Len()) {
		u := l.work.Units[key.Path]
		if u == nil || !u.Waiting() || u.Life.EndAsked() || !u.MayBeTried() || u.Grows() || u.Gathers() && !slices.Contains(u.Group.Offered, u) {
			continue
		}
		if l.isHeldByQueue(u) {
			if l.room.Offered(key.Path) {
				return key.Path
			}
			continue
		}
		if !l.room.Offered(key.Path) || l.room.Asleep(key.Path) == nil || l.couldBegin(u) {
			return key.Path
		}
	}
	return ""
}

// Misqueued names a unit that may be tried although a rule of its queue holds it back,
// "" where there is none. Each unit is compared with each other one.
func (l *Leader) Misqueued() string {
	for _, key := range l.room.Order().Head(l.room.Order().Len()) {
		u, k := l.work.Units[key.Path], l.objects.Queues.Get(l.work.Units[key.Path].Record.Queue)
		if k == nil || !l.room.Offered(key.Path) {
			continue
		}
		isAhead := func(o *work.Unit) bool {
			part := standingOf(o)
			return o.Record.Queue == u.Record.Queue && (part == rule.Waits || part == rule.Starts) && o.Key.Compare(key) < 0 && !o.Key.ArrivedWith(key)
		}
		rules := edit.QueueRules(&k.Object)
		if rules.Hold || rules.Strict && slices.ContainsFunc(slices.Collect(maps.Values(l.work.Units)), isAhead) {
			return key.Path
		}
	}
	return ""
}

// couldBegin reports whether a unit could be admitted and placed now, or could
// begin a preemption, or claim its quota back.
func (l *Leader) couldBegin(u *work.Unit) bool {
	if u.Attempt != nil || l.fillsQueue(u, startsWith(u)) != nil {
		return false
	}
	if u.Gathers() {
		return l.couldGroupBegin(u.Group)
	}
	could := false
	l.eachForm(u, func() bool {
		could = l.couldBeginNow(u)
		return !could
	})
	return could
}

// couldBeginNow is couldBegin of the form that the unit has.
func (l *Leader) couldBeginNow(u *work.Unit) bool {
	if short := l.judge(u); short != nil {
		// A unit that had quota and no place when it was tried may claim once others
		// have taken that quota. That makes no room, and wakes nobody.
		e := l.evidenceOf(u).Of(u.Number)
		return e != nil && e.Short != nil && short.Victims != nil && l.couldClaim(u, short.Victims)
	}
	w, of := l.world(), u.Wanted()
	of.Demand.Policy = l.policyFor(u.Record.Queue) // it decides whether members that differ find a place
	if u.Demand.TakesAnyModel() {                  // quota of its model may hold it back
		return l.wouldStart(of)
	}
	demand := of.Demand
	demand.Avoid = u.Wait.Avoid
	l.occupied()
	mark := l.state.Checkpoint()
	plan, ok := place.Place(l.state, demand)
	l.state.Rollback(mark)
	if ok {
		return w.TooWide(plan) == ""
	}
	if u.Right() != sched.Lower {
		return false
	}
	if leaving := w.Leaving(); len(leaving) > 0 {
		if _, ok := preempt.With(l.state, of.Demand, leaving); ok {
			return false
		}
	}
	if l.someoneEnds() {
		return false
	}
	found, ok := preempt.Find(l.state, of.Demand, u.Record.Priority, w.Holders(of, nil, w.StandingOf(of)))
	return ok && len(found.Victims) > 0 && w.OpsOfPreemption(of, found.Victims) <= l.post.MaxOps()
}

// wouldStart reports whether a decision on a unit now would begin an attempt, for which
// no other unit is leaving yet. It changes nothing.
func (l *Leader) wouldStart(of *sched.Unit) bool {
	l.occupied()
	room, charges := l.state.Checkpoint(), l.quotas.Trees().Checkpoint()
	d := l.world().Decide(of)
	must(l.quotas.Trees().Rollback(charges))
	l.state.Rollback(room)
	return d.Action == sched.Start || d.Action == sched.Preempt && !l.someoneEnds()
}

// couldGroupBegin reports whether the units of a group that start together could.
func (l *Leader) couldGroupBegin(g *work.Group) bool {
	ready := g.Ready()
	if len(ready) < g.Rule.MinMembers {
		return false
	}
	l.occupied()
	wanted := l.wantedOf(ready[:g.Rule.MinMembers])
	room, charges := l.state.Checkpoint(), l.quotas.Trees().Checkpoint()
	d := l.world().DecideGang(wanted)
	must(l.quotas.Trees().Rollback(charges))
	l.state.Rollback(room)
	return d.Action == sched.Start || d.Action == sched.Preempt && !l.someoneEnds()
}

// couldClaim reports whether a unit could begin to evict those that quota names.
func (l *Leader) couldClaim(u *work.Unit, named []string) bool {
	if u.Stored == 0 || u.Policy == work.PreemptNever || l.someoneEnds() {
		return false
	}
	if slices.ContainsFunc(l.work.UnitsOf(named), func(v *work.Unit) bool { return !v.Evictable() || l.isContested(v) }) {
		return false
	}
	w, of := l.world(), u.Wanted()
	standing, may := w.MayClaim(of, named)
	if !may {
		return false
	}
	plan, ok := preempt.Find(l.state, of.Demand, u.Record.Priority, w.Holders(of, named, standing))
	if !ok {
		return false
	}
	victims := slices.Clone(named)
	for _, v := range plan.Victims {
		if !slices.Contains(victims, v) {
			victims = append(victims, v)
		}
	}
	return w.OpsOfPreemption(of, victims) <= l.post.MaxOps()
}
