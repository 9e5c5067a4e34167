package place

import (
	"cmp"
	"iter"
	"slices"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/topology"
	"github.com/musterd/muster/resource"
)

// This file places units whose members differ (ADR 113).

// Set is members of a unit that ask for the same.
type Set struct {
	Name        string // for answers alone
	Members     int
	Request     resource.Request
	Constraints *constraint.Set
	Topology    *topology.Rules // of the subgroup that the members have a name of; nil for those of the unit
}

// Parts are the sets of a unit as units of equal members, in the order of the members'
// indices. A unit of equal members is its only part.
func (u *Unit) Parts() []Unit {
	if u.Sets == nil {
		return []Unit{*u}
	}
	parts := make([]Unit, len(u.Sets))
	for i := range u.Sets {
		s := &u.Sets[i]
		part := *u
		part.Sets, part.Members, part.Request, part.Constraints = nil, s.Members, s.Request, s.Constraints
		if s.Topology != nil {
			part.Topology = s.Topology
		}
		if !s.Request.TakesAnyModel() {
			part.Bounds = nil // the request names its model, or takes none
		}
		parts[i] = part
	}
	return parts
}

// SetOf is the number of the set of a member; 0 where members are equal.
func (u *Unit) SetOf(index int) int {
	for i := range u.Sets {
		if index < u.Sets[i].Members {
			return i
		}
		index -= u.Sets[i].Members
	}
	return 0
}

// RequestOf is the request of a member.
func (u *Unit) RequestOf(index int) *resource.Request {
	if u.Sets == nil {
		return &u.Request
	}
	return &u.Sets[u.SetOf(index)].Request
}

// EachSet yields the number of the members of each set and their request: all members,
// where they are equal.
func (u *Unit) EachSet() iter.Seq2[int, *resource.Request] {
	return func(yield func(int, *resource.Request) bool) {
		if u.Sets == nil {
			yield(u.Members, &u.Request)
			return
		}
		for i := range u.Sets {
			if !yield(u.Sets[i].Members, &u.Sets[i].Request) {
				return
			}
		}
	}
}

// AnySet reports whether something holds of the members of a set: of all members, where
// they are equal.
func (u *Unit) AnySet(holds func(r *resource.Request, c *constraint.Set) bool) bool {
	if u.Sets == nil {
		return holds(&u.Request, u.Constraints)
	}
	for i := range u.Sets {
		if holds(&u.Sets[i].Request, u.Sets[i].Constraints) {
			return true
		}
	}
	return false
}

// TakesAnyModel reports whether the models of some GPUs of the unit are known only with
// its place.
func (u *Unit) TakesAnyModel() bool {
	return u.AnySet(func(r *resource.Request, _ *constraint.Set) bool { return r.TakesAnyModel() })
}

// placeSets is Place for a unit whose members differ. The sets with the largest members
// come first, as in Together. Where that finds no place, each other set comes first once:
// a small set may have few nodes that serve it. So of two sets each order is tried. Sets
// without a domain for their affinity try each domain: see placeAtHome.
func placeSets(state *cluster.State, u *Unit) ([]Choice, bool) {
	parts := u.Parts()
	var members [][]Choice
	if u.Topology != nil {
		members = placePartsInDomains(state, u.Topology, parts)
	} else {
		members = placeAtHome(state, parts, func(parts []Unit) [][]Choice { return placeParts(state, parts) })
	}
	if members == nil {
		return nil, false
	}
	return joined(members), true
}

// placeParts places the sets of a unit, or the units of a group: all, or none (nil).
func placeParts(state *cluster.State, parts []Unit) [][]Choice {
	order := largestFirst(parts)
	related := parts[0].Subject != nil && (parts[0].Subject.Relations != nil || state.Relates(parts[0].Subject.Namespace))
	for first := range order {
		plan, failed := placeInOrder(state, parts, bringForward(order, first))
		switch {
		case plan != nil:
			return plan
		case failed == 0 && !related: // it has no place by itself
			return nil
		}
	}
	return nil
}

// bringForward is an order with one of its entries before all others.
func bringForward(order []int, at int) []int {
	return append([]int{order[at]}, slices.Delete(slices.Clone(order), at, at+1)...)
}

// joined are the choices of all sets, by the indices of the unit.
func joined(plan [][]Choice) []Choice {
	all := slices.Concat(plan...)
	for i := range all {
		all[i].Index = i
	}
	return all
}

// placePartsInDomains is placeParts under rules about domains, whose levels all parts have in
// common. All go to one domain of the narrowest level that has room for all, the one with
// the least that is free. Nodes that have failed a part, or are in doubt, are the last
// choice.
func placePartsInDomains(state *cluster.State, rules *topology.Rules, parts []Unit) [][]Choice {
	within := parts[0].Within
	parts = slices.Clone(parts)
	for _, sure := range []bool{true, false} {
		in := func(domain map[resource.NodeID]bool, level int) [][]Choice {
			for i := range parts {
				parts[i].sure, parts[i].Within = sure, domain
			}
			return placeSubgroups(state, parts, level)
		}
		required := rules.NarrowestRequired()
		for level := len(rules.Levels) - 1; level >= max(0, required); level-- {
			for _, d := range domainsFor(state, parts, within, level) {
				if plan := in(d.nodes, level); plan != nil {
					return plan
				}
			}
		}
		if required < 0 {
			if plan := in(within, required); plan != nil {
				return plan
			}
		}
	}
	return nil
}

// domain is nodes that may take members of some parts, and the amounts that are free there.
type domain struct {
	nodes map[resource.NodeID]bool
	free  cluster.Amounts
	at    int // position in the order of the domains' first nodes
}

// domainsFor are the domains of a level that may have room for each set by the sums of
// their nodes, those with the least that is free first; of the nodes within alone, nil for
// all.
func domainsFor(state *cluster.State, parts []Unit, within map[resource.NodeID]bool, level int) []domain {
	var fitting []domain
	for at, nodes := range Domains(state, parts, level) {
		c := domain{nodes: nodes, at: at}
		room := make([]int64, len(parts))
		for id := range nodes {
			n := state.Node(id)
			if within != nil && !within[id] || !n.Open() {
				continue
			}
			c.free = c.free.Plus(n.FreeAmounts())
			for i := range parts {
				if p := &parts[i]; room[i] < int64(p.Members) && p.AllowsAll(n) {
					room[i] += mayHold(n, &p.Request)
				}
			}
		}
		if hasRoom(room, parts) {
			fitting = append(fitting, c)
		}
	}
	slices.SortFunc(fitting, func(a, b domain) int {
		return cmp.Or(cmp.Compare(a.free.GPU, b.free.GPU), cmp.Compare(a.free.CPU, b.free.CPU), cmp.Compare(a.at, b.at))
	})
	return fitting
}

// hasRoom reports whether there is room for each set by itself.
func hasRoom(room []int64, parts []Unit) bool {
	for i := range parts {
		if room[i] < int64(parts[i].Members) {
			return false
		}
	}
	return true
}

// domainKey is a domain: its number at each level down to its own.
type domainKey [topology.MaxLevels]int32

func keyOf(n *cluster.Node, levels []*cluster.Topology) (key domainKey) {
	for i, t := range levels {
		key[i] = t.Of(n)
	}
	return key
}

// Domains are the nodes of each domain of a level that may take a member of some part, in the
// order of their first nodes. All parts have the same rules. Of a part whose members join
// others they are the domains of those that bind them.
func Domains(state *cluster.State, parts []Unit, level int) []map[resource.NodeID]bool {
	var levels []*cluster.Topology
	for _, l := range parts[0].Topology.Levels[:level+1] {
		levels = append(levels, state.Topology(l.Key))
	}
	var domains []map[resource.NodeID]bool
	_, mates := parts[0].bound(state)
	known, keys := map[domainKey]int{}, keysOf(state, mates, levels)
	for _, n := range state.Nodes() {
		if levels[level].Of(n) == cluster.NoDomain || !allowsAny(parts, n) {
			continue
		}
		key := keyOf(n, levels)
		if len(keys) > 0 && !keys[key] {
			continue
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

// allowsAny reports whether the constraints leave a node to members of some part.
func allowsAny(parts []Unit, n *cluster.Node) bool {
	return slices.ContainsFunc(parts, func(p Unit) bool { return p.Constraints.Allows(n.Labels) })
}
