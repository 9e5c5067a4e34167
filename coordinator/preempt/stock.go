package preempt

import (
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/resource"
)

// stock adds up the amounts that are free without a set of candidates. To add up a set costs
// a small part of a trial, and most sets that make no room lack amounts.
//
// Invariant: on and sum of each want are those of have.
type stock struct {
	free  []cluster.Amounts // of the nodes, without any eviction
	gives [][]gift          // by candidate
	have  []cluster.Amounts // of the nodes, without the set
	wants []want
}

// gift is the amounts that a candidate gives back to a node.
type gift struct {
	node int // position in free
	sum  cluster.Amounts
}

// want is a number of members with the least that one takes.
type want struct {
	members int
	each    cluster.Amounts
	on      []int // members for which the amounts of a node suffice, at most members
	sum     int   // of all nodes
}

// stockOf is the stock of these nodes of the index, for units and the candidates with these
// ranks.
func (x *Index) stockOf(nodes []int, units []place.Unit, ranks []int) stock {
	s := stock{free: make([]cluster.Amounts, len(nodes)), have: make([]cluster.Amounts, len(nodes)), gives: make([][]gift, len(ranks))}
	for at, i := range nodes {
		s.free[at] = x.nodes[i].FreeAmounts()
	}
	gifts := make([]gift, 0, len(ranks))
	for k, rank := range ranks {
		from := len(gifts)
		for _, i := range x.holders[rank].nodes {
			if at, found := slices.BinarySearch(nodes, i); found {
				j, _ := slices.BinarySearchFunc(x.here[i], rank, func(o occupant, rank int) int { return o.rank - rank })
				gifts = append(gifts, gift{at, x.here[i][j].sum})
			}
		}
		s.gives[k] = gifts[from:len(gifts):len(gifts)]
	}
	for i := range units {
		for _, part := range units[i].Parts() {
			if least := cluster.Least(&part.Request); least != (cluster.Amounts{}) {
				s.wants = append(s.wants, want{members: part.Members, each: least, on: make([]int, len(nodes))})
			}
		}
	}
	return s
}

// lacks reports that the amounts without a set of candidates do not suffice for the members
// of one of the units, so that the set makes no room.
func (s *stock) lacks(set []int) bool {
	s.load(set)
	return s.short()
}

// load adds up the amounts without a set.
func (s *stock) load(set []int) {
	copy(s.have, s.free)
	for _, k := range set {
		for _, g := range s.gives[k] {
			s.have[g.node] = s.have[g.node].Plus(g.sum)
		}
	}
	for i := range s.wants {
		w := &s.wants[i]
		w.sum = 0
		for node := range s.have {
			w.on[node] = most(&s.have[node], &w.each, w.members)
			w.sum += w.on[node]
		}
	}
}

// spares takes candidates out of the loaded set, unless amounts are lacking then.
func (s *stock) spares(candidates []int) bool {
	s.add(candidates, -1)
	if !s.short() {
		return true
	}
	s.add(candidates, 1)
	return false
}

// add adds what candidates give, times a sign.
func (s *stock) add(candidates []int, sign int64) {
	for _, k := range candidates {
		for _, g := range s.gives[k] {
			h := &s.have[g.node]
			*h = h.Plus(cluster.Amounts{
				CPU: g.sum.CPU * resource.Millicores(sign), Memory: g.sum.Memory * resource.Bytes(sign), GPU: g.sum.GPU * resource.Milli(sign),
			})
			for i := range s.wants {
				w := &s.wants[i]
				w.sum -= w.on[g.node]
				w.on[g.node] = most(h, &w.each, w.members)
				w.sum += w.on[g.node]
			}
		}
	}
}

// short reports whether the amounts do not suffice for some want.
func (s *stock) short() bool {
	return slices.ContainsFunc(s.wants, func(w want) bool { return w.sum < w.members })
}

// most is the number of members for which amounts suffice, at most limit.
func most(have, each *cluster.Amounts, limit int) int {
	n := int64(limit)
	if each.GPU > 0 {
		n = min(n, int64(have.GPU/each.GPU))
	}
	if each.CPU > 0 {
		n = min(n, int64(have.CPU/each.CPU))
	}
	if each.Memory > 0 {
		n = min(n, int64(have.Memory/each.Memory))
	}
	return int(max(0, n))
}
