package lead

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
)

// group is a gang of allocations: those of one namespace with the same groupId. Each
// is a unit with a record and a charge of its own. minMembers of them start together;
// the others follow one by one (ADR 55).
//
// A group has no key: it is the units whose records name the same first arrival, and
// it has formed once one of them has started. So each leader finds it as the last one
// left it.
//
// Invariant: units ascend by path, and have the rule and the first arrival in common.
type group struct {
	id    string
	rule  api.Group
	first record.Sequence
	units []*unit
	// offered are the units that were offered last, and rounds counts their changes.
	offered []*unit
	rounds  int
}

func groupKey(namespace, id string) string { return namespace + "/" + id }

// joinGroup takes a unit into the group that its record names. A later group of the
// same name replaces an earlier one, all of whose units have ended.
func (v *view) joinGroup(u *unit) {
	if u.allocation == nil || u.record.Gang == nil {
		return
	}
	rule := u.allocation.Group()
	key := groupKey(u.record.Namespace, rule.ID)
	g := v.groups[key]
	if g == nil || g.first.Compare(u.record.Gang.First) < 0 {
		if g != nil {
			for _, o := range g.units {
				o.setGroup(nil)
			}
		}
		g = &group{id: rule.ID, rule: rule, first: u.record.Gang.First}
		v.groups[key] = g
	}
	if g.first != u.record.Gang.First {
		return
	}
	at, _ := slices.BinarySearchFunc(g.units, u.path, func(u *unit, path string) int { return strings.Compare(u.path, path) })
	g.units = slices.Insert(g.units, at, u)
	u.setGroup(g)
}

// leaveGroup takes a unit out of its group. A group without units is forgotten.
func (v *view) leaveGroup(u *unit) {
	g := u.group
	if g == nil {
		return
	}
	g.units = slices.DeleteFunc(g.units, func(o *unit) bool { return o == u })
	u.setGroup(nil)
	if key := groupKey(u.record.Namespace, g.id); len(g.units) == 0 && v.groups[key] == g {
		delete(v.groups, key)
	}
}

// hasFormed reports whether a unit of the group has started: what waits is growth.
func (g *group) hasFormed() bool {
	return slices.ContainsFunc(g.units, func(u *unit) bool { return u.record.Started != "" })
}

// isOver reports whether all units have ended: the name is free for another group.
func (g *group) isOver() bool {
	return !slices.ContainsFunc(g.units, func(u *unit) bool { return !u.phase().Ended() })
}

// arrived counts the units that wait, or are about to start.
func (g *group) arrived() (n int) {
	for _, u := range g.units {
		if u.stored != 0 && u.waiting() && u.ending == nil && !u.isSuspended() {
			n++
		}
	}
	return n
}

// ready are the units that may be tried together, in the order; none while an attempt
// of the group is undecided.
func (g *group) ready() []*unit {
	var ready []*unit
	for _, u := range g.units {
		switch {
		case u.attempt != nil && u.waiting():
			return nil
		case u.stored != 0 && u.waiting() && u.ending == nil && u.mayBeTried():
			ready = append(ready, u)
		}
	}
	slices.SortFunc(ready, func(a, b *unit) int { return queue.Compare(a.key, b.key) })
	return ready
}

// gathers reports whether the unit belongs to a group that has not started yet.
func (u *unit) gathers() bool { return u.group != nil && !u.group.hasFormed() }

// awaitsMembers reports whether too few units of the group have arrived.
func (u *unit) awaitsMembers() bool {
	return u.gathers() && u.group.arrived() < u.group.rule.MinMembers
}

// seat gives a new unit of a group its place in the order: that of the group's first
// member while the group gathers, else its own arrival.
func (l *Leader) seat(u *unit) {
	rule := u.allocation.Group()
	l.setStartBy(u, rule.MaxWait)
	if !rule.IsGang() {
		return
	}
	place := &record.GangPlace{First: u.record.Sequence, SinceMillis: l.millis(), MinMembers: rule.MinMembers}
	if g := l.groups[groupKey(u.record.Namespace, rule.ID)]; g != nil && !g.isOver() {
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
		if g := l.groups[groupKey(ns, rule.ID)]; g != nil && rule.ID != "" && !g.isOver() {
			return differs("minMembers", "1", fmt.Sprint(g.rule.MinMembers), g)
		}
		return nil
	}
	if ops := sched.GangOps * rule.MinMembers; ops > l.maxOps {
		return api.Errorf(422, "spec.gangScheduling.minMembers: %d members of a group start in one transaction of %d operations, the store takes %d; raise etcd's --max-txn-ops, or submit a Job",
			rule.MinMembers, ops, l.maxOps)
	}
	g := l.groups[groupKey(ns, rule.ID)]
	if g == nil || g.isOver() {
		return nil
	}
	if field, own, other := rule.DiffersFrom(g.rule); field != "" {
		return differs(field, own, other, g)
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
	for _, u := range g.units {
		l.queueNews.note(u.path)
		if !u.waiting() || u.attempt != nil || u.ending != nil || u.isBeingAdopted() || u.gone {
			continue
		}
		if !slices.Contains(ready, u) {
			l.room.Hold(u.key)
		}
	}
	for _, u := range ready {
		l.room.Offer(u.key, l.traitsOfGroup(g, ready), &u.Demand)
	}
}

// setOffered notes the units that are offered from now on.
func (g *group) setOffered(units []*unit) {
	g.offered = units
	g.rounds++
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
		u.beginTry(l.now)
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

// together is the demand of the units of the group that start with a unit and ask for
// the same.
func (l *Leader) together(u *unit) place.Unit {
	demand := u.Demand
	if !u.gathers() {
		return demand
	}
	alike := func(o *unit) string { return o.Shape + " " + o.Demand.Subject.Key(true) }
	units := u.group.ready()
	units = units[:min(len(units), u.group.rule.MinMembers)]
	if !slices.Contains(units, u) {
		return demand
	}
	demand.Members = 0
	for _, o := range units {
		if alike(o) == alike(u) {
			demand.Members += o.Demand.Members
		}
	}
	return demand
}

// offerGrowth lets the units of a group be tried that its start has left, now that
// the first ones run.
func (l *Leader) offerGrowth(g *group) {
	g.setOffered(nil)
	for _, u := range g.units {
		if u.waiting() && u.attempt == nil && u.ending == nil {
			l.offer(u)
		}
	}
}

// gangName is the name of the unit's group among occupants, "" for none.
func (u *unit) gangName() string {
	if u.group == nil {
		return ""
	}
	return fmt.Sprintf("%s %d.%d", groupKey(u.record.Namespace, u.group.id), u.group.first.Epoch, u.group.first.Counter)
}
