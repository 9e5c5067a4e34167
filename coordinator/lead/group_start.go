package lead

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
)

// seat gives a new unit of a group its place in the order: that of the group's first
// member while the group gathers, else its own arrival.
func (l *Leader) seat(u *work.Unit) {
	rule := u.Allocation.Group()
	l.setStartBy(u, rule.MaxWait)
	if !rule.IsGang() {
		return
	}
	place := &record.GangPlace{First: u.Record.Sequence, SinceMillis: l.post.Millis(), MinMembers: rule.MinMembers}
	if g := l.work.Groups[work.GroupKey(u.Record.Namespace, rule.ID)]; g != nil && !g.IsOver() {
		*place = *g.Units[0].Record.Gang
		if !g.HasFormed() {
			u.SetSequence(place.First)
			u.SetStartBy(startBy(place.SinceMillis, rule.MaxWait))
		}
	}
	u.SetGangPlace(place)
}

// checkGroup refuses an allocation that contradicts the members of its group, or whose
// group no transaction can start.
func (l *Leader) checkGroup(u *work.Unit) *api.Status {
	if u.Allocation == nil {
		return nil
	}
	rule, ns := u.Allocation.Group(), u.Record.Namespace
	if !rule.IsGang() {
		if g := l.work.Groups[work.GroupKey(ns, rule.ID)]; g != nil && rule.ID != "" && !g.IsOver() {
			return differs("minMembers", "1", fmt.Sprint(g.Rule.MinMembers), g)
		}
		return nil
	}
	if ops := sched.GangOps * rule.MinMembers; ops > l.post.MaxOps() {
		return api.Errorf(422, "spec.gangScheduling.minMembers: %d members of a group start in one transaction of %d operations, the store takes %d; raise etcd's --max-txn-ops, or submit a Job",
			rule.MinMembers, ops, l.post.MaxOps())
	}
	g := l.work.Groups[work.GroupKey(ns, rule.ID)]
	if g == nil || g.IsOver() {
		return nil
	}
	if field, own, other := rule.DiffersFrom(g.Rule); field != "" {
		return differs(field, own, other, g)
	}
	for _, o := range g.Units {
		if key, theirs := u.SubgroupKey(), o.SubgroupKey(); u.SharesName(o) && key != theirs && !o.Phase().Ended() {
			return api.Errorf(422, "spec.gangScheduling.subgroup.topologyKey: %s; allocation %s, a member of the same subgroup %s of group %s, has %s: all members of a subgroup have the same",
				key, o.Record.Name, u.SubgroupName(), g.ID, theirs)
		}
	}
	other := g.Units[0].Record
	switch {
	case u.Record.Queue != other.Queue:
		return differs("queue", u.Record.Queue, other.Queue, g)
	case u.Record.Priority != other.Priority:
		return differs("priority", fmt.Sprint(u.Record.Priority), fmt.Sprint(other.Priority), g)
	}
	return nil
}

// memberOverQuota refuses a member of a group whose own request quota refuses, where the
// namespace has work over quota refused: the sum of the group is tried later, once all
// have arrived.
func (l *Leader) memberOverQuota(u *work.Unit) *api.Status {
	if u.Allocation == nil || !u.Allocation.Group().IsGang() || l.queuesOverQuota(u.Record.Namespace) {
		return nil
	}
	short := l.judge(u)
	if short == nil || short.Victims != nil {
		return nil
	}
	l.removeConsumer(u)
	return overQuota(l.quotas.Reasons(short))
}

// differs is the refusal of a member that differs from its group.
func differs(field, own, other string, g *work.Group) *api.Status {
	path := "spec.gangScheduling." + field
	if field == "queue" || field == "priority" {
		path = "spec." + field
	}
	return api.Errorf(422, "%s: %s; allocation %s, a member of the same group %s, has %s: all members of a group have the same",
		path, own, g.Units[0].Record.Name, g.ID, other)
}

// offerGroup offers the units of a group that has not started, once enough of them
// have arrived; until then it holds them.
func (l *Leader) offerGroup(g *work.Group) {
	ready := g.Ready()
	if len(ready) < g.Rule.MinMembers || l.isHeldByQueue(ready[0]) {
		ready = nil
	}
	if !slices.Equal(ready, g.Offered) {
		g.SetOffered(ready)
		for _, u := range g.Units {
			l.noteWaiting(u)
			l.notify(u)
		}
	}
	isReady := make(map[*work.Unit]bool, len(ready))
	for _, u := range ready {
		isReady[u] = true
	}
	for _, u := range g.Units {
		l.work.QueueNews.Note(u.Path)
		if !u.Waiting() || u.Attempt != nil || u.Life.EndAsked() || u.Life.IsBeingAdopted() || u.Life.Gone() {
			continue
		}
		if !isReady[u] {
			l.room.Hold(u.Key)
		}
	}
	if len(ready) == 0 {
		return
	}
	traits := l.traitsOfGroup(g, ready)
	for _, u := range ready {
		l.room.Offer(u.Key, traits, &u.Demand)
	}
}

// traitsOfGroup are those of all units that start together: one class, which other
// units make another.
func (l *Leader) traitsOfGroup(g *work.Group, units []*work.Unit) sched.Traits {
	first := units[0].Record
	t := sched.Traits{Gang: fmt.Sprintf("%s %d.%d %d", work.GroupKey(first.Namespace, g.ID), g.First.Epoch, g.First.Counter, g.Rounds), Namespace: first.Namespace, Queue: l.boundedQueue(units[0]), Priority: first.Priority, Right: sched.Lower}
	t.Demand = t.Gang
	for _, u := range units {
		t.Right = min(t.Right, u.Right())
		t.Relation = cmp.Or(t.Relation, u.Demand.Subject.Key(l.state.Relates(first.Namespace)))
	}
	return t
}

// tryGroup starts the attempts of the first units of a group, as many as start
// together, or returns why they wait.
func (l *Leader) tryGroup(g *work.Group, ready []*work.Unit) *sched.Evidence {
	units := ready[:g.Rule.MinMembers]
	if full := l.fillsQueue(units[0], len(units)); full != nil {
		return full
	}
	for _, u := range units {
		u.Wait.BeginTry(l.post.Now())
	}
	d := l.world().DecideGang(l.wantedOf(units))
	l.wakeAt(d.Until)
	if d.Action != sched.Wait {
		l.beginTogether(units, &d)
	}
	return d.Evidence
}

// wantedOf are units as decisions see them, with their charges up to date.
func (l *Leader) wantedOf(units []*work.Unit) []*sched.Unit {
	wanted, policy := make([]*sched.Unit, len(units)), l.policyFor(units[0].Record.Queue)
	for i, u := range units {
		l.bind(u)
		wanted[i] = u.Wanted()
		wanted[i].Demand.Policy = policy
		wanted[i].Alike = u.Shape + " " + u.Demand.Subject.Key(true)
	}
	return wanted
}

// together is the demand of the units of the group that start with a unit: of those that
// ask for the same and, where they have to go to one domain, of the others as well.
func (l *Leader) together(u *work.Unit) place.Unit {
	demand := u.DemandNow()
	if !u.Gathers() {
		return demand
	}
	alike := func(o *work.Unit) string { return o.Shape + " " + o.Demand.Subject.Key(true) }
	units := u.Group.Ready()
	units = units[:min(len(units), u.Group.Rule.MinMembers)]
	if !slices.Contains(units, u) {
		return demand
	}
	sets, of := []place.Set(nil), map[string]int{}
	for _, o := range units {
		at, known := of[alike(o)]
		if !known {
			at, of[alike(o)] = len(sets), len(sets)
			sets = append(sets, place.Set{Name: o.Record.Name, Request: o.Demand.Request, Constraints: o.Demand.Constraints, Topology: o.Demand.Topology.Whole()})
		}
		sets[at].Members += o.Demand.Members
	}
	demand.Members = sets[of[alike(u)]].Members
	switch {
	case demand.Topology == nil:
	case len(sets) > 1:
		demand.Sets, demand.Members = sets, len(units)
	default:
		demand.Topology = demand.Topology.Whole()
	}
	return demand
}

// offerGrowth lets the units of a group be tried that its start has left, now that
// the first ones run.
func (l *Leader) offerGrowth(g *work.Group) {
	g.SetOffered(nil)
	for _, u := range g.Units {
		if u.Waiting() && u.Attempt == nil && !u.Life.EndAsked() {
			l.offer(u)
		}
	}
}
