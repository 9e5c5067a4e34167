package place

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/resource"
)

// placeRelated is Place for several members under rules about other units. Members
// that are to run near each other go to the domain of the first. Where that has no
// room for all, each domain is tried that may have the room, the tightest first.
func placeRelated(state *cluster.State, u *Unit, r *relations) ([]Choice, bool) {
	founds := r.mayFound()
	members, ok := placeEach(state, u, r)
	if ok || !founds {
		return members, ok
	}
	for _, d := range roomiest(state, []Unit{*u}, r.near[0].Topology) {
		again := relate(state, u)
		again.within = d
		if members, ok = placeEach(state, u, again); ok {
			return members, true
		}
	}
	return nil, false
}

// placeEach places the members one after the other, or none.
func placeEach(state *cluster.State, u *Unit, r *relations) ([]Choice, bool) {
	mark := state.Checkpoint()
	members := make([]Choice, 0, u.Members)
	of := *u
	for i := range u.Members {
		s := newSearch(state, &of, r)
		m, ok := s.place()
		if !ok {
			state.Rollback(mark)
			return nil, false
		}
		m.Index = i
		members = append(members, m)
		r.settle(m.Node)
		of.Bounds = s.left
	}
	state.Keep(mark)
	return members, true
}

// placeAtHome is placeRelated for several units with the same affinity: place takes all units,
// or returns nil. After a nil placeAtHome tries each domain with room for all by the sums, the
// tightest first.
func placeAtHome(state *cluster.State, units []Unit, place func(units []Unit) [][]Choice) [][]Choice {
	if plan := place(units); plan != nil {
		return plan
	}
	r := relate(state, &units[0])
	if !r.mayFound() {
		return nil
	}
	t := r.near[0].Topology
	for i := range units {
		if o := relate(state, &units[i]); !o.mayFound() || o.near[0].Key != t.Key {
			return nil
		}
	}
	for _, d := range roomiest(state, units, t) {
		again := slices.Clone(units)
		for i := range again {
			again[i].home = d
		}
		if plan := place(again); plan != nil {
			return plan
		}
	}
	return nil
}

// mayFound reports whether the first member may go to any domain of an affinity.
func (r *relations) mayFound() bool {
	return r != nil && r.founds && len(r.near) > 0 && r.within == cluster.NoDomain
}

// roomiest lists the domains with room for each unit alone by the sums of the nodes, the
// tightest first.
func roomiest(state *cluster.State, units []Unit, t *cluster.Topology) []int32 {
	room := make([][]int64, t.Len())
	for _, n := range state.Nodes() {
		d := t.Of(n)
		if room[d] == nil {
			room[d] = make([]int64, len(units))
		}
		for i := range units {
			if n.Open() && units[i].Allows(n) {
				room[d][i] += mayHold(n, &units[i].Request)
			}
		}
	}
	var domains []int32
	sums := make([]int64, len(room))
	for d := int32(1); int(d) < len(room); d++ {
		if room[d] == nil || !hasRoom(room[d], units) {
			continue
		}
		domains = append(domains, d)
		for _, members := range room[d] {
			sums[d] += members
		}
	}
	slices.SortFunc(domains, func(a, b int32) int {
		return cmp.Or(cmp.Compare(sums[a], sums[b]), strings.Compare(t.Name(a), t.Name(b)))
	})
	return domains
}

// mayHold is how many members fit on a node by its sums, or more.
func mayHold(n *cluster.Node, r *resource.Request) int64 {
	if !n.MayFit(r) {
		return 0
	}
	most, free, least := int64(1)<<32, n.FreeAmounts(), cluster.Least(r)
	for _, a := range [...][2]int64{{int64(free.CPU), int64(least.CPU)}, {int64(free.Memory), int64(least.Memory)}, {int64(free.GPU), int64(least.GPU)}} {
		if a[1] > 0 {
			most = min(most, a[0]/a[1])
		}
	}
	return most
}

// relateMembers is relate with counts that settle may change.
func relateMembers(state *cluster.State, u *Unit) *relations {
	of := *u
	of.Members = max(2, u.Members)
	return relate(state, &of)
}

// settleOn is settle, of no rules too.
func (r *relations) settleOn(n *cluster.Node) {
	if r != nil {
		r.settle(n)
	}
}

// refusal is the reason why the next member may not go to a node, nil where it may.
func (r *relations) refusal(n *cluster.Node) *resource.Reason {
	if r == nil || r.admits(n) {
		return nil
	}
	for i := range r.near {
		if reason := r.near[i].refusal(n, r.founds); reason != nil {
			return reason
		}
	}
	for i := range r.apart {
		if reason := r.apart[i].refusal(n); reason != nil {
			return reason
		}
	}
	for i := range r.spread {
		if s := &r.spread[i]; !s.admits(s.Of(n)) {
			return s.refusal(n)
		}
	}
	return nil
}

// domainOf names the domain of a node.
func domainOf(t *cluster.Topology, n *cluster.Node) string {
	if name := t.Name(t.Of(n)); name != string(n.ID) {
		return t.Key + "=" + name
	}
	return "the node"
}

// unlabelled is the reason of a node that is in no domain.
func unlabelled(code string, t *cluster.Topology, rule string) *resource.Reason {
	return &resource.Reason{Code: code, Detail: fmt.Sprintf("label %s is not set, and %s compares its values", t.Key, rule)}
}

func (r *nearRule) refusal(n *cluster.Node, founds bool) *resource.Reason {
	d := r.Of(n)
	switch {
	case d == cluster.NoDomain:
		return unlabelled(resource.ReasonAffinity, r.Topology, "the affinity")
	case founds || r.Active[d] > 0:
		return nil
	}
	return &resource.Reason{Code: resource.ReasonAffinity, Detail: fmt.Sprintf("%s in %s: 0, the affinity wants 1", r.rule.Selection.String(), domainOf(r.Topology, n))}
}

func (r *apartRule) refusal(n *cluster.Node) *resource.Reason {
	d := r.Of(n)
	if d == cluster.NoDomain || r.counts[d] == 0 {
		return nil
	}
	detail := fmt.Sprintf("%s in %s: %d, the anti-affinity wants 0", r.rule.Selection.String(), domainOf(r.Topology, n), r.counts[d])
	if r.theirs {
		detail = fmt.Sprintf("units in %s whose anti-affinity keeps away %s: %d", domainOf(r.Topology, n), r.rule.Selection.String(), r.counts[d])
	}
	return &resource.Reason{Code: resource.ReasonAntiAffinity, Detail: detail}
}

func (s *spreadRule) refusal(n *cluster.Node) *resource.Reason {
	d := s.Of(n)
	if d == cluster.NoDomain {
		return unlabelled(resource.ReasonSpread, s.Topology, "the spread")
	}
	return &resource.Reason{Code: resource.ReasonSpread, Detail: fmt.Sprintf("%s in %s: %d, in the least domain%s: %d; one more exceeds maxSkew %d",
		s.rule.Selection.String(), domainOf(s.Topology, n), s.Active[d], s.nameOfLeast(), s.least, s.rule.MaxSkew)}
}

// nameOfLeast names the first eligible domain with the least count: a node of it that
// takes no work, for a taint or for want of room, may be why the spread ends there.
func (s *spreadRule) nameOfLeast() string {
	first, found := "", false
	for d := int32(1); int(d) < s.Len(); d++ {
		if s.Eligible[d] && s.Active[d] == s.least && (!found || s.Name(d) < first) {
			first, found = s.Name(d), true
		}
	}
	if !found {
		return ""
	}
	return ", " + s.Key + "=" + first
}
