package preempt

import (
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/topology"
	"github.com/musterd/muster/resource"
)

// This file finds victims for a gang with rules about domains of nodes. Where a level is
// required, the members and so the victims are in one domain, and each domain has a set of
// its own: the best of these sets is chosen.

// inDomains is Find for a unit with Topology. In each domain the set is gathered as under
// rules about other units: each unit of it is needed, but another set may be better.
func (x *Index) inDomains(u place.Unit, priority int32) (Plan, bool) {
	if members, ok := With(x.state, u, nil); ok {
		return Plan{Members: members}, true
	}
	domains := domainsOf(x.state, &u)
	var best []candidateAt
	var plan Plan
	found := false
	for _, within := range domains {
		one := u
		one.Within = within
		r := relatedSearch{trials: max(minTrials, maxTrials/len(domains)), makesRoom: func(set []Holder) bool {
			_, ok := With(x.state, one, set)
			return ok
		}}
		var ranks []int
		for rank := x.firstBelow(priority); rank < len(x.holders); rank++ {
			if h := x.holders[rank].Holder; within == nil || isWithin(h, within) {
				r.candidates, ranks = append(r.candidates, *h), append(ranks, rank)
			}
		}
		set, ok := r.gather()
		if !ok {
			continue
		}
		set = r.spare(set)
		chosen := x.ranked(set, ranks)
		if found && compareSets(chosen, best) >= 0 {
			continue
		}
		members, ok := With(x.state, one, set)
		if !ok {
			continue
		}
		best, found = chosen, true
		plan = Plan{Members: members}
		for _, v := range set {
			plan.Victims = append(plan.Victims, v.Unit)
		}
		slices.Sort(plan.Victims)
	}
	return plan, found
}

// minTrials bounds the sets that the search tries out in one domain of many.
const minTrials = 64

// candidateAt is a holder with its rank.
type candidateAt struct {
	rank     int
	priority int32
}

// ranked are the ranks of a set of holders, ascending: the most valuable first.
func (x *Index) ranked(set []Holder, among []int) []candidateAt {
	var list []candidateAt
	for _, rank := range among {
		if h := x.holders[rank].Holder; slices.ContainsFunc(set, func(v Holder) bool { return v.Unit == h.Unit }) {
			list = append(list, candidateAt{rank, h.Priority})
		}
	}
	return list
}

// compareSets orders sets as the package comment does: negative where a is better.
func compareSets(a, b []candidateAt) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i].priority != b[i].priority {
			return int(a[i].priority) - int(b[i].priority)
		}
	}
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	for i := range a {
		if a[i].rank != b[i].rank {
			return b[i].rank - a[i].rank
		}
	}
	return 0
}

// isWithin reports whether a holder has a part in a domain.
func isWithin(h *Holder, within map[resource.NodeID]bool) bool {
	return slices.ContainsFunc(h.Parts, func(p Part) bool { return within[p.Node] })
}

// domainsOf are the nodes of each domain of the narrowest required level, in the order of
// their first nodes; one nil where no level is required.
func domainsOf(state *cluster.State, u *place.Unit) []map[resource.NodeID]bool {
	level := u.Topology.NarrowestRequired()
	if level < 0 {
		return []map[resource.NodeID]bool{nil}
	}
	var levels []*cluster.Topology
	for _, l := range u.Topology.Levels[:level+1] {
		levels = append(levels, state.Topology(l.Key))
	}
	var domains []map[resource.NodeID]bool
	known := map[[topology.MaxLevels]int32]int{}
	for _, n := range state.Nodes() {
		if levels[level].Of(n) == cluster.NoDomain || !u.Constraints.Allows(n.Labels) {
			continue
		}
		var key [topology.MaxLevels]int32
		for i, t := range levels {
			key[i] = t.Of(n)
		}
		at, found := known[key]
		if !found {
			at = len(domains)
			known[key] = at
			domains = append(domains, map[resource.NodeID]bool{})
		}
		domains[at][n.ID] = true
	}
	return domains
}
