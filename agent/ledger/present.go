package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
)

// A journal may be replayed on a host that has changed: a card is gone, CPUs
// are offline or newly reserved, a node reports less memory. What a grant has
// lost with the hardware must not keep the agent from starting; what two
// grants claim at once must.

// take subtracts an assignment from free, and where this host lacks part of it
// only the rest. It returns what was subtracted and whether that is all. An
// error is a contradiction: somebody else has it.
func (l *Ledger) take(free *fit.Free, a resource.Assignment) (part resource.Assignment, exact bool, err error) {
	if l.host.Take(free, a) == nil {
		return a, true, nil
	}
	part = l.present(free, a)
	if err := l.host.Take(free, part); err != nil {
		return resource.Assignment{}, false, err
	}
	return part, false, nil
}

// give adds to what is free what was taken from it before.
func (l *Ledger) give(a resource.Assignment) {
	if err := l.host.Give(l.free, a); err != nil {
		panic(fmt.Sprintf("ledger: %v", err))
	}
}

// present returns what of an assignment this host hands out at all. Memory is
// cut to what is free, since its amount differs a little from boot to boot.
func (l *Ledger) present(free *fit.Free, a resource.Assignment) resource.Assignment {
	var part resource.Assignment
	topology, inventory := l.host.Topology(), l.host.Inventory()
	for _, c := range a.CPUs {
		at, ok := slices.BinarySearchFunc(topology.CPUs, c.ID, func(have numa.CPU, id int) int { return cmp.Compare(have.ID, id) })
		if ok && l.empty.CPU[at] == resource.WholeCPU {
			part.CPUs = append(part.CPUs, c)
		}
	}
	for _, g := range a.Memory {
		at := topology.NodeIndex(g.Node)
		if at < 0 {
			continue
		}
		if g.Bytes = min(g.Bytes, free.Memory[at]); g.Bytes > 0 {
			part.Memory = append(part.Memory, g)
		}
	}
	for _, g := range a.GPUs {
		if g.Index < len(inventory.Devices) && inventory.Devices[g.Index].UUID == g.UUID && l.empty.GPU[g.Index] > 0 {
			part.GPUs = append(part.GPUs, g)
		}
	}
	return part
}

// reindexed returns the members with the indices that their GPUs have in the
// present inventory; GPUs that are gone are numbered behind all that are there.
// The argument is returned where nothing moved.
func (l *Ledger) reindexed(members []Member) []Member {
	var changed []Member
	for i, m := range members {
		if !l.moved(m.Assignment.GPUs) {
			continue
		}
		if changed == nil {
			changed = slices.Clone(members)
		}
		gpus := slices.Clone(m.Assignment.GPUs)
		gone := len(l.host.Inventory().Devices)
		for k := range gpus {
			if gpus[k].Index = l.deviceIndex(gpus[k].UUID); gpus[k].Index < 0 {
				gpus[k].Index = gone
				gone++
			}
		}
		slices.SortFunc(gpus, func(a, b resource.GPUGrant) int {
			return cmp.Compare(a.Index, b.Index)
		})
		changed[i].Assignment.GPUs = gpus
	}
	if changed == nil {
		return members
	}
	return changed
}

// moved reports whether a GPU is not where the grant says.
func (l *Ledger) moved(gpus []resource.GPUGrant) bool {
	inventory := l.host.Inventory().Devices
	for _, g := range gpus {
		if g.Index >= len(inventory) || inventory[g.Index].UUID != g.UUID {
			return true
		}
	}
	return false
}

func (l *Ledger) deviceIndex(uuid string) int {
	return slices.IndexFunc(l.host.Inventory().Devices, func(d devices.Device) bool { return d.UUID == uuid })
}
