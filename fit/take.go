package fit

import (
	"cmp"
	"fmt"

	"github.com/musterd/muster/resource"
)

// Take subtracts an assignment from the free resources: all of it or, with an error
// that names the CPU, node, GPU or instance and the numbers, nothing. Health is not
// looked at, so that work already running on a tainted device can be counted.
func (h *Host) Take(f *Free, a resource.Assignment) error {
	h.own(f)
	if err := h.wellFormed(a); err != nil {
		return fmt.Errorf("take %w", err)
	}
	for _, g := range a.CPUs {
		if have := f.CPU[h.position[g.ID]]; have < g.Milli {
			return fmt.Errorf("take cpu %d: want %d millicores, %d free", g.ID, g.Milli, have)
		}
	}
	for _, g := range a.Memory {
		if have := f.Memory[h.topology.NodeIndex(g.Node)]; have < g.Bytes {
			return fmt.Errorf("take memory of node %d: want %d bytes, %d free", g.Node, g.Bytes, have)
		}
	}
	for _, g := range a.GPUs {
		if have := f.GPU[g.Index]; have < g.Milli {
			return fmt.Errorf("take GPU %d (%s): want %d milli, %d free", g.Index, g.UUID, g.Milli, have)
		}
	}
	if err := cmp.Or(h.takePages(f, a.Hugepages), h.takeMIG(f, a.MIG), h.takeCounts(f, a.Counts)); err != nil {
		return err
	}
	h.add(f, a, -1)
	return nil
}

// Give adds an assignment back to the free resources: all of it or, where that would
// exceed the host's resources, with an error that names the CPU, node, GPU or
// instance and the numbers, nothing.
func (h *Host) Give(f *Free, a resource.Assignment) error {
	h.own(f)
	if err := h.wellFormed(a); err != nil {
		return fmt.Errorf("give %w", err)
	}
	for _, g := range a.CPUs {
		if have := f.CPU[h.position[g.ID]]; have+g.Milli > resource.WholeCPU {
			return fmt.Errorf("give cpu %d: %d millicores to %d free exceed %d", g.ID, g.Milli, have, resource.WholeCPU)
		}
	}
	for _, g := range a.Memory {
		at := h.topology.NodeIndex(g.Node)
		if held := h.fullMemory[at] - f.Memory[at]; g.Bytes > held {
			return fmt.Errorf("give memory of node %d: %d bytes to %d free exceed %d", g.Node, g.Bytes, f.Memory[at], h.fullMemory[at])
		}
	}
	for _, g := range a.GPUs {
		if have := f.GPU[g.Index]; have+g.Milli > resource.WholeDevice {
			return fmt.Errorf("give GPU %d (%s): %d milli to %d free exceed %d", g.Index, g.UUID, g.Milli, have, resource.WholeDevice)
		}
	}
	if err := cmp.Or(h.givePages(f, a.Hugepages), h.giveMIG(f, a.MIG), h.giveCounts(f, a.Counts)); err != nil {
		return err
	}
	h.add(f, a, 1)
	return nil
}

// add applies an assignment that was checked, sign times.
func (h *Host) add(f *Free, a resource.Assignment, sign int64) {
	for _, g := range a.CPUs {
		p := h.position[g.ID]
		h.setCPU(f, p, f.CPU[p]+resource.Millicores(sign)*g.Milli)
	}
	for _, g := range a.Memory {
		f.Memory[h.topology.NodeIndex(g.Node)] += resource.Bytes(sign) * g.Bytes
	}
	for _, g := range a.GPUs {
		f.GPU[g.Index] += resource.Milli(sign) * g.Milli
	}
	for i := range a.Hugepages {
		g := &a.Hugepages[i]
		f.Hugepages[h.poolOf(g)] += resource.Bytes(sign) * g.Bytes
	}
	for i := range a.MIG {
		f.MIG[a.MIG[i].GPU] ^= 1 << a.MIG[i].Instance
	}
	for _, g := range a.Counts {
		f.Counts[h.counts.position(g.Name)] += sign * g.Amount
	}
}

// wellFormed checks the assignment's own invariant and that it names resources of
// this host that are ever handed out.
func (h *Host) wellFormed(a resource.Assignment) error {
	for i, g := range a.CPUs {
		switch {
		case g.ID < 0 || g.ID >= len(h.position) || h.position[g.ID] < 0:
			return fmt.Errorf("cpu %d: there is no such CPU on this host", g.ID)
		case i > 0 && a.CPUs[i-1].ID >= g.ID:
			return fmt.Errorf("cpu %d: listed after cpu %d, want ascending order", g.ID, a.CPUs[i-1].ID)
		case g.Milli < 1 || g.Milli > resource.WholeCPU:
			return fmt.Errorf("cpu %d: %d millicores are outside 1..%d", g.ID, g.Milli, resource.WholeCPU)
		case h.coreOf[h.position[g.ID]] < 0:
			return fmt.Errorf("cpu %d: it is offline, isolated or reserved for the system", g.ID)
		}
	}
	for i, g := range a.Memory {
		switch at := h.topology.NodeIndex(g.Node); {
		case at < 0:
			return fmt.Errorf("memory of node %d: there is no such node on this host", g.Node)
		case i > 0 && a.Memory[i-1].Node >= g.Node:
			return fmt.Errorf("memory of node %d: listed after node %d, want ascending order", g.Node, a.Memory[i-1].Node)
		case g.Bytes < 1:
			return fmt.Errorf("memory of node %d: %d bytes are less than 1", g.Node, g.Bytes)
		case !h.offers(at):
			return fmt.Errorf("memory of node %d: %s", g.Node, h.whyNotOffered(at))
		}
	}
	for i, g := range a.GPUs {
		switch {
		case g.Index < 0 || g.Index >= len(h.inventory.Devices):
			return fmt.Errorf("GPU %d (%s): this host has %d GPUs", g.Index, g.UUID, len(h.inventory.Devices))
		case g.UUID != h.inventory.Devices[g.Index].UUID:
			return fmt.Errorf("GPU %d: it is %s, not %q", g.Index, h.inventory.Devices[g.Index].UUID, g.UUID)
		case i > 0 && a.GPUs[i-1].Index >= g.Index:
			return fmt.Errorf("GPU %d: listed after GPU %d, want ascending order", g.Index, a.GPUs[i-1].Index)
		case g.Milli < 1 || g.Milli > resource.WholeDevice:
			return fmt.Errorf("GPU %d (%s): %d milli are outside 1..%d", g.Index, g.UUID, g.Milli, resource.WholeDevice)
		case h.whole&(1<<g.Index) == 0:
			return fmt.Errorf("GPU %d (%s): it is in MIG mode, not handed out whole or in shares", g.Index, g.UUID)
		}
	}
	return cmp.Or(h.wellFormedPages(a.Hugepages), h.wellFormedMIG(a.MIG), h.wellFormedCounts(a.Counts))
}
