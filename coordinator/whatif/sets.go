package whatif

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// This file answers about units whose members differ (ADR 113).

// setsOnNodes is OnNodes for a unit whose members differ: a bound of one set, or of
// several together.
func (w *World) setsOnNodes(u *Unit) Fate {
	parts := u.Demand.Parts()
	if w.holdsApart(parts) {
		return Fate{}
	}
	unseen := false
	for i := range parts {
		of := *u
		of.Demand = parts[i]
		f := w.OnNodes(&of)
		if f.Bound != nil {
			f.Bound.Set = u.Demand.Sets[i].Name
			return f
		}
		unseen = unseen || f.Unseen
	}
	if unseen {
		return Fate{Unseen: true}
	}
	if b, never := w.neverTogether(parts); never {
		return Fate{Bound: &b}
	}
	return Fate{}
}

// holdsApart reports whether the first nodes that hold the sets are few enough for one
// transaction, where no two sets share a node. It may be false of a unit without a bound.
func (w *World) holdsApart(parts []place.Unit) bool {
	left, nodes, widest := make([]int, len(parts)), 0, w.MaxOps-sched.CommitOps
	for i := range parts {
		left[i] = parts[i].Members
	}
	for _, n := range w.State.Nodes() {
		if n.Kind() == nil {
			continue
		}
		for i := range parts {
			p := &parts[i]
			if left[i] == 0 || !p.Constraints.Matches(n.Labels) || !p.Constraints.Allows(n.Labels) {
				continue
			}
			if holds := min(n.Kind().AtMost(&p.Request), n.Host.MostByCounts(&p.Request)); holds > 0 {
				left[i] -= min(left[i], holds)
				nodes++
				break
			}
		}
		if nodes > widest {
			return false
		}
		if !slices.ContainsFunc(left, func(members int) bool { return members > 0 }) {
			return true
		}
	}
	return false
}

// neverTogether is the bound of sets each of which some nodes hold. The sets with the
// largest members want, each member, at least the least of them; all sets want their sum.
func (w *World) neverTogether(parts []place.Unit) (Bound, bool) {
	order := slices.Clone(parts)
	slices.SortStableFunc(order, func(a, b place.Unit) int {
		x, y := cluster.Least(&a.Request), cluster.Least(&b.Request)
		return cmp.Or(cmp.Compare(y.GPU, x.GPU), cmp.Compare(y.Memory, x.Memory), cmp.Compare(y.CPU, x.CPU))
	})
	least, members := order[0].Request, order[0].Members
	for k := 1; k < len(order); k++ {
		least, members = leastOf(&least, &order[k].Request), members+order[k].Members
		if cluster.Least(&least) == (cluster.Amounts{}) {
			break
		}
		hosts := hostsOf(w.allowedToAny(order[:k+1]), &least)
		if b, never := hosts.neverForAll(members, w.MaxOps); never {
			return b, true
		}
	}
	return w.neverBySum(parts, members)
}

// leastOf is a request that each host holds which holds one of two.
func leastOf(a, b *resource.Request) resource.Request {
	x, y := cluster.Least(a), cluster.Least(b)
	r := resource.Request{CPU: min(x.CPU, y.CPU), Memory: min(a.Memory, b.Memory), GPUs: min(a.GPUs, b.GPUs), NUMA: resource.NUMANone}
	if r.GPUs == 0 && x.GPU > 0 && y.GPU > 0 {
		r.GPUShare = min(x.GPU, y.GPU, resource.WholeDevice-1)
	}
	if a.GPUModel == b.GPUModel && r.GPUMilli() > 0 {
		r.GPUModel = a.GPUModel
	}
	return r
}

// allowedToAny are the nodes to which the constraints of some set allow its members.
func (w *World) allowedToAny(parts []place.Unit) []*cluster.Node {
	return slices.DeleteFunc(slices.Clone(w.State.Nodes()), func(n *cluster.Node) bool {
		return !slices.ContainsFunc(parts, func(p place.Unit) bool { return isAllowed(p.Constraints, n) })
	})
}

func isAllowed(c *constraint.Set, n *cluster.Node) bool {
	return c.Matches(n.Labels) && c.Allows(n.Labels)
}

// neverBySum is the bound of a resource of which all nodes together have less than all
// members want.
func (w *World) neverBySum(parts []place.Unit, members int) (Bound, bool) {
	wanted, have, nodes := resource.Vector{}, resource.Vector{}, w.allowedToAny(parts)
	for i := range parts {
		wanted.Add(wantedOf(&parts[i].Request).Scaled(int64(parts[i].Members)))
	}
	for _, n := range nodes {
		if n.Kind() == nil {
			return Bound{}, false
		}
		most, registered := resource.Vector{}, n.Registered
		for i := range parts {
			for name, amount := range capacityOf(n, &parts[i].Request) {
				most[name] = max(most[name], amount, registered[name])
			}
		}
		have.Add(most)
	}
	for _, name := range wanted.Names() {
		if wanted[name] > have[name] {
			return Bound{Code: NodesTooSmall, Nodes: len(nodes), LeftOut: len(w.State.Nodes()) - len(nodes), Resource: name, Want: wanted[name], Have: have[name], Members: members - 1}, true
		}
	}
	return Bound{}, false
}

// changing is what a hint changes: the members of one set, or all of a unit of equal
// members.
type changing struct {
	set  int
	name string // "" where the members are equal
}

// request is the request of the members that a hint changes.
func (h *helper) request() resource.Request {
	if s := h.unit.Demand.Sets; s != nil {
		return s[h.of.set].Request
	}
	return h.unit.Demand.Request
}

// members are those that a hint changes.
func (h *helper) members() int {
	if s := h.unit.Demand.Sets; s != nil {
		return s[h.of.set].Members
	}
	return h.unit.Demand.Members
}

// limits are the constraints of the members that a hint changes.
func (h *helper) limits() *constraint.Set {
	if s := h.unit.Demand.Sets; s != nil {
		return s[h.of.set].Constraints
	}
	return h.unit.Demand.Constraints
}

// with is the unit with another number of the members that a hint changes, or another
// request of each: its charges follow.
func (h *helper) with(members int, r resource.Request) Unit {
	u := *h.unit
	if u.Demand.Sets == nil {
		return u.with(members, r)
	}
	return u.withSet(h.of.set, place.Set{Name: h.of.name, Members: members, Request: r, Constraints: h.limits()})
}

// withSet is the unit with another set in place of one.
func (u Unit) withSet(at int, s place.Set) Unit {
	before := u.Demand.Sets[at]
	u.Demand.Sets = slices.Clone(u.Demand.Sets)
	u.Demand.Sets[at] = s
	u.Demand.Members += s.Members - before.Members
	u.Demand.Request, u.Demand.Constraints = u.Demand.Sets[0].Request, u.Demand.Sets[0].Constraints
	charge := u.Charge.Request.Clone()
	charge.Sub(before.Request.Charge().Scaled(int64(before.Members)))
	charge.Add(s.Request.Charge().Scaled(int64(s.Members)))
	u.Charge.Request, u.Charge.Members = charge, int64(u.Demand.Members)
	u.Charges = slices.Clone(u.Charges)
	for i := range u.Charges {
		u.Charges[i].Request = charge
	}
	return u
}

// eachSet looks for changes of the members of each set, and of all members where they are
// equal.
func (h *helper) eachSet(look func()) {
	sets := h.unit.Demand.Sets
	for i := range max(1, len(sets)) {
		if h.of = (changing{}); sets != nil {
			h.of = changing{i, sets[i].Name}
		}
		from := len(h.hints)
		look()
		for k := range h.hints[from:] {
			h.hints[from+k].Set = h.of.name
		}
	}
}
