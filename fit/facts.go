package fit

import (
	"iter"

	"github.com/musterd/muster/resource/bitset"
)

// Usable returns the CPUs of the node at the given position in Topology.Nodes that are
// handed out. numa.Unknown stands for the CPUs of no node.
func (h *Host) Usable(node int) bitset.Set {
	var cpus bitset.Set
	for _, d := range h.domains {
		if d.node != node {
			continue
		}
		for _, p := range h.order[d.cpus.from:d.cpus.to] {
			cpus.Add(h.topology.CPUs[p].ID)
		}
	}
	return cpus
}

// WholeCores yields the CPUs of each physical core of a node, as of Usable, all of whose
// threads are handed out. The CPUs of a core ascend.
func (h *Host) WholeCores(node int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		for _, d := range h.domains {
			if d.node != node {
				continue
			}
			for _, c := range h.cores[d.cores.from:d.cores.to] {
				if !c.whole() {
					continue
				}
				var cpus []int
				for _, p := range h.order[c.cpus.from:c.cpus.to] {
					cpus = append(cpus, h.topology.CPUs[p].ID)
				}
				if !yield(cpus) {
					return
				}
			}
		}
	}
}
