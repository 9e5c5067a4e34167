package ledger

import (
	"fmt"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// condition is a device's health, and why it is not OK.
type condition struct {
	health devices.Health
	reason string
}

func (d *decision) setHealth(c SetHealth) {
	if c.Device < 0 || c.Device >= len(d.l.health) {
		d.refuse(resource.Reason{Code: resource.ReasonInvalidRequest, Detail: fmt.Sprintf("device %d: this host has %d GPUs", c.Device, len(d.l.health))})
		return
	}
	if c.Health > devices.Probation {
		d.refuse(resource.Reason{Code: resource.ReasonInvalidRequest, Detail: fmt.Sprintf("device %d: health %d is unknown", c.Device, c.Health)})
		return
	}
	if d.tooLong("reason", c.Reason) {
		return
	}
	if c.Health == devices.OK {
		c.Reason = ""
	}
	if d.l.health[c.Device] != (condition{c.Health, c.Reason}) {
		d.emit(HealthChanged{d.l.places.host.Inventory().Devices[c.Device].UUID, c.Health, c.Reason})
	}
}

// applyHealth keeps the health of a device that is not there as well: it is the
// same device if it comes back.
func (l *Ledger) applyHealth(e HealthChanged) {
	l.told[e.UUID] = condition{e.Health, e.Reason}
	if at, ok := l.places.gpus[e.UUID]; ok {
		l.health[at] = l.told[e.UUID]
		l.own.free.Unhealthy = l.unhealthy()
	}
}

// conditions returns the health of a host's devices: as events reported it,
// else as the inventory has it.
func (l *Ledger) conditions(p *places) []condition {
	list := make([]condition, len(p.host.Inventory().Devices))
	for i, d := range p.host.Inventory().Devices {
		told, ok := l.told[d.UUID]
		if !ok {
			told = condition{health: d.Health}
		}
		list[i] = told
	}
	return list
}

// unhealthy returns the devices that take no new work, as a set of indices.
func (l *Ledger) unhealthy() uint64 {
	var set uint64
	for i, c := range l.health {
		if !c.health.Allocatable() {
			set |= 1 << i
		}
	}
	return set
}
