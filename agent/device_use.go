package agent

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
)

// uses are the present uses of the devices and MIG instances, by UUID. A value
// is immutable; the health monitor makes the next one.
type uses map[string]devices.Use

// after is the uses after a report of the watch on a host with these devices. The
// use of a device that is lost or hangs, or whose driver is gone, is unknown, and
// so is that of its instances. Devices and instances that the host does not have
// are left out, so there are at most devices.MaxUses.
func (u uses) after(c devices.Change, inv *devices.Inventory) uses {
	next := maps.Clone(u)
	if next == nil {
		next = uses{}
	}
	for _, e := range c.Events {
		switch e.Kind {
		case devices.EventLost, devices.EventHung, devices.EventDriverGone:
		default:
			continue
		}
		for _, d := range inv.Devices {
			if e.UUID == "" || e.UUID == d.UUID {
				delete(next, d.UUID)
				for _, m := range d.MIG.Instances {
					delete(next, m.UUID)
				}
			}
		}
	}
	for _, now := range c.Use {
		next[now.UUID] = now
	}
	has := map[string]bool{}
	for _, d := range inv.Devices {
		has[d.UUID] = true
		for _, m := range d.MIG.Instances {
			has[m.UUID] = true
		}
	}
	maps.DeleteFunc(next, func(uuid string, now devices.Use) bool { return !has[uuid] || !now.IsKnown() })
	return next
}

// measuredPart is a device or a MIG instance, and its use.
type measuredPart struct {
	Index string // "3", and "3:1" of an instance
	Model string // the device's
	devices.Use
}

// measured lists the devices and instances whose use is known, in the order of
// the inventory.
func (a *Agent) measured(v *ledger.View) []measuredPart {
	now := a.uses.Load()
	if now == nil {
		return nil
	}
	var list []measuredPart
	for _, d := range v.Host.Inventory().Devices {
		if use, ok := (*now)[d.UUID]; ok {
			list = append(list, measuredPart{strconv.Itoa(d.Index), d.Model, use})
		}
		for k, m := range d.MIG.Instances {
			if use, ok := (*now)[m.UUID]; ok {
				list = append(list, measuredPart{fmt.Sprintf("%d:%d", d.Index, k), d.Model, use})
			}
		}
	}
	return list
}
