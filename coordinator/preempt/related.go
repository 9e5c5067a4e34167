package preempt

import (
	"slices"
	"sort"

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
	if members, ok := With(x.state, u, nil); ok {
		return Plan{Members: members}, true
	}
	var ranks []int
	for rank := x.firstBelow(priority); rank < len(x.holders); rank++ {
		if !isWanted(x.state, &u, x.holders[rank].Holder) {
			ranks = append(ranks, rank)
		}
	}
	r := relatedSearch{Index: x, ranks: ranks, stock: x.stockOf(x.everyNode(), []place.Unit{u}, ranks), effort: maxEffort, makesRoom: func(set []Holder) bool {
		_, ok := With(x.state, u, set)
		return ok
	}}
	set, ok := r.choose()
	if !ok {
		return Plan{}, false
	}
	plan := Plan{Victims: r.unitsOf(set)}
	plan.Members, ok = With(x.state, u, r.holdersOf(set))
	return plan, ok
}

// The bounds of one search. Of its effort, a set that is tried out costs trial, and a set that
// is only added up costs 1.
const (
	trial     = 16
	maxEffort = trial << 10
	mostLooks = 1 << 14 // sets that are added up before the first trial
)

// relatedSearch is one search. Its candidates are the units with these ranks, and a set of
// them is the list of their positions in ranks.
//
// Invariant: ranks and all sets ascend, so their units descend by value.
type relatedSearch struct {
	*Index
	ranks []int
	stock stock
	// makesRoom reports whether there is a place without these units.
	makesRoom func([]Holder) bool
	effort    int // that is left
}

// all is the set of all candidates.
func (r *relatedSearch) all() []int {
	set := make([]int, len(r.ranks))
	for i := range set {
		set[i] = i
	}
	return set
}

// holdersOf are the units of a set.
func (r *relatedSearch) holdersOf(set []int) []Holder {
	holders := make([]Holder, len(set))
	for i, at := range set {
		holders[i] = *r.holders[r.ranks[at]].Holder
	}
	return holders
}

// unitsOf are the names of the units of a set, ascending.
func (r *relatedSearch) unitsOf(set []int) []string {
	var units []string
	for _, at := range set {
		units = append(units, r.holders[r.ranks[at]].Unit)
	}
	slices.Sort(units)
	return units
}

// ranksOf are the ranks of a set.
func (r *relatedSearch) ranksOf(set []int) []int {
	ranks := make([]int, len(set))
	for i, at := range set {
		ranks[i] = r.ranks[at]
	}
	return ranks
}

// choose finds a set without superfluous units. Where there are few sets, it is the best
// one.
func (r *relatedSearch) choose() ([]int, bool) {
	set, needed, ok := r.least()
	if !ok {
		return nil, false
	}
	if set, ok = r.settle(set, needed); !ok || r.sets() > mostSets {
		return set, ok
	}
	if better, ok := r.better(r.ranksOf(set)); ok {
		return better, true
	}
	return set, true
}

// least gathers a set by amounts alone, with the least valuable candidates and without those
// that are superfluous by their amounts. needed is false where looks were lacking to say so of
// each. False if not even the amounts of all candidates suffice.
func (r *relatedSearch) least() (set []int, needed, ok bool) {
	all := r.all()
	last := len(all)
	n := sort.Search(last+1, func(n int) bool { return !r.stock.lacks(all[last-min(n, last):]) })
	if n > last {
		return nil, false, false
	}
	set, looks := all[last-n:], mostLooks
	r.stock.load(set)
	set = spare(set, &looks, func(_, without []int) bool { looks--; return r.stock.spares(without) })
	return set, looks > 0, true
}

// settle returns the set that least has gathered where it makes room, which it mostly does.
// Elsewhere a set is gathered by trials.
func (r *relatedSearch) settle(set []int, needed bool) ([]int, bool) {
	if r.fits(set) {
		if !needed {
			set = r.spareByTrial(set)
		}
		return set, true
	}
	set, ok := r.gather()
	if !ok {
		return nil, false
	}
	return r.spareByTrial(set), true
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
func (r *relatedSearch) fits(set []int) bool {
	r.effort--
	if r.stock.lacks(set) {
		return false
	}
	r.effort -= trial
	return r.makesRoom(r.holdersOf(set))
}

// gather returns the least valuable candidates of which the unit needs no fewer, up
// to the value of the last.
func (r *relatedSearch) gather() ([]int, bool) {
	all := r.all()
	last := len(all)
	tooFew, enough := 0, 0
	for n := 1; ; n *= 2 {
		n = min(n, last)
		if n > 0 && r.fits(all[last-n:]) {
			enough = n
			break
		}
		if tooFew = n; n == last {
			return nil, false
		}
	}
	for enough-tooFew > 1 {
		if n := (tooFew + enough) / 2; r.fits(all[last-n:]) {
			enough = n
		} else {
			tooFew = n
		}
	}
	return all[last-enough:], true
}

// spareByTrial takes superfluous units out of a set that makes room.
func (r *relatedSearch) spareByTrial(set []int) []int {
	return spare(set, &r.effort, func(rest, _ []int) bool { return r.fits(rest) })
}

// spare takes superfluous units out of a set, the most valuable first: in parts that
// halve until they are single units. suffices reports whether the rest of the set suffices
// without a part. It ends where no effort is left.
func spare(set []int, effort *int, suffices func(rest, without []int) bool) []int {
	set = slices.Clone(set)
	rest := make([]int, 0, len(set))
	for size := max(1, len(set)/2); ; size = max(1, size/2) {
		before := len(set)
		for i := 0; i < len(set) && *effort > 0; {
			end := min(i+size, len(set))
			rest = append(append(rest[:0], set[:i]...), set[end:]...)
			if suffices(rest, set[i:end]) {
				set, rest = rest, set
			} else {
				i += size
			}
		}
		if size == 1 && len(set) == before || *effort <= 0 {
			return set
		}
	}
}
