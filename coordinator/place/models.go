package place

import (
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/resource"
)

// Allows reports whether the unit's constraints and Bounds leave a node to one member.
func (u *Unit) Allows(n *cluster.Node) bool {
	return u.Constraints.Allows(n.Labels) && !u.bars(n, int64(u.Request.GPUMilli()))
}

// AllowsAll reports whether the unit's constraints and Bounds leave a node to as many
// members as there are.
func (u *Unit) AllowsAll(n *cluster.Node) bool {
	return u.Constraints.Allows(n.Labels) && !u.bars(n, int64(u.Request.GPUMilli())*int64(u.Members))
}

// bars reports whether the Bounds leave less than some device-milli on a node.
func (u *Unit) bars(n *cluster.Node, milli int64) bool {
	return u.Bounds != nil && n.Host != nil && barred(u.Bounds, n, milli)
}

func barred(bounds map[resource.Name]int64, n *cluster.Node, milli int64) bool {
	models := n.Host.Models()
	for _, model := range models {
		if most, bounded := bounds[model]; bounded && (most < milli || model != models[0] || IsMixed(n)) {
			return true
		}
	}
	return false
}

// without are the bounds of the members that are yet to be placed.
func without(bounds map[resource.Name]int64, taken resource.Vector) map[resource.Name]int64 {
	left := maps.Clone(bounds)
	for model := range left {
		left[model] -= taken[model]
	}
	return left
}

// Models sums the GPUs of the members in a plan whose requests take any model, as the
// function Models does.
func (u *Unit) Models(plan []Choice) resource.Vector {
	if u.Sets != nil {
		plan = slices.DeleteFunc(slices.Clone(plan), func(c Choice) bool { return !u.RequestOf(c.Index).TakesAnyModel() })
	}
	return Models(plan)
}

// Models sums the GPUs of a plan by the names under which quotas count them, in
// device-milli. MIG instances are no GPUs.
func Models(plan []Choice) resource.Vector {
	sums := resource.Vector{}
	for i := range plan {
		for j := range plan[i].Assignment.GPUs {
			g := &plan[i].Assignment.GPUs[j]
			sums[modelOf(plan[i].Node, g)] += int64(g.Milli)
		}
	}
	return sums
}

// modelOf is the model of a GPU that a member has: of one that its host has lost that of
// the first device, and that of an unknown product where no device of the host is known.
func modelOf(n *cluster.Node, g *resource.GPUGrant) resource.Name {
	if n.Host == nil || len(n.Host.Models()) == 0 {
		return resource.GPUOf("")
	}
	all, models := n.Host.Inventory().Devices, n.Host.Models()
	if g.Index >= 0 && g.Index < len(all) && all[g.Index].UUID == g.UUID {
		return models[g.Index]
	}
	for i := range all {
		if all[i].UUID == g.UUID {
			return models[i]
		}
	}
	return models[0]
}

// IsMixed reports whether a node has GPUs of several models.
func IsMixed(n *cluster.Node) bool {
	models := n.Host.Models()
	return slices.ContainsFunc(models, func(model resource.Name) bool { return model != models[0] })
}
