// Package preempt decides who gives way so that a unit has room: which whole
// units of lower priority are evicted, and where the unit then goes. It does
// not decide whether anybody may be evicted for it (the document's policy and
// coordinator/quota do), reserves nothing and evicts nobody.
//
// # The choice
//
// Units are valued by priority, then by age: of equal priority the older is
// worth more, then the lower name. Of two sets that make room the better one
// has, in order:
//
//  1. fewer units of the highest priority in which the two differ in number,
//     so that no unit is evicted to spare any number of lower ones, and among
//     equals the fewest are;
//  2. the less valuable one in the first place where the two, each ordered from
//     its most valuable unit down, differ.
//
// A part of a set is better than the set, so the best one has nothing
// superfluous. This is exact for a unit of one member and for up to maxExact
// units that may give way, within the bounds on steps below. Beyond, a gang's
// set is gathered greedily, the least loss per member first, none above the
// lowest priority whose eviction can make room, and then reduced: no single
// unit of it is superfluous, but another set may be better.
//
// Pure: no clock, no I/O, no result depends on map order or on floats. The
// steps that are counted are steps of the search, so that a bound is met at the
// same point everywhere.
package preempt

import (
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
)

// Holder is a unit that holds something. Its Unit is unique.
type Holder struct {
	Unit     string
	Priority int32
	Started  int64 // revision of its commit: the greater is newer and goes first
	Parts    []Part
	Pinned   bool // may not be evicted
}

// Part is the assignment of one member of a holder on a node.
type Part = cluster.Part

// Plan is a way to make room.
type Plan struct {
	// Members name what each member gets once the victims are gone: some of it
	// is free, the rest is theirs.
	Members []place.Choice
	Victims []string // units, ascending; empty where there is room at once
}

// Find returns the best set of victims for a unit of the given priority, as
// the package comment orders them; false if none makes room. A victim's
// priority is strictly lower, it is not pinned, and all its parts are on nodes
// that are Ready: what an agent out of reach holds is freed by nobody. The State is
// afterwards as it was.
func Find(state *cluster.State, u place.Unit, priority int32, holders []Holder) (Plan, bool) {
	return indexFor(state, &u, holders).Find(u, priority)
}

// indexFor is an index for one unit.
func indexFor(state *cluster.State, u *place.Unit, holders []Holder) *Index {
	return newIndex(state, holders, func(n *cluster.Node) bool { return serves(n, u) })
}

// With returns where the unit goes with exactly these holders gone; false if
// it has no room then. Whoever they are, they are not judged. A part that its node
// does not have, or counts as free already, frees nothing. The State is afterwards
// as it was.
func With(state *cluster.State, u place.Unit, victims []Holder) ([]place.Choice, bool) {
	mark := state.Checkpoint()
	defer state.Rollback(mark)
	for _, v := range victims {
		for _, p := range v.Parts {
			if n := state.Node(p.Node); n != nil && n.Host != nil && n.Free != nil {
				_ = state.Give(n, p.Assignment) // refused as a whole: nothing is freed
			}
		}
	}
	return place.Place(state, u)
}
