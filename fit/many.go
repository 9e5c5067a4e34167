package fit

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/numa"
)

// MaxNodes is the most ordinary NUMA nodes of which a host hands out memory.
// With CPUs whose node is unknown it is one less: they stand in a place of their
// own.
const MaxNodes = maxDomains

// offeredNodes lists the positions in t.Nodes of the ordinary nodes that a host
// hands out, ascending: all of them, or on a host of too many the first that
// have CPUs or memory.
func offeredNodes(t *numa.Topology) []int {
	var full, empty []int // positions of ordinary nodes
	for i, n := range t.Nodes {
		switch {
		case n.MemoryOnly:
		case n.CPUs.IsEmpty() && n.Memory == 0:
			empty = append(empty, i)
		default:
			full = append(full, i)
		}
	}
	most := maxDomains
	if n := len(full) + len(empty); n > most || n == most && hasHomelessCPU(t) {
		most-- // CPUs of no node need a place too
	}
	nodes := append(full, empty...)
	nodes = nodes[:min(len(nodes), most)]
	slices.Sort(nodes)
	return nodes
}

// hasHomelessCPU reports whether some CPU is on no ordinary node.
func hasHomelessCPU(t *numa.Topology) bool {
	return slices.ContainsFunc(t.CPUs, func(c numa.CPU) bool {
		at := t.NodeIndex(c.NUMA)
		return at == numa.Unknown || t.Nodes[at].MemoryOnly
	})
}

// whyNotOffered says why the node at a position hands out no memory.
func (h *Host) whyNotOffered(node int) string {
	if h.topology.Nodes[node].MemoryOnly {
		return "it is a memory-only node, never handed out"
	}
	return fmt.Sprintf("the host has more than %d nodes, and this node is not handed out", MaxNodes)
}

// LeftOut lists the ordinary nodes of t that hold CPUs or memory and of which
// NewHost hands out no memory, since there are too many nodes; ascending. Their
// CPUs are handed out as CPUs whose node is unknown.
func LeftOut(t *numa.Topology) []int {
	offered := offeredNodes(t)
	var ids []int
	for i, n := range t.Nodes {
		if _, ok := slices.BinarySearch(offered, i); !ok && !n.MemoryOnly && (n.Memory > 0 || !n.CPUs.IsEmpty()) {
			ids = append(ids, n.ID)
		}
	}
	return ids
}
