package fit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
)

// maxPool bounds one pool of huge pages, far below overflow.
const maxPool = 1 << 50

// pageTable is the huge pages of a host. It is immutable.
type pageTable struct {
	sizes []resource.Bytes // ascending
	names []resource.Name  // of sizes
	full  []resource.Bytes // as Free.Hugepages
}

// newPageTable collects the pools of the nodes that are handed out. Sizes that no request
// can name are not handed out; their memory is no ordinary memory either.
func newPageTable(t *numa.Topology, l *layout) (pageTable, error) {
	var p pageTable
	for i, n := range t.Nodes {
		if !l.offers(i) {
			continue
		}
		for _, kB := range slices.Sorted(maps.Keys(n.Hugepages)) {
			count := n.Hugepages[kB]
			if kB < 1 || count < 0 || count > maxPool/1024/int64(kB) {
				return pageTable{}, fmt.Errorf("fit: node %d: %d huge pages of %d kB: want a positive size and at most %d bytes", n.ID, count, kB, int64(maxPool))
			}
			if size := resource.Bytes(kB) * 1024; count > 0 && nameable(size) && !slices.Contains(p.sizes, size) {
				p.sizes = append(p.sizes, size)
			}
		}
	}
	if len(p.sizes) > numa.MaxPageSizes {
		return pageTable{}, fmt.Errorf("fit: %d sizes of huge pages, at most %d are supported", len(p.sizes), numa.MaxPageSizes)
	}
	slices.Sort(p.sizes)
	for _, size := range p.sizes {
		p.names = append(p.names, resource.Hugepages(size))
	}
	for i, n := range t.Nodes {
		for _, size := range p.sizes {
			pool := resource.Bytes(0)
			if l.offers(i) {
				pool = size * resource.Bytes(n.Hugepages[int(size/1024)])
			}
			p.full = append(p.full, pool)
		}
	}
	return p, nil
}

// nameable reports whether a request can ask for pages of this size.
func nameable(size resource.Bytes) bool {
	got, ok, err := resource.Hugepages(size).HugepageSize()
	return ok && err == nil && got == size
}

// ordinaryMemory is the memory of each node outside its pools of huge pages; 0
// for nodes that are not handed out.
func (p *pageTable) ordinaryMemory(t *numa.Topology, l *layout) []resource.Bytes {
	memory := make([]resource.Bytes, len(t.Nodes))
	for i, n := range t.Nodes {
		if !l.offers(i) {
			continue
		}
		memory[i] = n.Memory
		for kB, count := range n.Hugepages {
			memory[i] = max(0, memory[i]-resource.Bytes(kB)*1024*resource.Bytes(count))
		}
	}
	return memory
}

// size returns the position of a page size, or -1.
func (p *pageTable) size(size resource.Bytes) int { return slices.Index(p.sizes, size) }

// count adds amounts shaped as Free.Hugepages to a vector.
func (p *pageTable) count(v resource.Vector, amounts []resource.Bytes) {
	for i, m := range amounts {
		count(v, p.names[i%len(p.sizes)], int64(m))
	}
}

// PageSizes lists the sizes of huge pages on the host's ordinary nodes in
// ascending order. It is the order of Free.Hugepages.
func (h *Host) PageSizes() []resource.Bytes { return slices.Clone(h.pages.sizes) }

// FreeHugepages returns the memory in huge pages of one size on all nodes, as far as still to
// be handed out, 0 where the host has no such pages.
func (h *Host) FreeHugepages(f *Free, size resource.Bytes) resource.Bytes {
	var sum resource.Bytes
	for node := range h.topology.Nodes {
		sum += h.HugepagesOn(f, node, size)
	}
	if at := h.pages.size(size); at >= 0 {
		return resource.Bytes(f.open(h.pages.names[at], int64(sum)))
	}
	return sum
}

// HugepagesOn returns the memory in free huge pages of one size on the node at
// the given position in Topology.Nodes.
func (h *Host) HugepagesOn(f *Free, node int, size resource.Bytes) resource.Bytes {
	h.own(f)
	if at := h.pages.size(size); at >= 0 {
		return f.Hugepages[node*len(h.pages.sizes)+at]
	}
	return 0
}

// poolOf returns the position in Free.Hugepages of a grant that wellFormed
// accepts.
func (h *Host) poolOf(g *resource.HugepageGrant) int {
	return h.topology.NodeIndex(g.Node)*len(h.pages.sizes) + h.pages.size(g.Size)
}

// wellFormedPages is wellFormed for huge pages.
func (h *Host) wellFormedPages(grants []resource.HugepageGrant) error {
	for i := range grants {
		g := &grants[i]
		at := h.topology.NodeIndex(g.Node)
		fault := func(format string, args ...any) error {
			return fmt.Errorf("%s huge pages of node %d: %s", resource.FormatBytes(g.Size), g.Node, fmt.Sprintf(format, args...))
		}
		switch {
		case at < 0:
			return fault("there is no such node on this host")
		case !h.offers(at):
			return fault("%s", h.whyNotOffered(at))
		case h.pages.size(g.Size) < 0:
			return fault("this host has none of that size")
		case g.Bytes < 1 || g.Bytes%g.Size != 0:
			return fault("%d bytes are no whole number of pages of %d bytes, at least one", g.Bytes, g.Size)
		case i > 0 && (grants[i-1].Node > g.Node || grants[i-1].Node == g.Node && grants[i-1].Size >= g.Size):
			return fault("listed after %s pages of node %d, want ascending order", resource.FormatBytes(grants[i-1].Size), grants[i-1].Node)
		}
	}
	return nil
}

// takePages reports why grants that are well-formed cannot be taken.
func (h *Host) takePages(f *Free, grants []resource.HugepageGrant) error {
	for i := range grants {
		g := &grants[i]
		if have := f.Hugepages[h.poolOf(g)]; have < g.Bytes {
			return fmt.Errorf("take %s huge pages of node %d: want %d bytes, %d free", resource.FormatBytes(g.Size), g.Node, g.Bytes, have)
		}
	}
	return nil
}

// givePages reports why grants that are well-formed cannot be given.
func (h *Host) givePages(f *Free, grants []resource.HugepageGrant) error {
	for i := range grants {
		g := &grants[i]
		at := h.poolOf(g)
		if held := h.pages.full[at] - f.Hugepages[at]; g.Bytes > held {
			return fmt.Errorf("give %s huge pages of node %d: %d bytes to %d free exceed %d",
				resource.FormatBytes(g.Size), g.Node, g.Bytes, f.Hugepages[at], h.pages.full[at])
		}
	}
	return nil
}

// checkPages is Check for huge pages.
func (h *Host) checkPages(f *Free) error {
	for i, m := range f.Hugepages {
		at := i % len(h.pages.sizes)
		if m < 0 || m > h.pages.full[i] || m%h.pages.sizes[at] != 0 {
			return fmt.Errorf("fit: node %d has %d bytes of %s free of %d", h.topology.Nodes[i/len(h.pages.sizes)].ID, m, h.pages.names[at], h.pages.full[i])
		}
	}
	return nil
}
