package place

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/resource"
)

// Together finds a place for all members of several units, or for none: the
// allocations of one group. It returns the choices by unit. On success the members'
// assignments are taken from the State, otherwise nothing has changed.
//
// The unit whose members are largest comes first, then the next: devices, then
// memory, then CPUs, then the unit that the caller lists first. Each unit counts for
// the rules of the next ones. So equal units, and units of which each is as large as a
// number of the next ones, are placed wherever they can be; of other mixtures an
// unlucky one may find no place though there is one.
//
// Rules about domains are those of all units: all go to one domain, and those of one named
// subgroup to one domain of its level.
func Together(state *cluster.State, units []Unit) ([][]Choice, bool) {
	if len(units) == 1 {
		members, ok := Place(state, units[0])
		return [][]Choice{members}, ok
	}
	if units[0].Topology != nil {
		plan := placePartsInDomains(state, units[0].Topology, units)
		return plan, plan != nil
	}
	plan := placeAtHome(state, units, func(units []Unit) [][]Choice {
		plan, _ := placeInOrder(state, units, largestFirst(units))
		return plan
	})
	return plan, plan != nil
}

// placeInOrder places units one after the other, or none: then plan is nil, and failed is
// the position in the order of the unit that has no place beside those before it.
func placeInOrder(state *cluster.State, units []Unit, order []int) (plan [][]Choice, failed int) {
	mark := state.Checkpoint()
	plan = make([][]Choice, len(units))
	var beside []*cluster.Occupant
	taken := resource.Vector{} // by model, of the units with Bounds
	for at, i := range order {
		u := units[i]
		if u.Bounds != nil {
			u.Bounds = without(u.Bounds, taken)
		}
		u.Beside = slices.Concat(u.Beside, beside)
		members, ok := Place(state, u)
		if !ok {
			state.Rollback(mark)
			return nil, at
		}
		plan[i] = members
		if u.Bounds != nil {
			taken.Add(Models(members))
		}
		beside = append(beside, occupantOf(&u, members))
	}
	state.Keep(mark)
	return plan, len(order)
}

// largestFirst lists the units by the size of a member.
func largestFirst(units []Unit) []int {
	order := make([]int, len(units))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := cluster.Least(&units[a].Request), cluster.Least(&units[b].Request)
		return cmp.Or(cmp.Compare(y.GPU, x.GPU), cmp.Compare(y.Memory, x.Memory), cmp.Compare(y.CPU, x.CPU), cmp.Compare(a, b))
	})
	return order
}

// occupantOf is a placed unit as rules of other units count it.
func occupantOf(u *Unit, members []Choice) *cluster.Occupant {
	o := &cluster.Occupant{Subject: u.Subject, Status: cluster.Starting}
	for _, m := range members {
		o.Nodes, o.Counts = append(o.Nodes, m.Node.ID), append(o.Counts, 1)
	}
	return o
}
