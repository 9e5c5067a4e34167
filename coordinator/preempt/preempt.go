// Package preempt selects the victims of a preemption: the whole units of lower
// priority that are evicted to make room for a unit, and the place of the unit
// afterwards. The package does not decide whether the unit may evict other units (the
// document's policy and coordinator/quota decide that), and it changes no state.
//
// # The choice
//
// Units are valued by priority, then by age: of equal priority the older unit is
// worth more, then the unit with the lower name. Of two sets that make room the better
// set has, in order:
//
//  1. fewer units of the highest priority in which the two differ in number,
//     so that no unit is evicted to spare any number of lower ones, and among
//     equals the fewest are;
//  2. the less valuable unit in the first place where the two sets, each ordered from
//     its most valuable unit down, differ.
//
// A part of a set is better than the set, so the best set has no superfluous
// unit. This is exact for a unit of one member and for up to maxExact
// units that may be evicted, within the bounds on steps below. Beyond, a gang's
// set is gathered greedily, the least loss per member first, none above the
// lowest priority whose eviction can make room, and then reduced: no single
// unit of it is superfluous, but another set may be better. The same holds for a unit
// under rules about other units, for a unit whose members differ and for units that start
// together; their sets are gathered by amounts, and by trials where these do not suffice. Of a
// gang with rules about domains, each domain of the narrowest required level has such a set, and
// the best of these is chosen; a domain whose set by amounts is no better is left out. All these
// are exact, too, where there are at most mostSets sets of units that may be evicted, of all
// domains together.
//
// Pure: no clock, no I/O, no result depends on map order or on floats. The
// steps that are counted are steps of the search, so that a bound is met at the
// same point everywhere.
package preempt

import (
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
)

// Holder is a unit that holds something, or a gang of several units that give way
// together. Its Unit is unique.
type Holder struct {
	Unit     string
	Mates    []string // the further units of a gang
	Priority int32
	Started  int64 // revision of its commit: the greater is newer and goes first
	Parts    []Part
	Pinned   bool // may not be evicted
}

// Part is the assignment of one member of a holder on a node.
type Part = cluster.Part

// Plan is a way to make room.
type Plan struct {
	// Members has the place of each member after the eviction of the victims. A part
	// of the resources is free now, the victims hold the rest.
	Members []place.Choice
	Victims []string // units without their mates, ascending; empty where there is room at once
}

// Find returns the best set of victims for a unit of the given priority, as
// the package comment orders them; false if none makes room. A victim's
// priority is strictly lower, it is not pinned, and all its parts are on nodes
// that are Ready: an agent that does not answer frees no resources. The State is
// unchanged afterwards.
func Find(state *cluster.State, u place.Unit, priority int32, holders []Holder) (Plan, bool) {
	return indexFor(state, &u, holders).Find(u, priority)
}

// indexFor is an index for one unit.
func indexFor(state *cluster.State, u *place.Unit, holders []Holder) *Index {
	if isRelated(state, u) || u.Topology != nil || u.Sets != nil {
		return NewIndex(state, holders)
	}
	return newIndex(state, holders, func(n *cluster.Node) bool { return serves(n, u) })
}

// With returns the place of the unit after the end of exactly these holders; false if
// there is no room then. With does not check the right to evict them. A part that its
// node does not have, or counts as free already, frees no resources. The State is
// unchanged afterwards.
func With(state *cluster.State, u place.Unit, victims []Holder) ([]place.Choice, bool) {
	mark := state.Checkpoint()
	defer state.Rollback(mark)
	if isRelated(state, &u) {
		u.Without = slices.Clip(u.Without)
		u.Without = append(u.Without, unitsOf(victims)...)
	}
	give(state, victims)
	return place.Place(state, u)
}

// unitsOf are the units of holders, with their mates.
func unitsOf(holders []Holder) []string {
	var units []string
	for i := range holders {
		units = append(append(units, holders[i].Unit), holders[i].Mates...)
	}
	return units
}

// give frees the parts of holders.
func give(state *cluster.State, victims []Holder) {
	for _, v := range victims {
		for _, p := range v.Parts {
			if n := state.Node(p.Node); n != nil && n.Host != nil && n.Free != nil {
				_ = state.Give(n, p.Assignment) // refused as a whole: nothing is freed
			}
		}
	}
}
