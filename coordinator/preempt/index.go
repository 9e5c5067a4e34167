package preempt

import (
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/resource"
)

// Index has the units that hold something in the order of their value, and under the
// nodes that they hold something on. It serves any number of searches on one State:
// a search then reads the nodes, and no longer each unit.
//
// Between the searches free amounts, labels and cordons may change. Readiness, hosts
// and the health of devices may not.
//
// Invariant: holders ascend by byValue; nodes ascend by ID; here[i], on nodes[i],
// ascends by rank; suffix[i][k] is the sum of here[i][k:].
type Index struct {
	state   *cluster.State
	holders []candidate
	nodes   []*cluster.Node
	here    [][]occupant
	suffix  [][]cluster.Amounts
}

// candidate is a holder that may be evicted.
type candidate struct {
	*Holder
	nodes []int // of the Index, where its parts are, ascending
}

// occupant is the part of a candidate on a single node.
type occupant struct {
	rank  int
	gives []Part
	sum   cluster.Amounts
}

// NewIndex returns an index of the holders that may give way to some unit. A pinned
// holder may not, nor may one with a part on a node that is not Ready.
func NewIndex(state *cluster.State, holders []Holder) *Index {
	return newIndex(state, holders, func(*cluster.Node) bool { return true })
}

// newIndex leaves out the nodes that serve none of the later searches.
func newIndex(state *cluster.State, holders []Holder, serves func(*cluster.Node) bool) *Index {
	x := &Index{state: state}
	nodes := state.Nodes()
	at := make(map[resource.NodeID]int, len(nodes)) // in x.nodes, -1 for a node that is ready and serves no search
	for _, n := range nodes {
		switch {
		case !n.Ready || n.Host == nil || n.Free == nil:
		case !serves(n):
			at[n.ID] = -1
		default:
			at[n.ID] = len(x.nodes)
			x.nodes = append(x.nodes, n)
		}
	}
	x.rank(holders, at)
	x.settle()
	return x
}

// rank finds the candidates among holders, and orders them by value.
func (x *Index) rank(holders []Holder, at map[resource.NodeID]int) {
	parts := 0
	for i := range holders {
		parts += len(holders[i].Parts)
	}
	x.holders = make([]candidate, 0, len(holders))
	positions := make([]int, 0, parts) // of all candidates, one after the other
	for i := range holders {
		h := &holders[i]
		if h.Pinned {
			continue
		}
		from := len(positions)
		for k := range h.Parts {
			position, ready := at[h.Parts[k].Node]
			if !ready {
				positions = positions[:from] // not all of it is in reach
				break
			}
			if position >= 0 {
				positions = append(positions, position)
			}
		}
		if len(positions) == from {
			continue
		}
		of := positions[from:]
		slices.Sort(of)
		of = slices.Compact(of)
		positions = positions[:from+len(of)]
		x.holders = append(x.holders, candidate{Holder: h, nodes: slices.Clip(of)})
	}
	slices.SortFunc(x.holders, byValue)
}

// settle enters the candidates under their nodes.
func (x *Index) settle() {
	counts, all := make([]int, len(x.nodes)), 0
	for rank := range x.holders {
		for _, i := range x.holders[rank].nodes {
			counts[i]++
			all++
		}
	}
	occupants, sums := make([]occupant, all), make([]cluster.Amounts, all+len(x.nodes))
	x.here, x.suffix = make([][]occupant, len(x.nodes)), make([][]cluster.Amounts, len(x.nodes))
	for i, count := range counts {
		x.here[i], occupants = occupants[:0:count], occupants[count:]
		x.suffix[i], sums = sums[:count+1:count+1], sums[count+1:]
	}
	for rank := range x.holders {
		c := &x.holders[rank]
		for _, i := range c.nodes {
			n := x.nodes[i]
			gives := partsOn(c.Parts, n.ID)
			x.here[i] = append(x.here[i], occupant{rank: rank, gives: gives, sum: sumOf(n, gives)})
		}
	}
	for i, here := range x.here {
		for k := len(here) - 1; k >= 0; k-- {
			x.suffix[i][k] = x.suffix[i][k+1].Plus(here[k].sum)
		}
	}
}

// partsOn are the parts on one node, where at least one part is.
func partsOn(parts []Part, id resource.NodeID) []Part {
	on := func(p Part) bool { return p.Node == id }
	first := slices.IndexFunc(parts, on)
	end := first + 1
	for end < len(parts) && on(parts[end]) {
		end++
	}
	run := slices.Clip(parts[first:end])
	for _, p := range parts[end:] {
		if on(p) {
			run = append(run, p)
		}
	}
	return run
}

// Find is the function Find, with the holders of the index.
func (x *Index) Find(u place.Unit, priority int32) (Plan, bool) {
	if u.Topology != nil {
		members, victims, ok := x.inDomains([]place.Unit{u}, priority)
		if !ok {
			return Plan{}, false
		}
		return Plan{Members: members[0], Victims: victims}, true
	}
	if isRelated(x.state, &u) || u.Sets != nil {
		return x.related(u, priority)
	}
	s := x.search(&u, priority)
	chosen, ok := s.choose()
	if !ok {
		return Plan{}, false
	}
	victims := make([]Holder, len(chosen))
	plan := Plan{}
	for i, rank := range chosen {
		victims[i] = *s.holders[rank].Holder
		plan.Victims = append(plan.Victims, victims[i].Unit)
	}
	slices.Sort(plan.Victims)
	plan.Members, ok = With(x.state, u, victims)
	return plan, ok
}

// everyNode has the positions of all nodes.
func (x *Index) everyNode() []int {
	all := make([]int, len(x.nodes))
	for i := range all {
		all[i] = i
	}
	return all
}
