package place

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
)

// This file places units of a group with named subgroups (ADR 126).

// mostWays bounds the ways of giving domains to subgroups in which all parts are placed, and
// mostSteps the domains that are looked at.
const (
	mostWays  = 64
	mostSteps = 1 << 12
)

// subgroup is the parts with one name.
type subgroup struct {
	level   int // of its domains
	parts   []int
	wants   cluster.Amounts
	domains []domain
	ids     []domainID // of domains
}

// domainID is a domain: its level, and its number at each level down to that.
type domainID struct {
	level int
	key   domainKey
}

// placeSubgroups is placeParts for parts of one domain of a level, -1 for all nodes: those of
// one named subgroup go to one domain of their own level in it. The subgroup that asks for
// the most has its domain first, and of the domains with room for a subgroup the one with the
// least that is free comes first. Where the parts have no place so, other domains are tried.
func placeSubgroups(state *cluster.State, parts []Unit, level int) [][]Choice {
	groups := subgroupsOf(parts, level)
	if len(groups) == 0 {
		return placeParts(state, parts)
	}
	w := ways{state: state, parts: parts, groups: groups, left: mostWays, steps: mostSteps, free: map[domainID]cluster.Amounts{}, taken: map[domainID]cluster.Amounts{}}
	for i := range groups {
		g := &groups[i]
		own := make([]Unit, len(g.parts))
		for k, p := range g.parts {
			own[k] = parts[p]
		}
		if g.domains = domainsFor(state, own, parts[0].Within, g.level); len(g.domains) == 0 {
			return nil
		}
		w.count(g)
	}
	return w.place(0)
}

// subgroupsOf are the named subgroups of parts whose level is below the level of a domain,
// those that ask for the most first.
func subgroupsOf(parts []Unit, level int) (groups []subgroup) {
	of := map[string]int{}
	for i := range parts {
		rules := parts[i].Topology
		if rules.Name == "" || rules.SubgroupLevel <= level {
			continue
		}
		at, known := of[rules.Name]
		if !known {
			at, of[rules.Name] = len(groups), len(groups)
			groups = append(groups, subgroup{level: rules.SubgroupLevel})
		}
		g := &groups[at]
		g.parts = append(g.parts, i)
		for range parts[i].Members {
			g.wants = g.wants.Plus(cluster.Least(&parts[i].Request))
		}
	}
	slices.SortStableFunc(groups, func(a, b subgroup) int {
		return cmp.Or(cmp.Compare(b.wants.GPU, a.wants.GPU), cmp.Compare(b.wants.Memory, a.wants.Memory), cmp.Compare(b.wants.CPU, a.wants.CPU))
	})
	return groups
}

// ways is the search for domains of the subgroups.
type ways struct {
	state  *cluster.State
	parts  []Unit
	groups []subgroup
	free   map[domainID]cluster.Amounts // of all open nodes of a domain
	taken  map[domainID]cluster.Amounts // by the subgroups that have the domain
	left   int                          // ways
	steps  int
}

// count names the domains of a subgroup, and sums the amounts that are free in each domain of
// its level.
func (w *ways) count(g *subgroup) {
	var levels []*cluster.Topology
	for _, l := range w.parts[g.parts[0]].Topology.Levels[:g.level+1] {
		levels = append(levels, w.state.Topology(l.Key))
	}
	g.ids = make([]domainID, len(g.domains))
	known := false
	for i := range g.domains {
		for id := range g.domains[i].nodes { // any of them
			g.ids[i] = domainID{g.level, keyOf(w.state.Node(id), levels)}
			break
		}
		_, has := w.free[g.ids[i]]
		known = known || has
	}
	if known {
		return
	}
	for _, n := range w.state.Nodes() {
		if n.Open() {
			id := domainID{g.level, keyOf(n, levels)}
			w.free[id] = w.free[id].Plus(n.FreeAmounts())
		}
	}
}

// place gives domains to the subgroups from one on, and places all parts.
func (w *ways) place(from int) [][]Choice {
	if from == len(w.groups) {
		w.left--
		return w.placeAll()
	}
	g := &w.groups[from]
	for i, id := range g.ids {
		if w.left == 0 || w.steps == 0 {
			return nil
		}
		w.steps--
		before := w.taken[id]
		if w.taken[id] = before.Plus(g.wants); w.free[id].Covers(w.taken[id]) {
			for _, p := range g.parts {
				w.parts[p].Within = g.domains[i].nodes
			}
			if plan := w.place(from + 1); plan != nil {
				return plan
			}
		}
		w.taken[id] = before
	}
	return nil
}

// placeAll is placeParts where each part has the nodes of its domain. Where that finds no
// place, the parts of narrower domains come before those that have more nodes to choose from.
func (w *ways) placeAll() [][]Choice {
	if plan := placeParts(w.state, w.parts); plan != nil {
		return plan
	}
	order := largestFirst(w.parts)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(w.choices(a), w.choices(b)) })
	plan, _ := placeInOrder(w.state, w.parts, order)
	return plan
}

// choices is the number of nodes that a part may have.
func (w *ways) choices(part int) int {
	if within := w.parts[part].Within; within != nil {
		return len(within)
	}
	return len(w.state.Nodes())
}
