package fake

import (
	"maps"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

// Topology returns the machine's processors and memory, a new value each time.
// CPUs are numbered as Linux does on x86: the first thread of every core, node
// by node, then the second threads.
func (p Profile) Topology() *numa.Topology {
	m := p.Machine
	t := &numa.Topology{Nodes: make([]numa.Node, len(m.Nodes))}
	for i, n := range m.Nodes {
		t.Nodes[i] = numa.Node{ID: i, Memory: n.Memory.Bytes, MemoryOnly: n.Cores == 0, Hugepages: maps.Clone(n.Hugepages)}
	}
	for _, row := range m.Distances {
		t.Distances = append(t.Distances, append([]int(nil), row...))
	}
	cores := p.cores()
	for thread := range m.ThreadsPerCore {
		for i, core := range cores {
			id := thread*len(cores) + i
			core.ID, core.Online = id, true
			for sibling := range m.ThreadsPerCore {
				core.Siblings.Add(sibling*len(cores) + i)
			}
			t.CPUs = append(t.CPUs, core)
			t.Nodes[core.NUMA].CPUs.Add(id)
		}
	}
	return t
}

// cores lists the physical cores node by node, with all values but those that
// belong to a single thread.
func (p Profile) cores() []numa.CPU {
	m := p.Machine
	var cores []numa.CPU
	inSocket := map[int]int{}
	groups := 0
	for id, n := range m.Nodes {
		perGroup := m.CoresPerL3
		if perGroup == 0 {
			perGroup = max(n.Cores, 1)
		}
		for i := range n.Cores {
			cores = append(cores, numa.CPU{
				Socket: n.Socket, Core: inSocket[n.Socket], L3: groups + i/perGroup, NUMA: id, Siblings: bitset.Set{},
			})
			inSocket[n.Socket]++
		}
		groups += (n.Cores + perGroup - 1) / perGroup
	}
	return cores
}
