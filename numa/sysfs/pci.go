package sysfs

import (
	"io/fs"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/numa"
)

// PCINode returns the NUMA node of a PCI device. ok is false where the tree
// does not hold the device or its numa_node is unreadable; the node is
// numa.Unknown (-1) with ok true where the kernel says that it knows none.
//
// busID is in any form that devices.NormalizePCIBusID reads; anything else is
// not found.
func PCINode(fsys fs.FS, busID string) (node int, ok bool) {
	name, err := devices.NormalizePCIBusID(busID)
	if err != nil {
		return numa.Unknown, false
	}
	node, err = newReader(fsys).number("sys/bus/pci/devices/" + name + "/numa_node")
	if err != nil || node > maxNode {
		return numa.Unknown, false
	}
	return node, true
}
