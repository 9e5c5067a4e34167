package preempt

import (
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
)

// This file finds victims for a unit under rules about other units. Such a rule may
// ask for the end of a unit on another node of the same domain, so the units are not
// looked for node by node. Nor are those for a unit whose members differ.

// isRelated reports whether rules about other units decide on the unit's place.
func isRelated(state *cluster.State, u *place.Unit) bool {
	return u.Subject != nil && (u.Subject.Relations != nil || state.Relates(u.Subject.Namespace))
}

// related finds a set of victims for a unit under rules about other units: the least
// valuable units whose end makes room, without the superfluous ones. Each unit of the
// set is needed, but another set may be better where there are more than mostSets. Units that the affinity of the unit
// selects stay: it wants to run beside them.
func (x *Index) related(u place.Unit, priority int32) (Plan, bool) {
	r := relatedSearch{all: x.holders, trials: maxTrials, makesRoom: func(set []Holder) bool {
		_, ok := With(x.state, u, set)
		return ok
	}}
	for rank := x.firstBelow(priority); rank < len(x.holders); rank++ {
		if h := x.holders[rank].Holder; !isWanted(x.state, &u, h) {
			r.add(h, rank)
		}
	}
	if members, ok := With(x.state, u, nil); ok {
		return Plan{Members: members}, true
	}
	set, ok := r.choose()
	if !ok {
		return Plan{}, false
	}
	plan := Plan{}
	for _, v := range set {
		plan.Victims = append(plan.Victims, v.Unit)
	}
	slices.Sort(plan.Victims)
	plan.Members, ok = With(x.state, u, set)
	return plan, ok
}

// maxTrials bounds the sets that one search tries out.
const maxTrials = 1 << 10

// relatedSearch is one search.
//
// Invariant: candidates descend by value.
type relatedSearch struct {
	// makesRoom reports whether there is a place without these units.
	makesRoom  func([]Holder) bool
	all        []candidate // by rank
	candidates []Holder
	ranks      []int // of the candidates
	trials     int   // that are left
}

func (r *relatedSearch) add(h *Holder, rank int) {
	r.candidates, r.ranks = append(r.candidates, *h), append(r.ranks, rank)
}

// choose gathers a set without superfluous units. Where there are few sets, it is the best
// one.
func (r *relatedSearch) choose() ([]Holder, bool) {
	set, ok := r.gather()
	if !ok {
		return nil, false
	}
	set = r.spare(set)
	if r.sets() > mostSets {
		return set, true
	}
	if better, ok := r.better(r.ranked(set)); ok {
		return better, true
	}
	return set, true
}

// isWanted reports whether the unit wants to run beside a holder, or one of its mates.
func isWanted(state *cluster.State, u *place.Unit, h *Holder) bool {
	if u.Subject == nil {
		return false
	}
	rules := u.Subject.Relations.Affinity()
	return len(rules) > 0 && slices.ContainsFunc(unitsOf([]Holder{*h}), func(unit string) bool {
		o := state.Occupant(unit)
		return o != nil && o.Subject != nil && cluster.SelectedByAll(u.Subject, rules, o.Subject)
	})
}

// fits reports whether there is a place without these units.
func (r *relatedSearch) fits(set []Holder) bool {
	r.trials--
	return r.makesRoom(set)
}

// gather returns the least valuable candidates of which the unit needs no fewer, up
// to the value of the last.
func (r *relatedSearch) gather() ([]Holder, bool) {
	last := len(r.candidates)
	tooFew, enough := 0, 0
	for n := 1; ; n *= 2 {
		n = min(n, last)
		if n > 0 && r.fits(r.candidates[last-n:]) {
			enough = n
			break
		}
		if tooFew = n; n == last {
			return nil, false
		}
	}
	for enough-tooFew > 1 {
		if n := (tooFew + enough) / 2; r.fits(r.candidates[last-n:]) {
			enough = n
		} else {
			tooFew = n
		}
	}
	return slices.Clone(r.candidates[last-enough:]), true
}

// spare takes superfluous units out of a set, the most valuable first: in parts that
// halve until they are single units.
func (r *relatedSearch) spare(set []Holder) []Holder {
	for size := max(1, len(set)/2); ; size = max(1, size/2) {
		before := len(set)
		for i := 0; i < len(set) && r.trials > 0; {
			rest := slices.Delete(slices.Clone(set), i, min(i+size, len(set)))
			if r.fits(rest) {
				set = rest
			} else {
				i += size
			}
		}
		if size == 1 && len(set) == before || r.trials <= 0 {
			return set
		}
	}
}
