package lead

import (
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// takePresent subtracts what the host has of what the members hold, and
// returns that. What the host has not (a card that was lost, an instance that
// was destroyed, pages that were given back) is nobody's to hand out.
func (n *node) takePresent(members []grant.Member) []resource.Assignment {
	taken := make([]resource.Assignment, 0, len(members))
	for _, m := range members {
		taken = append(taken, n.presentOf(m.Assignment))
	}
	return taken
}

// presentOf subtracts one assignment, part by part.
func (n *node) presentOf(a resource.Assignment) resource.Assignment {
	var got resource.Assignment
	has := func(part resource.Assignment) bool { return n.view.Host.Take(n.view.Free, part) == nil }
	for _, g := range a.CPUs {
		if has(resource.Assignment{CPUs: []resource.CPUGrant{g}}) {
			got.CPUs = append(got.CPUs, g)
		}
	}
	topology := n.view.Host.Topology()
	for _, g := range a.Memory {
		if at := topology.NodeIndex(g.Node); at >= 0 {
			g.Bytes = min(g.Bytes, n.view.Free.Memory[at])
		}
		if has(resource.Assignment{Memory: []resource.MemoryGrant{g}}) {
			got.Memory = append(got.Memory, g)
		}
	}
	for _, g := range a.Hugepages {
		if at := topology.NodeIndex(g.Node); at >= 0 {
			g.Bytes = min(g.Bytes, n.view.Host.HugepagesOn(n.view.Free, at, g.Size))
		}
		if has(resource.Assignment{Hugepages: []resource.HugepageGrant{g}}) {
			got.Hugepages = append(got.Hugepages, g)
		}
	}
	for _, g := range a.GPUs {
		if has(resource.Assignment{GPUs: []resource.GPUGrant{g}}) {
			got.GPUs = append(got.GPUs, g)
		}
	}
	for _, g := range a.MIG {
		if has(resource.Assignment{MIG: []resource.MIGGrant{g}}) {
			got.MIG = append(got.MIG, g)
		}
	}
	return got
}
