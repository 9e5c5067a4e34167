package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

// A branch is a line of a drawn tree, wrapped where it is long, and the
// branches below it.
type branch struct {
	title string
	words []string
	below []branch
}

// draw prints branches below each other.
func (p *picture) draw(branches []branch, indent string) {
	for i, b := range branches {
		glyph, trunk := "├─ ", "│  "
		if i == len(branches)-1 {
			glyph, trunk = "└─ ", "   "
		}
		rest := trunk
		if len(b.below) > 0 {
			rest += "│"
		}
		width := columns - len([]rune(indent+glyph))
		for j, line := range wrap(b.title, b.words, width) {
			switch {
			case j == 0:
				p.line("%s%s%s", indent, glyph, line)
			case len(b.below) > 0:
				p.line("%s%s%s", indent, rest, strings.TrimPrefix(line, " "))
			default:
				p.line("%s%s%s", indent, trunk, line)
			}
		}
		p.draw(b.below, indent+trunk)
	}
}

// nodes draws the nodes below their sockets, in the order of nodes.
func (p *picture) nodes() {
	var titles []string
	below := map[string][]branch{}
	for _, n := range p.report.NUMA.Nodes {
		title := p.nodeTitle(n)
		if below[title] == nil {
			titles = append(titles, title)
		}
		words := []string{"  no cpus"}
		if !n.CPUs.IsEmpty() {
			list := elements(n.CPUs)
			words = append([]string{"  cpus " + list[0]}, list[1:]...)
		}
		words = append(append(words, "  "+size(n.MemoryBytes)), pages(n.Hugepages)...)
		b := branch{title: fmt.Sprintf("node %d", n.ID), words: words}
		b.below = append(p.coreBranches(n.CPUs), p.offlineBranch(n.ID)...)
		b.below = append(b.below, gpuBranches(p.report.Devices, func(d Device) bool { return d.NUMANode == n.ID })...)
		below[title] = append(below[title], b)
	}
	for _, title := range titles {
		p.line("")
		p.line("%s", title)
		p.draw(below[title], "")
	}
}

// nodeTitle names the parent that a node stands below.
func (p *picture) nodeTitle(n Node) string {
	var sockets bitset.Set
	for id := range n.CPUs.All() {
		if socket := p.cpus[id].Socket; socket >= 0 && socket <= bitset.MaxMember {
			sockets.Add(socket)
		}
	}
	switch {
	case n.MemoryOnly:
		return "memory only: never offered as ordinary memory"
	case n.CPUs.IsEmpty():
		return "no cpus"
	case sockets.IsEmpty():
		return "socket unknown"
	case sockets.Len() == 1:
		return "socket " + sockets.String()
	}
	return "sockets " + sockets.String()
}

// coreGroup is the key by which cores are drawn together: their L3 cache and
// kind.
type coreGroup struct {
	l3   int
	kind string
}

func (g coreGroup) title() string {
	title := "cores"
	if g.l3 != numa.Unknown {
		title = fmt.Sprintf("L3 %d", g.l3)
	}
	if g.kind != "" {
		title += "  " + g.kind
	}
	return title + " "
}

// coreBranches draws the online cores among some CPUs by the L3 cache that
// they share; a core that is isolated in whole or in part bears a star.
func (p *picture) coreBranches(cpus bitset.Set) []branch {
	var groups []coreGroup
	cores := map[coreGroup][]string{}
	var drawn bitset.Set
	for id := range cpus.All() {
		c := p.cpus[id]
		if !c.Online || drawn.Has(id) {
			continue
		}
		drawn = drawn.Union(c.Siblings)
		group := coreGroup{l3: numa.Unknown, kind: c.Kind}
		if c.L3 != nil {
			group.l3 = *c.L3
		}
		if cores[group] == nil {
			groups = append(groups, group)
		}
		star := ""
		if !c.Siblings.Intersect(p.isolated).IsEmpty() {
			star = "*"
		}
		cores[group] = append(cores[group], "["+c.Siblings.Minus(p.offline).String()+"]"+star)
	}
	branches := make([]branch, 0, len(groups))
	for _, g := range groups {
		branches = append(branches, branch{title: g.title(), words: cores[g]})
	}
	return branches
}

// offlineBranch lists the offline CPUs of a node.
func (p *picture) offlineBranch(node int) []branch {
	var offline bitset.Set
	for id := range p.offline.All() {
		if p.cpus[id].NUMA == node {
			offline.Add(id)
		}
	}
	if offline.IsEmpty() {
		return nil
	}
	return []branch{{title: "offline ", words: elements(offline)}}
}

// strayCPUs draws the online CPUs that stand below no node.
func (p *picture) strayCPUs() {
	var stray bitset.Set
	for _, c := range p.report.NUMA.CPUs {
		if c.NUMA == numa.Unknown {
			stray.Add(c.ID)
		}
	}
	if stray.IsEmpty() {
		return
	}
	p.line("")
	p.flow("NUMA node unknown:", append([]string{"cpus"}, elements(stray)...))
	p.draw(p.coreBranches(stray), "")
}

// gpuBranches draws the GPUs that belong here, with their MIG instances.
func gpuBranches(gpus []Device, here func(Device) bool) []branch {
	var branches []branch
	for _, d := range gpus {
		if !here(d) {
			continue
		}
		b := branch{
			title: fmt.Sprintf("GPU %d", d.Index),
			words: []string{"  " + clip(printable(d.Model), 48), "  " + size(d.MemoryBytes), "  " + printable(d.PCIBusID), "  " + healthMeaning(d.Health)},
		}
		if d.MIG.Enabled {
			b.words = append(b.words, "  MIG, "+cmp.Or(instances(len(d.MIG.Instances)), "no instances: nothing to hand out"))
		}
		for _, m := range d.MIG.Instances {
			b.below = append(b.below, branch{title: printable(m.Profile), words: []string{"  " + size(m.MemoryBytes), "  " + printable(m.UUID)}})
		}
		branches = append(branches, b)
	}
	return branches
}

func instances(n int) string {
	if n == 0 {
		return ""
	}
	return count(n, "instance")
}

// healthMeaning explains a state to users who ask for the device.
func healthMeaning(health string) string {
	switch health {
	case "tainted":
		return "tainted: takes no new work"
	case "probation":
		return "probation: takes no new work yet"
	}
	return health
}

// strayGPUs draws the GPUs that stand below no node.
func (p *picture) strayGPUs() {
	stray := gpuBranches(p.report.Devices, func(d Device) bool {
		return !slices.ContainsFunc(p.report.NUMA.Nodes, func(n Node) bool { return n.ID == d.NUMANode })
	})
	if len(stray) > 0 {
		p.line("")
		p.line("NUMA node unknown")
		p.draw(stray, "")
	}
}
