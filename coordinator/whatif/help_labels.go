package whatif

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/resource"
)

// mostTaints bounds the taints that are tried out.
const mostTaints = 8

// constraints drops conditions on the nodes, one at a time.
func (h *helper) constraints() {
	spec := h.limits().Requirements()
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		if key == resource.StartsWorkLabel || key == resource.RunsContainersLabel || key == resource.MountsFoldersLabel { // a client cannot do without it
			continue
		}
		without := spec
		without.NodeSelector = maps.Clone(spec.NodeSelector)
		delete(without.NodeSelector, key)
		if h.starts(h.constrained(without)) {
			h.add(Hint{Code: DropLabel, Label: constraint.Label{Key: key, Value: spec.NodeSelector[key]}})
		}
	}
	if without := spec; len(spec.Required) > 0 {
		if without.Required = nil; h.starts(h.constrained(without)) {
			h.add(Hint{Code: DropAffinity})
		}
	}
	for _, taint := range h.untolerated() {
		with := spec
		with.Tolerations = append(slices.Clone(spec.Tolerations), constraint.Toleration{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
		if h.starts(h.constrained(with)) {
			h.add(Hint{Code: Tolerate, Taint: taint})
		}
	}
}

// constrained is the unit with other constraints. Preferences decide nothing here.
func (h *helper) constrained(s constraint.Spec) Unit {
	u := *h.unit
	if u.Demand.Sets != nil {
		return u.withSet(h.of.set, place.Set{Name: h.of.name, Members: h.members(), Request: h.request(), Constraints: constraint.Compile(s)})
	}
	u.Demand.Constraints = constraint.Compile(s)
	return u
}

// untolerated lists taints that keep the unit off nodes, those of most nodes first.
func (h *helper) untolerated() []constraint.Taint {
	count := map[constraint.Taint]int{}
	for _, n := range h.State.Nodes() {
		if !n.Open() || !h.limits().Matches(n.Labels) {
			continue
		}
		if t, refused := h.limits().Untolerated(n.Labels.Taints()); refused {
			count[t]++
		}
	}
	taints := slices.SortedFunc(maps.Keys(count), func(a, b constraint.Taint) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
	return taints[:min(len(taints), mostTaints)]
}

// mostNodes bounds the nodes that are tried out for one hint.
const mostNodes = 16

// nodes opens nodes that take no new work.
func (h *helper) nodes() {
	h.reopen(Uncordon,
		func(n *cluster.Node) bool { return n.Ready && n.Unschedulable },
		func(n *cluster.Node, open bool) { h.State.SetUnschedulable(n, !open) })
	h.reopen(NodesBack,
		func(n *cluster.Node) bool { return !n.Ready && !n.Unschedulable },
		func(n *cluster.Node, open bool) { h.State.SetReady(n, open) })
}

// reopen looks for the first node with which the unit starts, else for a set of
// nodes of which none is superfluous.
func (h *helper) reopen(code HintCode, isShut func(*cluster.Node) bool, set func(n *cluster.Node, open bool)) {
	var shut []*cluster.Node
	for _, n := range h.State.Nodes() {
		if isShut(n) && n.Host != nil && len(shut) < mostNodes && h.unit.Demand.AnySet(func(r *resource.Request, c *constraint.Set) bool { return n.MayFit(r) && c.Allows(n.Labels) }) {
			shut = append(shut, n)
		}
	}
	if len(shut) == 0 {
		return
	}
	works := func(nodes []*cluster.Node) bool {
		for _, n := range nodes {
			set(n, true)
			defer set(n, false)
		}
		return h.startsNow()
	}
	if !works(shut) {
		return
	}
	for i := 0; i < len(shut); {
		if rest := slices.Delete(slices.Clone(shut), i, i+1); len(rest) > 0 && works(rest) {
			shut = rest
			continue
		}
		i++
	}
	hint := Hint{Code: code}
	for _, n := range shut {
		hint.Nodes = append(hint.Nodes, n.ID)
	}
	h.add(hint)
}
