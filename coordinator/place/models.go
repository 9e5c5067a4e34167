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
		devices := plan[i].Node.Host.Inventory().Devices
		for _, g := range plan[i].Assignment.GPUs {
			if g.Index >= 0 && g.Index < len(devices) { // as in each plan
				sums[devices[g.Index].Model] += g.Milli
			}
		}
	}
	return sums
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
