package sysfs

import (
	"io/fs"
	"strings"
)

// PCINode returns the NUMA node of a PCI device. ok is false where the tree
// does not hold the device or its numa_node is unreadable; the node is
// numa.Unknown (-1) with ok true where the kernel says that it knows none.
//
// busID is domain:bus:device.function in hexadecimal of either case, its
// domain of four digits ("0000:07:00.0") or of eight as NVML prints it
// ("00000000:07:00.0"). Anything else is not found.
func PCINode(fsys fs.FS, busID string) (node int, ok bool) {
	name, ok := pciName(busID)
	if !ok {
		return -1, false
	}
	node, err := newReader(fsys).number("sys/bus/pci/devices/" + name + "/numa_node")
	if err != nil || node > maxNode {
		return -1, false
	}
	return node, true
}

// pciName returns the kernel's spelling of a PCI address.
func pciName(busID string) (string, bool) {
	domain, rest, ok := strings.Cut(strings.ToLower(busID), ":")
	// The kernel prints a domain with at least four digits.
	for len(domain) > 4 && domain[0] == '0' {
		domain = domain[1:]
	}
	const pattern = "xx:xx.x"
	if !ok || len(domain) < 4 || len(domain) > 8 || !hexadecimal(domain) || len(rest) != len(pattern) {
		return "", false
	}
	for i, want := range pattern {
		if want == 'x' && !hexadecimal(rest[i:i+1]) || want != 'x' && rest[i] != byte(want) {
			return "", false
		}
	}
	return domain + ":" + rest, true
}

func hexadecimal(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
