package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/musterd/muster/resource"
)

// write shows the picture as tables.
func (d *topDocument) write(to io.Writer, jobs bool) {
	if jobs {
		d.jobTable().write(to, "")
	} else {
		d.nodeTable().write(to, "")
	}
	var waits []string
	for _, q := range d.Queues {
		waits = append(waits, fmt.Sprintf("%s %d", q.Name, q.Depth))
	}
	if len(waits) > 0 {
		fmt.Fprintf(to, "\nunits that wait, by queue: %s\n", oneCell(strings.Join(waits, ", ")))
	}
}

// nodeTable has a line for each device, and one for a node without any.
func (d *topDocument) nodeTable() *table {
	t := newTable("NODE", "PHASE", "GPU", "MODEL", "NUMA", "USE", "MEMORY", "HEALTH", "OWNER")
	for _, n := range d.Nodes {
		if len(n.GPUs) == 0 {
			t.add(n.Name, n.Phase, "", "", "", "", "", "", "")
		}
		for _, g := range n.GPUs {
			t.add(n.Name, n.Phase, g.Name, g.Model, strconv.Itoa(g.NUMANode), g.use(), g.memory(), g.health(), g.owner())
		}
	}
	return t
}

func (g *topDevice) use() string {
	if g.UsePercent == nil {
		return ""
	}
	return strconv.Itoa(*g.UsePercent) + "%"
}

func (g *topDevice) memory() string {
	if g.MemoryUsed == "" {
		return g.Memory
	}
	return humanAmount(resource.Memory, g.MemoryUsed) + " of " + g.Memory
}

func (g *topDevice) health() string {
	if g.HealthReason == "" {
		return g.Health
	}
	return g.Health + ": " + g.HealthReason
}

func (g *topDevice) owner() string {
	if g.Taken {
		return "(taken)"
	}
	return strings.Join(g.Owners, ",")
}

// jobTable has a line for each job that has not ended.
func (d *topDocument) jobTable() *table {
	t := newTable("NAMESPACE", "NAME", "QUEUE", "PHASE", "ACTIVE", "CPU", "MEMORY", "PEAK MEMORY", "OOM KILLS", "GPU TIME", "PEAK GPU MEMORY")
	for _, j := range d.Jobs {
		cells := []string{j.Namespace, j.Name, j.Queue, string(j.Phase), fmt.Sprintf("%d/%d", j.Active, j.Members)}
		if j.Use != nil {
			cells = append(cells, useCells(j.Use)...)
		} else {
			cells = append(cells, "", "", "", "", "", "")
		}
		t.add(cells...)
	}
	return t
}
