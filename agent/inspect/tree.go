package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

// A branch is one line of a drawn tree, or several, and what hangs below it.
type branch struct {
	lines []string
	below []branch
}

func leaf(format string, args ...any) branch {
	return branch{lines: []string{fmt.Sprintf(format, args...)}}
}

// draw prints branches below each other.
func (p *picture) draw(branches []branch, indent string) {
	for i, b := range branches {
		glyph, trunk := "├─ ", "│  "
		if i == len(branches)-1 {
			glyph, trunk = "└─ ", "   "
		}
		for j, line := range b.lines {
			if j == 0 {
				p.line("%s%s%s", indent, glyph, line)
			} else {
				p.line("%s%s%s", indent, trunk, line)
			}
		}
		p.draw(b.below, indent+trunk)
	}
}

// nodes draws the nodes below their sockets, in the order of nodes.
func (p *picture) nodes() {
	cpus := make(map[int]CPU, len(p.report.NUMA.CPUs))
	for _, c := range p.report.NUMA.CPUs {
		cpus[c.ID] = c
	}
	var titles []string
	below := map[string][]branch{}
	for _, n := range p.report.NUMA.Nodes {
		title := nodeTitle(n, cpus)
		if below[title] == nil {
			titles = append(titles, title)
		}
		text := "no cpus"
		if !n.CPUs.IsEmpty() {
			text = "cpus " + n.CPUs.String()
		}
		b := leaf("node %d   %s   %s%s", n.ID, text, size(n.MemoryBytes), pages(n.Hugepages))
		b.below = append(coreBranches(n, cpus), gpuBranches(p.report.Devices, func(d Device) bool { return d.NUMANode == n.ID })...)
		below[title] = append(below[title], b)
	}
	for _, title := range titles {
		p.line("")
		p.line("%s", title)
		p.draw(below[title], "")
	}
}

// nodeTitle names what a node stands below.
func nodeTitle(n Node, cpus map[int]CPU) string {
	var sockets bitset.Set
	for id := range n.CPUs.All() {
		if socket := cpus[id].Socket; socket >= 0 && socket <= bitset.MaxMember {
			sockets.Add(socket)
		}
	}
	switch {
	case n.MemoryOnly:
		return "memory only: never offered as ordinary memory"
	case sockets.Len() == 1:
		return "socket " + sockets.String()
	case sockets.IsEmpty():
		return "no known socket"
	default:
		return "sockets " + sockets.String()
	}
}

// coreBranches lists a node's online cores by the L3 cache that they share.
func coreBranches(n Node, cpus map[int]CPU) []branch {
	var groups []int
	cores := map[int][]string{}
	var drawn bitset.Set
	for id := range n.CPUs.All() {
		c := cpus[id]
		if !c.Online || drawn.Has(id) {
			continue
		}
		drawn = drawn.Union(c.Siblings)
		l3 := numa.Unknown
		if c.L3 != nil {
			l3 = *c.L3
		}
		if cores[l3] == nil {
			groups = append(groups, l3)
		}
		cores[l3] = append(cores[l3], "["+c.Siblings.String()+"]")
	}
	branches := make([]branch, 0, len(groups))
	for _, l3 := range groups {
		title := "cores"
		if l3 != numa.Unknown {
			title = fmt.Sprintf("L3 %d", l3)
		}
		branches = append(branches, branch{lines: wrap(title, cores[l3])})
	}
	return branches
}

// wrap prints a title and words behind it, in lines of at most 80 columns
// where the words allow.
func wrap(title string, words []string) []string {
	const columns = 80
	indent := strings.Repeat(" ", len(title)+2)
	lines := []string{title + " "}
	for _, word := range words {
		last := len(lines) - 1
		if len(lines[last])+1+len(word) > columns && len(lines[last]) > len(indent) {
			lines = append(lines, indent+word)
			continue
		}
		lines[last] += " " + word
	}
	return lines
}

// gpuBranches draws the GPUs that belong here, with their MIG instances.
func gpuBranches(gpus []Device, here func(Device) bool) []branch {
	var branches []branch
	for _, d := range gpus {
		if !here(d) {
			continue
		}
		mode := ""
		if d.MIG.Enabled {
			mode = "   MIG"
		}
		b := leaf("GPU %d   %s   %s   %s   %s%s", d.Index, printable(d.Model), size(d.MemoryBytes), printable(d.PCIBusID), d.Health, mode)
		for _, m := range d.MIG.Instances {
			b.below = append(b.below, leaf("%s   %s   %s", printable(m.Profile), size(m.MemoryBytes), printable(m.UUID)))
		}
		branches = append(branches, b)
	}
	return branches
}

// strayGPUs draws the GPUs that stand below no node.
func (p *picture) strayGPUs() {
	stray := gpuBranches(p.report.Devices, func(d Device) bool {
		return !slices.ContainsFunc(p.report.NUMA.Nodes, func(n Node) bool { return n.ID == d.NUMANode })
	})
	if len(stray) > 0 {
		p.line("")
		p.line("GPUs whose NUMA node is unknown")
		p.draw(stray, "")
	}
}
