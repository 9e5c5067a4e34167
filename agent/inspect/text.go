package inspect

import (
	"fmt"
	"io"
	"strings"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// Text draws the host for a terminal: each socket's nodes with their CPUs,
// memory, online cores and GPUs, the distances, the GPUs' links as
// `nvidia-smi topo -m` prints them, and the warnings. Characters that a
// terminal could obey are replaced by '?'. The error is w's.
func (r Report) Text(w io.Writer) error {
	p := &picture{report: r}
	p.head()
	p.nodes()
	p.strayGPUs()
	p.distances()
	p.links()
	p.warnings()
	if _, err := io.WriteString(w, p.text.String()); err != nil {
		return fmt.Errorf("write the host's picture: %w", err)
	}
	return nil
}

type picture struct {
	report Report
	text   strings.Builder
}

func (p *picture) line(format string, args ...any) {
	fmt.Fprintf(&p.text, format, args...)
	p.text.WriteByte('\n')
}

func (p *picture) head() {
	r := p.report
	p.line("host %s   kernel %s   boot %s", orUnknown(r.Host.Hostname), orUnknown(r.Host.Kernel), orUnknown(r.Host.BootID))
	var ordinary, special resource.Bytes
	for _, n := range r.NUMA.Nodes {
		if n.MemoryOnly {
			special += n.MemoryBytes
		} else {
			ordinary += n.MemoryBytes
		}
	}
	memory := size(ordinary) + " memory"
	if special > 0 {
		memory += " (and " + size(special) + " memory-only)"
	}
	p.line("%s, %s, %s, %s, %s", count(r.NUMA.Sockets, "socket"), count(r.NUMA.Cores, "core"),
		count(r.NUMA.Threads, "thread"), count(len(r.NUMA.Nodes), "NUMA node"), memory)
	var offline, homeless bitset.Set
	for _, c := range r.NUMA.CPUs {
		if !c.Online {
			offline.Add(c.ID)
		}
		if c.NUMA == numa.Unknown {
			homeless.Add(c.ID)
		}
	}
	if !offline.IsEmpty() {
		p.line("offline cpus %s", offline)
	}
	if !homeless.IsEmpty() {
		p.line("cpus %s are on no known node", homeless)
	}
	if !r.isolated.IsEmpty() {
		p.line("isolated cpus %s: never handed out", r.isolated)
	}
	switch {
	case len(r.Devices) > 0:
		driver := "NVIDIA driver " + printable(r.driver)
		if r.driver == "" {
			driver = "driver's version unknown"
		}
		p.line("%s, %s", count(len(r.Devices), "GPU"), driver)
	case r.driver != "":
		p.line("no GPUs: the NVIDIA driver %s is loaded and shows none", printable(r.driver))
	default:
		p.line("no GPUs: no NVIDIA driver was found; this is a CPU-only host")
	}
}

func (p *picture) warnings() {
	if len(p.report.Warnings) == 0 {
		return
	}
	p.line("")
	p.line("%s", count(len(p.report.Warnings), "warning"))
	for _, w := range p.report.Warnings {
		p.line("  ! %s", printable(w))
	}
}
