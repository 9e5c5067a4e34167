package place

import (
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/resource"
)

// Allows reports whether the unit's constraints and Bars leave a node to it.
func (u *Unit) Allows(n *cluster.Node) bool { return u.Constraints.Allows(n.Labels) && !u.bars(n) }

// bars reports whether a node has a device of a model that the unit must not get.
func (u *Unit) bars(n *cluster.Node) bool {
	return u.Bars != nil && n.Host != nil && slices.ContainsFunc(n.Host.Models(), func(model resource.Name) bool { return u.Bars[model] })
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
