package sched

import (
	"cmp"

	"github.com/musterd/muster/coordinator/cluster"
)

// Standing is how firmly a unit would hold its quota: how far each tree would have it
// borrow, and then its priority. A unit takes quota and places from weaker standings
// alone, so that preemptions come to an end: docs/preemption.md has the potential that
// each decision increases.
type Standing struct {
	w        *World
	heights  []heightOn
	height   int // the greatest of these, 0 for none
	priority int32
}

// heightOn is the height of the node on which a tree counts a unit: 0 for its own group,
// more where the unit borrows.
type heightOn struct {
	tree   string
	height int
}

// StandingOf is the standing of a unit that was admitted, or that quota would admit now.
// Nothing changes.
func (w *World) StandingOf(u *Unit) *Standing {
	if trees := TreesOf(u.Charges); len(trees) > 0 && !w.Trees.IsAllocatedForest(w.Forest, u.Key.Path) {
		s, _ := w.StandingAfter(u, nil)
		return s
	}
	return w.standingNow(u)
}

// standingNow is the standing of a unit as the trees count it.
func (w *World) standingNow(u *Unit) *Standing {
	s := &Standing{w: w, priority: u.Key.Priority}
	for _, tree := range TreesOf(u.Charges) {
		height, _, _ := w.Trees.Rank(tree, u.Key.Path)
		s.heights = append(s.heights, heightOn{tree, height})
		s.height = max(s.height, height)
	}
	return s
}

// StandingAfter is the standing of a unit that waits, once the named units have given
// way and the units that borrow have moved down into what they left. False: the unit
// would have no place in its trees then without further victims. Nothing changes.
func (w *World) StandingAfter(u *Unit, named []string) (s *Standing, ok bool) {
	mark := w.Trees.Checkpoint()
	for _, path := range named {
		w.Trees.DeallocateForest(w.Forest, path)
	}
	r, err := w.Trees.AllocateForest(w.Forest, u.Key.Path)
	must(err)
	s, ok = w.standingNow(u), r.OK && len(r.Preempted) == 0
	must(w.Trees.Rollback(mark))
	return s, ok
}

// mayTakePlaceOf reports whether an occupant of lower priority may give way for the place
// of the unit: it borrows from as far as the unit or farther. So a unit that borrows takes
// no place from one within the quota of its own group. nil borrows nothing.
func (s *Standing) mayTakePlaceOf(o *cluster.Occupant) bool {
	return s == nil || s.height == 0 || s.height <= s.w.Trees.Height(o.Unit)
}

// mayTakePlacesOf is mayTakePlaceOf of each of several units.
func (s *Standing) mayTakePlacesOf(units []string) bool {
	for _, path := range units {
		if o := s.w.State.Occupant(path); o != nil && !s.mayTakePlaceOf(o) {
			return false
		}
	}
	return true
}

// mayTakeQuotaOf reports whether a unit that quota names stands weaker, so that it may
// give way: the trees that both are charged to have it borrow farther, or as far and with
// a lower priority. Where both have no tree in common, their priorities decide.
func (s *Standing) mayTakeQuotaOf(path string) bool {
	own, other, priority, shares := 0, 0, 0, false
	for _, h := range s.heights {
		height, p, charged := s.w.Trees.Rank(h.tree, path)
		if !charged {
			continue
		}
		own, other = max(own, h.height), max(other, height)
		if !shares {
			priority, shares = p, true
		}
	}
	return !shares || cmp.Or(cmp.Compare(other, own), cmp.Compare(int(s.priority), priority)) > 0 // or it has gone meanwhile
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
	d.standing, why = w.claimStanding(u, d.Evidence.Short.Victims)
	d.Evidence.Borrows = d.standing != nil && d.standing.height > 0
	if why != "" {
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
		if !s.mayTakeQuotaOf(path) {
			return nil, path + " would stand firmer on its quota tree than this unit, and would claim the quota back"
		}
	}
	return s, ""
}
