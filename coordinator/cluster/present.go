package cluster

import "github.com/musterd/muster/resource"

// TakePresent subtracts from the free amounts of a node that part of an assignment
// that is free, and returns the part. The rest (a card that was lost, an instance
// that was destroyed, pages that were given back) is nobody's to hand out. The node
// has a host. While a checkpoint is open nobody may change the part.
func (s *State) TakePresent(n *Node, a resource.Assignment) resource.Assignment {
	n.unshare()
	var got resource.Assignment
	has := func(part resource.Assignment) bool { return n.Host.Take(n.Free, part) == nil }
	for _, g := range a.CPUs {
		if has(resource.Assignment{CPUs: []resource.CPUGrant{g}}) {
			got.CPUs = append(got.CPUs, g)
		}
	}
	topology := n.Host.Topology()
	for _, g := range a.Memory {
		if at := topology.NodeIndex(g.Node); at >= 0 {
			g.Bytes = min(g.Bytes, n.Free.Memory[at])
		}
		if has(resource.Assignment{Memory: []resource.MemoryGrant{g}}) {
			got.Memory = append(got.Memory, g)
		}
	}
	for _, g := range a.Hugepages {
		if at := topology.NodeIndex(g.Node); at >= 0 {
			g.Bytes = min(g.Bytes, n.Host.HugepagesOn(n.Free, at, g.Size))
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
	for _, g := range a.Counts {
		g.Amount = min(g.Amount, n.Host.FreePart(n.Free, g.Name))
		if has(resource.Assignment{Counts: []resource.CountGrant{g}}) {
			got.Counts = append(got.Counts, g)
		}
	}
	if !s.journal.note(entry{node: n, assignment: got, before: n.Sums}) {
		s.markShrunk(n)
	}
	n.Refresh()
	s.markStale(n)
	return got
}
