package work

import (
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/record"
)

// Group is a gang of allocations: the allocations of a namespace with the same groupId. Each
// allocation is a unit with a separate record and a separate charge. minMembers of the units
// start together; each other unit follows alone (ADR 55).
//
// A group has no key: the group consists of the units whose records name the same first
// arrival, and has formed once a unit of the group has started. So each leader finds a group
// in the state left by the leader before.
//
// Invariant: units ascend by path, and have the rule and the first arrival in common.
type Group struct {
	ID    string
	Rule  api.Group
	First record.Sequence
	Units []*Unit
	// Offered are the units offered last, and Rounds counts the changes of Offered.
	Offered []*Unit
	Rounds  int
}

// GroupKey names a group in Register.Groups.
func GroupKey(namespace, id string) string { return namespace + "/" + id }

// joinGroup takes a unit into the group named by the unit's record. A later group of the same
// name replaces an earlier group, whose units have all ended.
func (r *Register) joinGroup(u *Unit) {
	if u.Allocation == nil || u.Record.Gang == nil {
		return
	}
	rule := u.Allocation.Group()
	key := GroupKey(u.Record.Namespace, rule.ID)
	g := r.Groups[key]
	if g == nil || g.First.Compare(u.Record.Gang.First) < 0 {
		if g != nil {
			for _, o := range g.Units {
				o.setGroup(nil)
			}
		}
		g = &Group{ID: rule.ID, Rule: rule, First: u.Record.Gang.First}
		r.Groups[key] = g
	}
	if g.First != u.Record.Gang.First {
		return
	}
	at, _ := slices.BinarySearchFunc(g.Units, u.Path, func(u *Unit, path string) int { return strings.Compare(u.Path, path) })
	g.Units = slices.Insert(g.Units, at, u)
	u.setGroup(g)
}

// leaveGroup takes a unit out of the unit's group. A group without units is forgotten.
func (r *Register) leaveGroup(u *Unit) {
	g := u.Group
	if g == nil {
		return
	}
	g.Units = slices.DeleteFunc(g.Units, func(o *Unit) bool { return o == u })
	u.setGroup(nil)
	if key := GroupKey(u.Record.Namespace, g.ID); len(g.Units) == 0 && r.Groups[key] == g {
		delete(r.Groups, key)
	}
}

// HasFormed reports whether a unit of the group has started: from then on a waiting unit is
// growth.
func (g *Group) HasFormed() bool {
	return slices.ContainsFunc(g.Units, func(u *Unit) bool { return u.Record.Started != "" })
}

// IsOver reports whether all units have ended: the name is free for another group.
func (g *Group) IsOver() bool {
	return !slices.ContainsFunc(g.Units, func(u *Unit) bool { return !u.Phase().Ended() })
}

// Arrived counts the units waiting, or about to start.
func (g *Group) Arrived() (n int) {
	for _, u := range g.Units {
		if u.Stored != 0 && u.Waiting() && !u.Life.EndAsked() && !u.IsSuspended() {
			n++
		}
	}
	return n
}

// ArrivedWith is Arrived together with a unit, which may be about to be stored.
func (g *Group) ArrivedWith(u *Unit) int {
	n := g.Arrived()
	if u.Stored == 0 && !u.Life.EndAsked() && !u.IsSuspended() {
		n++
	}
	return n
}

// Ready returns the units ready to be tried together, in the order; none while an attempt of
// the group is undecided.
func (g *Group) Ready() []*Unit {
	var ready []*Unit
	for _, u := range g.Units {
		switch {
		case u.Attempt != nil && u.Waiting():
			return nil
		case u.Stored != 0 && u.Waiting() && !u.Life.EndAsked() && u.MayBeTried():
			ready = append(ready, u)
		}
	}
	slices.SortFunc(ready, func(a, b *Unit) int { return queue.Compare(a.Key, b.Key) })
	return ready
}

// SetOffered notes the units offered from now on.
func (g *Group) SetOffered(units []*Unit) {
	g.Offered = units
	g.Rounds++
}
