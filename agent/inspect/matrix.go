package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/numa"
)

// distances prints the square where it says more than a single node would.
func (p *picture) distances() {
	nodes := p.report.NUMA.Nodes
	if len(nodes) < 2 {
		return
	}
	p.line("")
	if len(p.report.NUMA.Distances) != len(nodes) {
		p.line("distances between nodes are unknown")
		return
	}
	rows := [][]string{{"distance"}}
	for i, n := range nodes {
		rows[0] = append(rows[0], strconv.Itoa(n.ID))
		row := []string{"node " + strconv.Itoa(n.ID)}
		for _, d := range p.report.NUMA.Distances[i] {
			row = append(row, strconv.Itoa(d))
		}
		rows = append(rows, row)
	}
	p.table(rows)
}

// links prints the matrix of `nvidia-smi topo -m`.
func (p *picture) links() {
	gpus := p.report.Devices
	if len(gpus) == 0 {
		return
	}
	class := map[[2]int]string{}
	for _, l := range p.report.Links {
		class[[2]int{l.A, l.B}], class[[2]int{l.B, l.A}] = l.Class, l.Class
	}
	head := []string{""}
	for _, d := range gpus {
		head = append(head, "GPU"+strconv.Itoa(d.Index))
	}
	rows := [][]string{append(head, "CPU Affinity", "NUMA Affinity")}
	for _, a := range gpus {
		row := []string{"GPU" + strconv.Itoa(a.Index)}
		for _, b := range gpus {
			switch name, known := class[[2]int{a.Index, b.Index}]; {
			case a.Index == b.Index:
				row = append(row, " X")
			case known:
				row = append(row, name)
			default:
				row = append(row, "?")
			}
		}
		rows = append(rows, append(row, p.affinity(a)...))
	}
	p.line("")
	p.table(rows)
	p.legend()
}

// affinity is the CPUs and the number of a GPU's node.
func (p *picture) affinity(d Device) []string {
	for _, n := range p.report.NUMA.Nodes {
		if n.ID == d.NUMANode {
			return []string{cmp.Or(n.CPUs.String(), "-"), strconv.Itoa(n.ID)}
		}
	}
	if d.NUMANode == numa.Unknown {
		return []string{"N/A", "N/A"}
	}
	return []string{"N/A", strconv.Itoa(d.NUMANode)}
}

// legend explains the classes that the matrix holds, best first.
func (p *picture) legend() {
	var seen []devices.Link
	for _, l := range p.report.Links {
		if link, err := devices.ParseLink(l.Class); err == nil && !slices.Contains(seen, link) {
			seen = append(seen, link)
		}
	}
	slices.SortFunc(seen, func(a, b devices.Link) int { return cmp.Compare(b, a) })
	if len(seen) == 0 {
		return
	}
	p.line("")
	for _, link := range seen {
		p.line("  %-4s  %s", link, meaning(link))
	}
}

func meaning(l devices.Link) string {
	switch l {
	case devices.LinkPIX:
		return "at most one PCIe switch"
	case devices.LinkPXB:
		return "several PCIe switches, no host bridge"
	case devices.LinkPHB:
		return "a PCIe host bridge (the CPU)"
	case devices.LinkNODE:
		return "PCIe host bridges of one NUMA node"
	case devices.LinkSYS:
		return "the interconnect between NUMA nodes"
	}
	return count(l.NVLinks(), "NVLink")
}

// table prints cells in columns, two spaces apart.
func (p *picture) table(rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&line, "%-*s  ", widths[i], cell)
		}
		p.line("%s", strings.TrimRight(line.String(), " "))
	}
}
