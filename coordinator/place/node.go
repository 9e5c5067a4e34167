// Package place decides on which nodes a unit's members go: filter, score,
// choose, over the leader's cached views; all members or none. It is advice,
// run with the same fit as the agents' verdict. It does not charge quota,
// order the queue or talk to agents.
//
// Pure: no clock, no I/O, integer scores, ties by node id. The only thing it
// changes are the Free amounts of the views it is given, and it undoes that.
package place

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// Node is the leader's view of one host.
//
// Invariant: the aggregates below Free equal what Refresh computes from it.
type Node struct {
	ID            resource.NodeID
	Labels        map[string]string
	Taints        []api.Taint
	Unschedulable bool
	// Ready: registered, and a stream to its agent is open.
	Ready bool
	Host  *fit.Host
	Free  *fit.Free

	// Aggregates of Free, for filtering without a full fit.
	FreeCPU    resource.Millicores
	FreeMemory resource.Bytes
	WholeGPUs  int            // healthy devices that are wholly free
	FreeGPU    resource.Milli // over all healthy devices
	LargestGPU resource.Milli // most that is free on one healthy device
}

// Refresh recomputes the aggregates after Free changed.
func (n *Node) Refresh() {
	n.FreeCPU, n.FreeMemory, n.WholeGPUs, n.FreeGPU, n.LargestGPU = 0, 0, 0, 0, 0
	if n.Free == nil {
		return
	}
	for i, m := range n.Free.Memory {
		n.FreeCPU += n.Host.FreeCPU(n.Free, i) // Memory has one entry per NUMA node
		n.FreeMemory += m
	}
	for i, g := range n.Free.GPU {
		if n.Free.Unhealthy&(1<<i) != 0 {
			continue
		}
		n.FreeGPU += g
		n.LargestGPU = max(n.LargestGPU, g)
		if g == resource.WholeDevice {
			n.WholeGPUs++
		}
	}
}

// roomFor is the cheap, never pessimistic test before a full fit.
func (n *Node) roomFor(r *resource.Request) bool {
	return n.FreeCPU >= r.CPU && n.FreeMemory >= r.Memory && n.WholeGPUs >= r.GPUs && n.LargestGPU >= r.GPUShare
}
