package sysfs

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
)

// odds is the part of the host's memory by which the nodes together may differ
// from proc/meminfo: kernels before 3.10 count 1.5 % more on the nodes, for memory that
// the kernel itself had reserved.
const odds = 16

// settleMemory compares the memory of the nodes with that of the host, which
// proc/meminfo counts.
//
// Nodes with CPUs that have more together than the host are cut down to it in
// proportion: no process can use more than the host has. A host with more than its only
// node shows has the rest on that node, for there is no other: this is what the
// kernel shows where memory was plugged in below it. With several nodes nothing
// reports which of them has the rest, and it is not offered.
func (r *reader) settleMemory(nodes []numa.Node, complete bool) {
	var sum, ordinary resource.Bytes // at most numa.MaxNodes times resource.MaxMemory
	for _, n := range nodes {
		sum += n.Memory
		if !n.MemoryOnly {
			ordinary += n.Memory
		}
	}
	host, known := r.hostMemory()
	switch {
	case sum == 0:
	case known && ordinary > host+host/odds:
		r.warn("proc/meminfo", "the host has %s of memory and its nodes with CPUs have %s together; the memory of each of them is cut down in proportion",
			formatMemory(host), formatMemory(ordinary))
		scale(nodes, ordinary, host, func(n numa.Node) bool { return !n.MemoryOnly })
	case known && complete && sum < host-host/odds && len(nodes) == 1:
		r.warn(nodePath(nodes[0].ID, "/meminfo"), "shows %s of the host's %s of memory; all of it is counted on this node, since there is no other",
			formatMemory(sum), formatMemory(host))
		nodes[0].Memory = host
	case known && complete && sum < host-host/odds:
		r.warn("proc/meminfo", "the host has %s of memory and its nodes show %s; the other %s are on no known node and are not offered",
			formatMemory(host), formatMemory(sum), formatMemory(host-sum))
	}
	sum = 0
	for _, n := range nodes {
		sum += n.Memory
	}
	if sum > resource.MaxMemory {
		r.warn(nodeDir, "the nodes have %s of memory together, more than %s; the memory of each node is cut down in proportion", formatMemory(sum), formatMemory(resource.MaxMemory))
		scale(nodes, sum, resource.MaxMemory, func(numa.Node) bool { return true })
	}
}

// hostMemory reads the memory of the host where proc/meminfo reports it.
func (r *reader) hostMemory() (total resource.Bytes, known bool) {
	text, err := r.text("proc/meminfo")
	if err == nil {
		total, err = parseMemTotal(text)
	}
	if err != nil {
		r.unneeded("proc/meminfo", err)
		return 0, false
	}
	return total, total > 0
}

// scale cuts the memory of some nodes, which have sum together, down to at most
// total, in whole KiB.
func scale(nodes []numa.Node, sum, total resource.Bytes, which func(numa.Node) bool) {
	for i := range nodes {
		if !which(nodes[i]) {
			continue
		}
		high, low := bits.Mul64(uint64(nodes[i].Memory), uint64(total))
		part, _ := bits.Div64(high, low, uint64(sum))
		nodes[i].Memory = resource.Bytes(part) &^ 1023
	}
}

// settlePages gives each node its huge pages, and leaves out huge pages that cannot be: those that need more memory
// than their node has, and page sizes beyond numa.MaxPageSizes.
func (r *reader) settlePages(nodes []numa.Node, pages map[int]pool, unknown func(id int) bool) {
	sizes := map[int]bool{}
	for i := range nodes {
		n := &nodes[i]
		path := pages[n.ID].from
		n.Hugepages = maps.Clone(pages[n.ID].counts)
		limit, whose := n.Memory, "the node has"
		if unknown(n.ID) {
			limit, whose = resource.MaxMemory, "any host has"
			if host, known := r.hostMemory(); known {
				limit, whose = host, "the host has"
			}
		}
		left := limit
		for _, kB := range slices.Sorted(maps.Keys(n.Hugepages)) {
			count, page := n.Hugepages[kB], resource.Bytes(kB)<<10
			switch {
			case count == 0:
				continue
			case count > int64(left/page):
				r.warn(path, "counts %d huge pages of %d kB, more than the %s of memory that %s beside its other huge pages; they are left out", count, kB, formatMemory(left), whose)
				delete(n.Hugepages, kB)
				continue
			case !sizes[kB] && len(sizes) == numa.MaxPageSizes:
				r.warn(path, "has huge pages of %d kB; they are left out, for the host has more than %d sizes", kB, numa.MaxPageSizes)
				delete(n.Hugepages, kB)
				continue
			}
			sizes[kB] = true
			left -= resource.Bytes(count) * page
		}
		if limit > 0 && left == 0 && !n.MemoryOnly {
			r.warn(path, "takes all %s of memory that %s; none of it is offered as ordinary memory", formatMemory(limit), whose)
		}
	}
}

// formatMemory prints an amount of memory for people, to a tenth of a GiB, or of
// a MiB below that.
func formatMemory(b resource.Bytes) string {
	if b < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(b)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(b)/(1<<30))
}
