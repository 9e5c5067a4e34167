package lead

import (
	"slices"

	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
)

// registered reports whether the agent's incarnation may be counted on.
func (n *node) registered() bool {
	return n.revision != 0 && (n.fence == nil || n.revision > n.fence.revision)
}

// violation is why a node is isolated, nil if it is not. It may not be durable
// yet.
func (n *node) violation() *record.Violation {
	if n.accused != nil {
		return n.accused
	}
	return n.spec.Violation
}

// severed reports whether no stream to the node may be open.
func (n *node) severed() bool { v := n.violation(); return v != nil && v.Severed }

// specified reports whether the specification is not older than the agent's
// registration, which wrote it.
func (n *node) specified() bool { return n.specRev != 0 && n.specRev >= n.revision }

// closedReason says in words why the node takes no new work, where the specification
// is the reason.
func (n *node) closedReason() string {
	switch {
	case n.view.Ready && n.foreign:
		return shown.AwaitsApproval(n.view.ID, n.unapproved, true)
	case n.connected && n.registered() && !n.unregistered.IsZero():
		return shown.Beyond(n.unregistered.Message)
	}
	return ""
}

// offers reports whether a node takes new work.
func (n *node) offers() bool { return n.view.Ready && !n.view.Unschedulable }

// hardware is a node's, as its registration describes it.
func (n *node) hardware() shown.Hardware { return shown.Hardware{Summary: &n.spec.Topology} }

// hasHealthy reports whether the host has the device, or the MIG instance, and
// takes new work on it, as the agent's stream says. A node without a stream has none.
func (n *node) hasHealthy(uuid string) bool {
	if n.host.Inventory == nil {
		return false
	}
	for i, d := range n.host.Inventory.Devices {
		is := d.UUID == uuid
		for _, m := range d.MIG.Instances {
			is = is || m.UUID == uuid
		}
		if !is {
			continue
		}
		h, sick := n.health[i]
		return !sick || h.Health.Allocatable()
	}
	return false
}

// lostDevicesOf lists the devices of the node that a unit holds and that are
// lost. A heartbeat may be older than the return of its device, and another unit
// may hold the device by now. So a device counts only if the agent's stream does
// not have it as healthy.
func (n *node) lostDevicesOf(u *work.Unit) []string {
	var lost []string
	for _, p := range u.Placements() {
		if p.Node == n.view.ID {
			lost = append(lost, shown.LostDevices(n.said.Conditions, p.Assignment)...)
		}
	}
	lost = slices.DeleteFunc(lost, n.hasHealthy)
	slices.Sort(lost)
	return slices.Compact(lost)
}
