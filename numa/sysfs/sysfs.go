// Package sysfs reads a host's processors, NUMA nodes and identity from the
// kernel's sysfs and procfs, through an fs.FS rooted at the folder that holds
// sys/ and proc/: the live host or a captured tree (Open).
//
// It decides which files to believe when files are absent, broken or contradict each
// other: a value that the kernel does not report stays unknown and becomes a Warning, it
// is never filled in. It does not choose CPUs (fit does), find GPUs
// (devices/nvml does) or change the host.
//
// A tree is untrusted input. Files longer than 64 KiB are refused, all files
// together may hold 64 MiB, CPU numbers above 8191 and node numbers above 1023
// are ignored, folders are listed up to a bound and never walked, and only
// regular files are opened.
//
// Sources: Documentation/ABI/stable/sysfs-devices-node and
// sysfs-devices-system-cpu, Documentation/admin-guide/cputopology.rst and
// Documentation/ABI/testing/sysfs-bus-pci of the Linux kernel.
package sysfs

import (
	"fmt"
	"io/fs"

	"github.com/musterd/muster/numa"
)

// Warning is one fault of the tree: the file, its fault, and the conclusion.
type Warning struct {
	Path    string // relative to the root of the FS, e.g. "sys/devices/system/node/online"
	Problem string
}

// String returns "path: problem".
func (w Warning) String() string { return w.Path + ": " + w.Problem }

// Read returns the host's topology, which always passes Topology.Validate, and
// a Warning for each fault in the tree, in the order found. It blocks on the
// file system alone and may be called from several goroutines at once.
//
// CPUs are all present ones, online or not. A node's CPUs are those that the
// kernel lists for it; an offline CPU that no list has keeps its node by the
// link in its own folder. A host without NUMA gets one node 0 with every CPU
// and the memory of proc/meminfo. An L3 group's number counts groups by their
// least CPU. CPUs outside the caller's cgroup are not marked: see AllowedCPUs
// and Restrict.
//
// It returns an error, and no topology, where no CPU is found, none is online,
// or the tree exceeds the bounds of the package doc.
func Read(fsys fs.FS) (*numa.Topology, []Warning, error) {
	r := newReader(fsys)
	t, err := r.topology()
	if r.exhausted() {
		err = fmt.Errorf("read topology: the files of this tree hold more than %d bytes: it is not a sysfs", maxTotalBytes)
	}
	if err != nil {
		return nil, r.faults(), err
	}
	if err := t.Validate(); err != nil {
		return nil, r.faults(), fmt.Errorf("read topology: what the tree tells contradicts itself: %w", err)
	}
	return t, r.faults(), nil
}

func (r *reader) topology() (*numa.Topology, error) {
	sets, err := r.cpuSets()
	if err != nil {
		return nil, err
	}
	t := &numa.Topology{CPUs: r.cpus(sets)}
	layout, ok := r.nodeLayout()
	if !ok {
		t.Nodes = r.onlyNode(sets)
		for i := range t.CPUs {
			t.CPUs[i].NUMA = 0
		}
		return t, nil
	}
	homes := r.homes(layout, sets)
	for i := range t.CPUs {
		if node, known := homes.of[t.CPUs[i].ID]; known {
			t.CPUs[i].NUMA = node
		}
	}
	t.Nodes = r.nodes(layout, sets, homes)
	t.Distances = r.distances(layout)
	r.checkPlaces(t)
	return t, nil
}
