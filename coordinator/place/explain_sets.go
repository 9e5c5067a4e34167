package place

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/resource"
)

// explainSets is Explain for a unit whose members differ: of the first set that has no
// place beside those before it, in the order in which Place places them; of the first of
// all where each has one.
func explainSets(state *cluster.State, u *Unit) Explanation {
	parts := u.Parts()
	mark := state.Checkpoint()
	_, ok := Place(state, *u)
	state.Rollback(mark)
	if ok {
		return explainPart(state, parts, 0)
	}
	order := largestFirst(parts)
	if e, found := explainFirst(state, parts, order); found {
		return e
	}
	e := explainPart(state, parts, order[0])
	if slices.ContainsFunc(parts, func(p Unit) bool { return p.Topology.Name != "" }) {
		e.Fit = min(e.Fit, e.Members-1)
		e.Domain = &resource.Reason{
			Code: resource.ReasonTopology, Detail: fmt.Sprintf("the members of each subgroup have to run in one domain: each of the %d sets of members has room, and no domains have room for all %d members", len(parts), u.Members),
		}
		return e
	}
	level := u.Topology.Levels[max(0, u.Topology.NarrowestRequired())]
	e.Fit = min(e.Fit, e.Members-1)
	e.Domain = &resource.Reason{
		Code: resource.ReasonTopology, Detail: fmt.Sprintf("all %d members have to run in one domain of %s: each of their %d sets has room, and no domain has room for all sets", u.Members, level.Key, len(parts)),
	}
	return e
}

// explainFirst explains the first set in an order that has no place beside those before it.
func explainFirst(state *cluster.State, parts []Unit, order []int) (Explanation, bool) {
	mark := state.Checkpoint()
	defer state.Rollback(mark)
	var beside []*cluster.Occupant
	for _, i := range order {
		parts[i].Beside = slices.Concat(parts[i].Beside, beside)
		members, ok := Place(state, parts[i])
		if !ok {
			return explainPart(state, parts, i), true
		}
		beside = append(beside, occupantOf(&parts[i], members))
	}
	return Explanation{}, false
}

// explainPart explains one set of a unit.
func explainPart(state *cluster.State, parts []Unit, set int) Explanation {
	e := Explain(state, parts[set])
	e.Set = set
	return e
}
