package place

import (
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/resource"
)

// Allows reports whether the unit's constraints and Bars leave a node to it.
func (u *Unit) Allows(n *cluster.Node) bool { return u.Constraints.Allows(n.Labels) && !u.bars(n) }

// bars reports whether a node has a device of a product that the unit must not get.
func (u *Unit) bars(n *cluster.Node) bool {
	if u.Bars == nil || n.Host == nil {
		return false
	}
	for i := range n.Host.Inventory().Devices {
		if u.Bars[n.Host.Inventory().Devices[i].Model] {
			return true
		}
	}
	return false
}

// Products sums the GPUs of a plan by product, in device-milli. MIG instances are no GPUs.
func Products(plan []Choice) map[string]resource.Milli {
	sums := map[string]resource.Milli{}
	for i := range plan {
		for _, g := range plan[i].Assignment.GPUs {
			sums[productOf(plan[i].Node, &g)] += g.Milli
		}
	}
	return sums
}

// productOf is the product of a GPU that a member has: of one that its host has lost that
// of the first device, and "" where no device of the host is known.
func productOf(n *cluster.Node, g *resource.GPUGrant) string {
	if n.Host == nil || len(n.Host.Inventory().Devices) == 0 {
		return ""
	}
	all := n.Host.Inventory().Devices
	if g.Index >= 0 && g.Index < len(all) && all[g.Index].UUID == g.UUID {
		return all[g.Index].Model
	}
	for i := range all {
		if all[i].UUID == g.UUID {
			return all[i].Model
		}
	}
	return all[0].Model
}

// IsMixed reports whether a node has GPUs of several products.
func IsMixed(n *cluster.Node) bool {
	devices := n.Host.Inventory().Devices
	for i := range devices {
		if devices[i].Model != devices[0].Model {
			return true
		}
	}
	return false
}
