package lead

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
)

// seat gives a new unit of a group its place in the order: that of the group's first
// member while the group gathers, else its own arrival.
func (l *Leader) seat(u *unit) {
	rule := u.allocation.Group()
	l.setStartBy(u, rule.MaxWait)
	if !rule.IsGang() {
		return
	}
	place := &record.GangPlace{First: u.record.Sequence, SinceMillis: l.post.Millis(), MinMembers: rule.MinMembers}
	if g := l.work.groups[groupKey(u.record.Namespace, rule.ID)]; g != nil && !g.isOver() {
		*place = *g.units[0].record.Gang
		if !g.hasFormed() {
			u.setSequence(place.First)
			u.setStartBy(startBy(place.SinceMillis, rule.MaxWait))
		}
	}
	u.setGangPlace(place)
}

// checkGroup refuses an allocation that contradicts the members of its group, or whose
// group no transaction can start.
func (l *Leader) checkGroup(u *unit) *api.Status {
	if u.allocation == nil {
		return nil
	}
	rule, ns := u.allocation.Group(), u.record.Namespace
	if !rule.IsGang() {
		if g := l.work.groups[groupKey(ns, rule.ID)]; g != nil && rule.ID != "" && !g.isOver() {
			return differs("minMembers", "1", fmt.Sprint(g.rule.MinMembers), g)
		}
		return nil
	}
	if ops := sched.GangOps * rule.MinMembers; ops > l.post.MaxOps() {
		return api.Errorf(422, "spec.gangScheduling.minMembers: %d members of a group start in one transaction of %d operations, the store takes %d; raise etcd's --max-txn-ops, or submit a Job",
			rule.MinMembers, ops, l.post.MaxOps())
	}
	g := l.work.groups[groupKey(ns, rule.ID)]
	if g == nil || g.isOver() {
		return nil
	}
	if field, own, other := rule.DiffersFrom(g.rule); field != "" {
		return differs(field, own, other, g)
	}
	for _, o := range g.units {
		if key, theirs := u.subgroupKey(), o.subgroupKey(); u.sharesName(o) && key != theirs && !o.phase().Ended() {
			return api.Errorf(422, "spec.gangScheduling.subgroup.topologyKey: %s; allocation %s, a member of the same subgroup %s of group %s, has %s: all members of a subgroup have the same",
				key, o.record.Name, u.subgroupName(), g.id, theirs)
		}
	}
	other := g.units[0].record
	switch {
	case u.record.Queue != other.Queue:
		return differs("queue", u.record.Queue, other.Queue, g)
	case u.record.Priority != other.Priority:
		return differs("priority", fmt.Sprint(u.record.Priority), fmt.Sprint(other.Priority), g)
	}
	return nil
}

// memberOverQuota refuses a member of a group whose own request quota refuses, where the
// namespace has work over quota refused: the sum of the group is tried later, once all
// have arrived.
func (l *Leader) memberOverQuota(u *unit) *api.Status {
	if u.allocation == nil || !u.allocation.Group().IsGang() || l.queuesOverQuota(u.record.Namespace) {
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
func differs(field, own, other string, g *group) *api.Status {
	path := "spec.gangScheduling." + field
	if field == "queue" || field == "priority" {
		path = "spec." + field
	}
	return api.Errorf(422, "%s: %s; allocation %s, a member of the same group %s, has %s: all members of a group have the same",
		path, own, g.units[0].record.Name, g.id, other)
}

// offerGroup offers the units of a group that has not started, once enough of them
// have arrived; until then it holds them.
func (l *Leader) offerGroup(g *group) {
	ready := g.ready()
	if len(ready) < g.rule.MinMembers || l.isHeldByQueue(ready[0]) {
		ready = nil
	}
	if !slices.Equal(ready, g.offered) {
		g.setOffered(ready)
		for _, u := range g.units {
			l.noteWaiting(u)
			l.notify(u)
		}
	}
	isReady := make(map[*unit]bool, len(ready))
	for _, u := range ready {
		isReady[u] = true
	}
	for _, u := range g.units {
		l.work.queueNews.note(u.path)
		if !u.waiting() || u.attempt != nil || u.life.EndAsked() || u.life.IsBeingAdopted() || u.life.Gone() {
			continue
		}
		if !isReady[u] {
			l.room.Hold(u.key)
		}
	}
	if len(ready) == 0 {
		return
	}
	traits := l.traitsOfGroup(g, ready)
	for _, u := range ready {
		l.room.Offer(u.key, traits, &u.Demand)
	}
}

// traitsOfGroup are those of all units that start together: one class, which other
// units make another.
func (l *Leader) traitsOfGroup(g *group, units []*unit) sched.Traits {
	first := units[0].record
	t := sched.Traits{Gang: fmt.Sprintf("%s %d.%d %d", groupKey(first.Namespace, g.id), g.first.Epoch, g.first.Counter, g.rounds), Namespace: first.Namespace, Queue: l.boundedQueue(units[0]), Priority: first.Priority, Right: sched.Lower}
	t.Demand = t.Gang
	for _, u := range units {
		t.Right = min(t.Right, u.right())
		t.Relation = cmp.Or(t.Relation, u.Demand.Subject.Key(l.state.Relates(first.Namespace)))
	}
	return t
}

// tryGroup starts the attempts of the first units of a group, as many as start
// together, or returns why they wait.
func (l *Leader) tryGroup(g *group, ready []*unit) *sched.Evidence {
	units := ready[:g.rule.MinMembers]
	if full := l.fillsQueue(units[0], len(units)); full != nil {
		return full
	}
	for _, u := range units {
		u.beginTry(l.post.Now())
	}
	d := l.world().DecideGang(l.wantedOf(units))
	l.wakeAt(d.Until)
	if d.Action != sched.Wait {
		l.beginTogether(units, &d)
	}
	return d.Evidence
}

// wantedOf are units as decisions see them, with their charges up to date.
func (l *Leader) wantedOf(units []*unit) []*sched.Unit {
	wanted, policy := make([]*sched.Unit, len(units)), l.policyFor(units[0].record.Queue)
	for i, u := range units {
		l.bind(u)
		wanted[i] = u.wanted()
		wanted[i].Demand.Policy = policy
		wanted[i].Alike = u.Shape + " " + u.Demand.Subject.Key(true)
	}
	return wanted
}

// together is the demand of the units of the group that start with a unit: of those that
// ask for the same and, where they have to go to one domain, of the others as well.
func (l *Leader) together(u *unit) place.Unit {
	demand := u.demand()
	if !u.gathers() {
		return demand
	}
	alike := func(o *unit) string { return o.Shape + " " + o.Demand.Subject.Key(true) }
	units := u.group.ready()
	units = units[:min(len(units), u.group.rule.MinMembers)]
	if !slices.Contains(units, u) {
		return demand
	}
	sets, of := []place.Set(nil), map[string]int{}
	for _, o := range units {
		at, known := of[alike(o)]
		if !known {
			at, of[alike(o)] = len(sets), len(sets)
			sets = append(sets, place.Set{Name: o.record.Name, Request: o.Demand.Request, Constraints: o.Demand.Constraints, Topology: o.Demand.Topology.Whole()})
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
func (l *Leader) offerGrowth(g *group) {
	g.setOffered(nil)
	for _, u := range g.units {
		if u.waiting() && u.attempt == nil && !u.life.EndAsked() {
			l.offer(u)
		}
	}
}
