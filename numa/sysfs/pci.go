package sysfs

import (
	"io/fs"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

// PCINode returns the NUMA node of a PCI device: by its numa_node, or where that
// is absent, unreadable or -1, the only node that has all CPUs of its
// local_cpulist or local_cpus. ok is false where the tree does not hold the
// device or nothing of both can be read; the node is numa.Unknown (-1) with ok
// true where the kernel says that it knows none.
//
// busID is in any form that devices.NormalizePCIBusID reads; any other text is
// not found.
func PCINode(fsys fs.FS, busID string) (node int, ok bool) {
	name, err := devices.NormalizePCIBusID(busID)
	if err != nil {
		return numa.Unknown, false
	}
	r := newReader(fsys)
	dir := "sys/bus/pci/devices/" + name
	node, err = r.number(dir + "/numa_node")
	switch {
	case err == nil && node > maxNode:
		return numa.Unknown, false
	case err == nil && node >= 0:
		return node, true
	}
	if local := r.localCPUs(dir); !local.IsEmpty() {
		if node, ok := r.nodeAround(local); ok {
			return node, true
		}
	}
	return numa.Unknown, err == nil
}

// localCPUs reads the CPUs next to a PCI device; empty where no file reports them.
func (r *reader) localCPUs(dir string) bitset.Set {
	if cpus, err := r.list(dir+"/local_cpulist", maxCPU); err == nil {
		return cpus
	}
	cpus, err := r.mask(dir+"/local_cpus", maxCPU)
	if err != nil {
		return bitset.Set{}
	}
	return cpus
}

// nodeAround finds the only node that has all of some CPUs, of those that are on
// any node. A device of unknown place is shown beside every CPU, which says
// more only where several nodes have CPUs.
func (r *reader) nodeAround(cpus bitset.Set) (node int, ok bool) {
	layout, ok := r.nodeLayout()
	if !ok {
		return numa.Unknown, false
	}
	found, peopled := bitset.Set{}, 0
	for _, id := range layout.nodes {
		listed, _, ok := r.nodeCPUs(id)
		if !ok {
			return numa.Unknown, false
		}
		if !listed.IsEmpty() {
			peopled++
		}
		if !listed.Intersect(cpus).IsEmpty() {
			found.Add(id)
		}
	}
	if peopled < 2 || found.Len() != 1 {
		return numa.Unknown, false
	}
	return found.Min(), true
}
