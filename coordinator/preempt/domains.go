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
// Each domain takes one trial that says whether there is a set at all. The search for the
// sets has one budget of trials over all domains: once that is used up, the best set of the
// domains so far is chosen. Where its own share has left superfluous units in it, they are
// taken out at the end, with a budget for that alone.
func (x *Index) inDomains(units []place.Unit, priority int32) (plan [][]place.Choice, victims []string, ok bool) {
	if plan, ok := WithTogether(x.state, units, nil); ok {
		return plan, nil, true
	}
	var open []*domainSearch
	for _, within := range domainsOf(x.state, units) {
		if d := x.searchIn(within, units, priority); d.makesRoom(d.candidates) {
			open = append(open, d)
		}
	}
	var best []int
	var bestSet []Holder
	var cut *domainSearch // that of the best set, where its trials did not suffice
	left, sets := maxTrials, 0
	for _, d := range open {
		sets += d.sets()
	}
	for i, d := range open {
		if plan != nil && left <= 0 {
			break
		}
		d.trials = shareOf(left, len(open)-i)
		left -= d.trials
		set, ok := d.gather()
		if !ok {
			continue
		}
		set = d.spare(set)
		left += d.trials
		chosen := d.ranked(set)
		if sets <= mostSets {
			bound := chosen
			if plan != nil && compareSets(x.holders, best, chosen) < 0 {
				bound = best
			}
			if better, ok := d.better(bound); ok {
				set, chosen = better, d.ranked(better)
			}
		}
		if plan != nil && compareSets(x.holders, chosen, best) >= 0 {
			continue
		}
		places, ok := WithTogether(x.state, d.units, set)
		if !ok {
			continue
		}
		if best, bestSet, plan, cut = chosen, set, places, nil; d.trials <= 0 {
			cut = d
		}
	}
	if cut != nil {
		cut.trials = maxTrials
		bestSet = cut.spare(bestSet)
		plan, _ = WithTogether(x.state, cut.units, bestSet)
	}
	for _, v := range bestSet {
		victims = append(victims, v.Unit)
	}
	slices.Sort(victims)
	return plan, victims, plan != nil
}

// shareOf is the number of trials in one of the domains that are left to search. It may be
// more than are left: a set of which no trial is left would have superfluous units.
func shareOf(left, domains int) int { return max(minTrials, left/domains) }

// minTrials is the least number of trials for the set of one domain.
const minTrials = 64

// domainSearch is the search in one domain.
type domainSearch struct {
	relatedSearch
	units []place.Unit // with the domain as their only nodes
}

// searchIn prepares the search in one domain, nil for all nodes.
func (x *Index) searchIn(within map[resource.NodeID]bool, units []place.Unit, priority int32) *domainSearch {
	d := &domainSearch{units: slices.Clone(units)}
	d.all = x.holders
	for i := range d.units {
		d.units[i].Within = within
	}
	d.makesRoom = func(set []Holder) bool {
		_, ok := WithTogether(x.state, d.units, set)
		return ok
	}
	for rank := x.firstBelow(priority); rank < len(x.holders); rank++ {
		if h := x.holders[rank].Holder; within == nil || isWithin(h, within) {
			d.add(h, rank)
		}
	}
	return d
}

// isWithin reports whether a holder has a part in a domain.
func isWithin(h *Holder, within map[resource.NodeID]bool) bool {
	return slices.ContainsFunc(h.Parts, func(p Part) bool { return within[p.Node] })
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
