package lead

import (
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/record"
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
func (r *register) joinGroup(u *unit) {
	if u.allocation == nil || u.record.Gang == nil {
		return
	}
	rule := u.allocation.Group()
	key := groupKey(u.record.Namespace, rule.ID)
	g := r.groups[key]
	if g == nil || g.first.Compare(u.record.Gang.First) < 0 {
		if g != nil {
			for _, o := range g.units {
				o.setGroup(nil)
			}
		}
		g = &group{id: rule.ID, rule: rule, first: u.record.Gang.First}
		r.groups[key] = g
	}
	if g.first != u.record.Gang.First {
		return
	}
	at, _ := slices.BinarySearchFunc(g.units, u.path, func(u *unit, path string) int { return strings.Compare(u.path, path) })
	g.units = slices.Insert(g.units, at, u)
	u.setGroup(g)
}

// leaveGroup takes a unit out of its group. A group without units is forgotten.
func (r *register) leaveGroup(u *unit) {
	g := u.group
	if g == nil {
		return
	}
	g.units = slices.DeleteFunc(g.units, func(o *unit) bool { return o == u })
	u.setGroup(nil)
	if key := groupKey(u.record.Namespace, g.id); len(g.units) == 0 && r.groups[key] == g {
		delete(r.groups, key)
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
		if u.stored != 0 && u.waiting() && !u.life.EndAsked() && !u.isSuspended() {
			n++
		}
	}
	return n
}

// arrivedWith is arrived with a unit that may be about to be stored.
func (g *group) arrivedWith(u *unit) int {
	n := g.arrived()
	if u.stored == 0 && !u.life.EndAsked() && !u.isSuspended() {
		n++
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
		case u.stored != 0 && u.waiting() && !u.life.EndAsked() && u.mayBeTried():
			ready = append(ready, u)
		}
	}
	slices.SortFunc(ready, func(a, b *unit) int { return queue.Compare(a.key, b.key) })
	return ready
}

// setOffered notes the units that are offered from now on.
func (g *group) setOffered(units []*unit) {
	g.offered = units
	g.rounds++
}
