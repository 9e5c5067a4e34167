package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/devices"
)

// lostDevices is the condition DeviceLost: it names the devices and MIG
// instances that are gone while a grant holds them. Coordinators look a grant's
// devices up in its message, so the UUIDs come first, between blanks or
// semicolons. ok is false where there are none.
func lostDevices(v *ledger.View) (c rpc.Condition, ok bool) {
	inv := v.Host.Inventory()
	present := map[string]bool{}
	why := map[string]string{}
	for i, g := range v.GPUs {
		lost := devices.IsLost(g.Health, g.Reason)
		present[g.UUID] = !lost
		if lost {
			why[g.UUID] = g.Reason
		}
		for _, m := range inv.Devices[i].MIG.Instances {
			present[m.UUID] = !lost
		}
	}
	var gone []string
	hold := func(uuid string) {
		if !present[uuid] && !slices.Contains(gone, uuid) {
			gone = append(gone, uuid)
		}
	}
	for _, g := range v.Grants {
		if !g.NeedsDevices() {
			continue
		}
		for _, m := range g.Members {
			for _, d := range m.Assignment.GPUs {
				hold(d.UUID)
			}
			for _, d := range m.Assignment.MIG {
				hold(d.UUID)
			}
		}
	}
	if gone == nil {
		return c, false
	}
	slices.Sort(gone)
	text := strings.Join(gone, " ") + " ; held, and gone"
	if reason := why[gone[0]]; reason != "" {
		text += fmt.Sprintf(" (%s)", reason)
	}
	return rpc.Condition{Type: "DeviceLost", True: true, Reason: "HeldDeviceGone", Message: text}, true
}

// unknownGPUs is the condition GPUsUnknown: the driver hangs, or counts GPUs
// that the last discovery could not use. Until the first report of the watch, the last
// discovery is that of the start.
func (a *Agent) unknownGPUs() (c rpc.Condition, ok bool) {
	d, unknown := &a.deps.Discovered, a.deps.Discovered.Unknown
	if now := a.unknown.Load(); now != nil {
		unknown = *now
	}
	hung := ""
	if !a.watched.Load() {
		hung = d.Hung
	}
	if hung == "" && len(unknown) == 0 {
		return c, false
	}
	c = rpc.Condition{Type: "GPUsUnknown", True: true, Reason: "NotUsable"}
	if hung != "" {
		c.Reason, c.Message = "DriverHangs", hung
		return c, true
	}
	parts := make([]string, 0, len(unknown))
	for i, u := range unknown {
		if i == mostListed {
			parts = append(parts, fmt.Sprintf("and %d more", len(unknown)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("GPU %d at %s: %s", u.Position, cmp.Or(u.PCIBusID, "an unknown PCI address"), u.Why))
	}
	c.Message = strings.Join(parts, "; ")
	return c, true
}

// driverHangs is the condition DriverHangs: a call about the driver as a whole has not
// returned since the watch began. It names the call.
func (a *Agent) driverHangs() (c rpc.Condition, ok bool) {
	now := a.hangs.Load()
	if now == nil || *now == "" {
		return c, false
	}
	return rpc.Condition{Type: "DriverHangs", True: true, Reason: "NoAnswer", Message: *now}, true
}
