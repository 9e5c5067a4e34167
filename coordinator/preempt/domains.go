package preempt

import (
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/resource"
)

// This file finds victims for a gang with rules about domains of nodes. Where a level is
// required, the members and so the victims are in one domain, and each domain has a set of
// its own: the best of these sets is chosen.

// inDomains is Together for units with the same Topology. In each domain the set is gathered
// as under rules about other units: each unit of it is needed, but another set may be
// better, unless the domains together have at most mostSets sets.
//
// The search for the sets has one budget of effort over all domains: once that is used up, the
// best set of the domains so far is chosen. Where its own share has left superfluous units in
// it, they are taken out at the end, with a budget for that alone.
func (x *Index) inDomains(units []place.Unit, priority int32) (plan [][]place.Choice, victims []string, ok bool) {
	if plan, ok := WithTogether(x.state, units, nil); ok {
		return plan, nil, true
	}
	open, sets := x.openTo(units, priority)
	var best []int // ranks
	var bestOf *domainSearch
	var bestSet []int // of the candidates of that domain
	left := maxEffort
	for i, d := range open {
		if plan != nil && left <= 0 {
			break
		}
		d.effort = shareOf(left, len(open)-i)
		left -= d.effort
		set, ok := d.victims(best, sets <= mostSets)
		left += d.effort
		if !ok || plan != nil && compareSets(x.holders, d.ranksOf(set), best) >= 0 {
			continue
		}
		if places, ok := WithTogether(x.state, d.units, d.holdersOf(set)); ok {
			best, bestOf, bestSet, plan = d.ranksOf(set), d, set, places
		}
	}
	if plan == nil {
		return nil, nil, false
	}
	if bestOf.effort <= 0 {
		bestOf.effort = maxEffort
		bestSet = bestOf.spareByTrial(bestSet)
		plan, _ = WithTogether(x.state, bestOf.units, bestOf.holdersOf(bestSet))
	}
	return plan, bestOf.unitsOf(bestSet), plan != nil
}

// openTo are the domains in which units of lower priority give enough amounts, and the
// number of the sets of these units in all of them.
func (x *Index) openTo(units []place.Unit, priority int32) (open []*domainSearch, sets int) {
	for _, d := range x.domainsFor(units, priority) {
		all := d.all()
		if d.stock.lacks(all) || d.sets() <= mostSets && !d.makesRoom(d.holdersOf(all)) {
			continue
		}
		open, sets = append(open, d), sets+d.sets()
	}
	return open, sets
}

// victims are a set of the domain that makes room. Of few sets it is the best; of many it is
// left out where it is probably not better than the best set so far, nil for none.
func (d *domainSearch) victims(best []int, few bool) ([]int, bool) {
	set, needed, ok := d.least()
	if !ok {
		return nil, false
	}
	if !few && best != nil && compareSets(d.holders, d.ranksOf(set), best) >= 0 {
		return nil, false
	}
	if set, ok = d.settle(set, needed); !ok || !few {
		return set, ok
	}
	bound := d.ranksOf(set)
	if best != nil && compareSets(d.holders, best, bound) < 0 {
		bound = best
	}
	if better, ok := d.better(bound); ok {
		return better, true
	}
	return set, true
}

// shareOf is the effort in one of the domains that are left to search. It may be
// more than is left: a set for which no effort is left would have superfluous units.
func shareOf(left, domains int) int { return max(minEffort, left/domains) }

// minEffort is the least effort for the set of one domain.
const minEffort = trial << 6

// domainSearch is the search in one domain.
type domainSearch struct {
	relatedSearch
	units []place.Unit // with the domain as their only nodes
}

// domainsFor prepares the search in each domain.
func (x *Index) domainsFor(units []place.Unit, priority int32) []*domainSearch {
	within := domainsOf(x.state, units)
	of := map[resource.NodeID]int{} // domain of each node
	for i, nodes := range within {
		for id := range nodes {
			of[id] = i
		}
	}
	everywhere := len(within) == 1 && within[0] == nil
	at := make([]int, len(x.nodes)) // domain of each node of the index, -1 for none
	nodes, ranks := make([][]int, len(within)), make([][]int, len(within))
	for i, n := range x.nodes {
		if d, found := of[n.ID]; found || everywhere {
			at[i] = d
			nodes[d] = append(nodes[d], i)
		} else {
			at[i] = -1
		}
	}
	for rank := x.firstBelow(priority); rank < len(x.holders); rank++ {
		for _, i := range x.holders[rank].nodes {
			if d := at[i]; d >= 0 && (len(ranks[d]) == 0 || ranks[d][len(ranks[d])-1] != rank) {
				ranks[d] = append(ranks[d], rank)
			}
		}
	}
	list := make([]*domainSearch, len(within))
	for i := range within {
		list[i] = x.searchIn(within[i], units, nodes[i], ranks[i])
	}
	return list
}

// searchIn prepares the search in a domain with these nodes, and with these units that may
// give way; within is nil for all nodes.
func (x *Index) searchIn(within map[resource.NodeID]bool, units []place.Unit, nodes, ranks []int) *domainSearch {
	d := &domainSearch{units: slices.Clone(units)}
	for i := range d.units {
		d.units[i].Within = within
	}
	d.relatedSearch = relatedSearch{Index: x, ranks: ranks, stock: x.stockOf(nodes, units, ranks), effort: maxEffort, makesRoom: func(set []Holder) bool {
		_, ok := WithTogether(x.state, d.units, set)
		return ok
	}}
	return d
}

// domainsOf are the nodes of each domain of the narrowest level at which the members go to
// one domain, in the order of their first nodes; one nil where there is no such level.
func domainsOf(state *cluster.State, units []place.Unit) []map[resource.NodeID]bool {
	level := units[0].BoundLevel(state)
	if level < 0 {
		return []map[resource.NodeID]bool{nil}
	}
	var parts []place.Unit
	for i := range units {
		parts = append(parts, units[i].Parts()...)
	}
	return place.Domains(state, parts, level)
}
