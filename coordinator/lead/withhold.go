package lead

import (
	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/fit"
)

// This file keeps the part of a node beyond the bounds from new work: devices as
// admission.Bounds chooses them, other amounts as fit.Withheld has them.

// withheldAmounts is the withheld part of the node's amounts.
func (n *node) withheldAmounts() fit.Withheld {
	if n.view.Free == nil {
		return fit.Withheld{}
	}
	return n.view.Free.Withheld
}

// withholding has the bit of each withheld device.
func (n *node) withholding() uint64 {
	if n.bounds.Amounts == nil {
		return 0
	}
	sick, inventory := n.unhealthy(), n.host.Inventory
	devices := make([]admission.Device, len(inventory.Devices))
	for i := range devices {
		d := &inventory.Devices[i]
		devices[i] = admission.Device{
			Model: d.Model, MIG: d.MIG.Enabled, Free: n.freePart(i), Pooled: n.isPooled(d.UUID), Sick: sick&(1<<i) != 0, Withheld: n.withheld&(1<<i) != 0,
		}
	}
	return n.bounds.Withhold(devices, func(i, j int) int { return int(inventory.Link(i, j)) })
}
