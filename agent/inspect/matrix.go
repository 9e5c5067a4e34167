package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

// distances prints the square where there is more than a single node.
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

// links prints the matrix of `nvidia-smi topo -m`, and which GPUs are joined.
func (p *picture) links() {
	gpus := p.report.Devices
	if len(gpus) == 0 {
		return
	}
	class := map[[2]int]string{}
	for _, l := range p.report.Links {
		class[[2]int{l.A, l.B}], class[[2]int{l.B, l.A}] = l.Class, l.Class
	}
	rows := [][]string{{""}}
	for _, d := range gpus {
		rows[0] = append(rows[0], "GPU"+strconv.Itoa(d.Index))
	}
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
		rows = append(rows, row)
	}
	// The tree above has this too, so that it may give way to wider matrices.
	wide := [][]string{append(slices.Clone(rows[0]), "CPU Affinity", "NUMA Affinity")}
	for i, a := range gpus {
		wide = append(wide, append(slices.Clone(rows[i+1]), p.affinity(a)...))
	}
	if width(widths(wide), 2) <= columns {
		rows = wide
	}
	p.line("")
	p.table(rows)
	p.islands()
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

// islands lists the GPUs that NVLink joins, and those behind the same PCIe
// switch, where there are several.
func (p *picture) islands() {
	nvlink := p.joined(func(l devices.Link) bool { return l.NVLinks() > 0 })
	pix := p.joined(func(l devices.Link) bool { return l == devices.LinkPIX })
	if len(nvlink)+len(pix) > 0 {
		p.line("")
	}
	if len(nvlink) > 0 {
		p.flow("  joined by NVLink      ", nvlink)
	}
	if len(pix) > 0 {
		p.flow("  on one PCIe switch    ", pix)
	}
}

// joined returns the groups of two GPUs or more that links of some kind
// connect, directly or through each other.
func (p *picture) joined(counts func(devices.Link) bool) []string {
	group := map[int]bitset.Set{}
	for _, d := range p.report.Devices {
		group[d.Index] = bitset.Of(d.Index)
	}
	for _, l := range p.report.Links {
		link, err := devices.ParseLink(l.Class)
		if err != nil || !counts(link) || group[l.A].Has(l.B) {
			continue
		}
		both := group[l.A].Union(group[l.B])
		for i := range both.All() {
			group[i] = both
		}
	}
	var words []string
	for _, d := range p.report.Devices {
		if g := group[d.Index]; g.Len() > 1 && g.Min() == d.Index {
			words = append(words, "["+g.String()+"]")
		}
	}
	return words
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
	n := len(p.report.Devices)
	unknown := len(p.report.Links) < n*(n-1)/2
	if len(seen) == 0 && !unknown {
		return
	}
	p.line("")
	for _, link := range seen {
		p.line("  %-4s  %s", link, meaning(link))
	}
	if unknown {
		p.line("  %-4s  %s", "?", "the driver does not tell")
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

// table prints cells in columns two spaces apart, or one where that makes them
// fit; a table that is still too wide is printed in parts, each with the first
// column.
func (p *picture) table(rows [][]string) {
	w, gap := widths(rows), 2
	if width(w, 2) > columns && width(w, 1) <= columns {
		gap = 1
	}
	for from := 1; from < len(w); {
		to, used := from, w[0]
		for to < len(w) && (to == from || used+gap+w[to] <= columns) {
			used += gap + w[to]
			to++
		}
		if from > 1 {
			p.line("")
		}
		for _, row := range rows {
			var line strings.Builder
			fmt.Fprintf(&line, "%-*s", w[0], row[0])
			for i := from; i < to; i++ {
				fmt.Fprintf(&line, "%*s%-*s", gap, "", w[i], row[i])
			}
			p.line("%s", line.String())
		}
		from = to
	}
}

// widths are those of the columns of a table, all rows of which have the same
// number of cells.
func widths(rows [][]string) []int {
	w := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			w[i] = max(w[i], utf8.RuneCountInString(cell))
		}
	}
	return w
}

// width is that of a row whose columns are gap spaces apart.
func width(w []int, gap int) int {
	sum := gap * (len(w) - 1)
	for _, n := range w {
		sum += n
	}
	return sum
}
