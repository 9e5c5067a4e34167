package preempt

import (
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
)

// Together is Find for several units that start together: the allocations of one
// group. It returns the choices by unit, and the victims of all. A single unit has the
// best set of victims; of several the set is found as under rules about other units:
// the least valuable units whose end makes room for all, without the superfluous ones, or
// the best of few sets.
func Together(state *cluster.State, units []place.Unit, priority int32, holders []Holder) ([][]place.Choice, []string, bool) {
	if len(units) == 1 {
		plan, ok := Find(state, units[0], priority, holders)
		return [][]place.Choice{plan.Members}, plan.Victims, ok
	}
	if units[0].Topology != nil {
		return NewIndex(state, holders).inDomains(units, priority)
	}
	if plan, ok := WithTogether(state, units, nil); ok {
		return plan, nil, true
	}
	x := NewIndex(state, holders)
	var ranks []int
	for rank := x.firstBelow(priority); rank < len(x.holders); rank++ {
		if h := x.holders[rank].Holder; !slices.ContainsFunc(units, func(u place.Unit) bool { return isWanted(state, &u, h) }) {
			ranks = append(ranks, rank)
		}
	}
	r := relatedSearch{Index: x, ranks: ranks, stock: x.stockOf(x.everyNode(), units, ranks), effort: maxEffort, makesRoom: func(set []Holder) bool {
		_, ok := WithTogether(state, units, set)
		return ok
	}}
	set, ok := r.choose()
	if !ok {
		return nil, nil, false
	}
	plan, ok := WithTogether(state, units, r.holdersOf(set))
	return plan, r.unitsOf(set), ok
}

// WithTogether is With for several units that start together.
func WithTogether(state *cluster.State, units []place.Unit, victims []Holder) ([][]place.Choice, bool) {
	mark := state.Checkpoint()
	defer state.Rollback(mark)
	units = slices.Clone(units)
	for i := range units {
		units[i].Without = slices.Concat(units[i].Without, unitsOf(victims))
	}
	give(state, victims)
	return place.Together(state, units)
}
