package sched

import (
	"cmp"
	"math"

	"github.com/musterd/muster/coordinator/cluster"
)

// Standing is how firmly a unit would hold its quota once the units that quota names
// have given way: how deep each tree would count the unit, and then its priority. A claim
// takes from weaker standings alone, so that claims come to an end:
// docs/preemption.md has the potential that each claim increases.
type Standing struct {
	w        *World
	depths   []depthOn
	priority int32
}

// depthOn is how far below its root a tree counts a unit.
type depthOn struct {
	tree  string
	depth int
}

// StandingAfter is the standing of a unit that waits, once the named units have given
// way and the units that borrow have moved down into what they left. False: the unit
// would have no place in its trees then without further victims. Nothing changes.
func (w *World) StandingAfter(u *Unit, named []string) (s *Standing, ok bool) {
	s = &Standing{w: w, priority: u.Key.Priority}
	mark := w.Trees.Checkpoint()
	for _, path := range named {
		w.Trees.DeallocateForest(w.Forest, path)
	}
	r, err := w.Trees.AllocateForest(w.Forest, u.Key.Path)
	must(err)
	if ok = r.OK && len(r.Preempted) == 0; ok {
		for _, tree := range TreesOf(u.Charges) {
			depth, _, _ := w.Trees.Rank(tree, u.Key.Path)
			s.depths = append(s.depths, depthOn{tree, depth})
		}
	}
	must(w.Trees.Rollback(mark))
	return s, ok
}

// outranks reports whether an occupant stands weaker, so that the occupant may give way:
// the trees that both are charged to count the occupant nearer to the root, or as near
// and with a lower priority. Where both have no tree in common, their priorities decide.
// Without a claim each occupant may give way.
func (s *Standing) outranks(o *cluster.Occupant) bool {
	return s == nil || s.exceeds(o.Unit, o.Priority)
}

func (s *Standing) exceeds(path string, priority int32) bool {
	own, other := math.MaxInt, math.MaxInt
	for _, d := range s.depths {
		if depth, _, charged := s.w.Trees.Rank(d.tree, path); charged {
			own, other = min(own, d.depth), min(other, depth)
		}
	}
	return cmp.Or(cmp.Compare(own, other), cmp.Compare(s.priority, priority)) > 0
}

// outranksNamed is outranks of a unit that quota names.
func (s *Standing) outranksNamed(path string) bool {
	for _, d := range s.depths {
		if _, priority, charged := s.w.Trees.Rank(d.tree, path); charged {
			return s.exceeds(path, int32(priority))
		}
	}
	return true // it has gone meanwhile
}

// MayClaim reports whether a unit may take its quota from those that quota names, and
// its standing then.
func (w *World) MayClaim(u *Unit, named []string) (*Standing, bool) {
	s, why := w.claimStanding(u, named)
	return s, why == ""
}

// mayClaim is MayClaim of a decision: it notes the standing, or in the evidence
// why the unit waits.
func (w *World) mayClaim(u *Unit, d *Decision) bool {
	var why string
	if d.standing, why = w.claimStanding(u, d.Evidence.Short.Victims); why != "" {
		return d.noVictims(why)
	}
	return true
}

// claimStanding is the standing of a unit that takes its quota from those that quota
// names; why says what speaks against that, "" for nothing.
func (w *World) claimStanding(u *Unit, named []string) (s *Standing, why string) {
	if u.Right == Nobody {
		return nil, ""
	}
	s, ok := w.StandingAfter(u, named)
	if !ok {
		return nil, "units that borrow would move down into the quota that is given up"
	}
	for _, path := range named {
		if o := w.occupied().Occupant(path); o != nil && u.isOf(o) {
			return nil, path + " holds the quota, and is of the same job or group"
		}
		if !s.outranksNamed(path) {
			return nil, path + " would stand firmer on its quota tree than this unit, and would claim the quota back"
		}
	}
	return s, ""
}
