package inspect

import (
	"fmt"
	"io"
	"strings"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// Text draws the host for a terminal of 100 columns: each socket's nodes with
// their memory, cores by the L3 cache they share, and GPUs; the distances of
// nodes; the GPUs' links as `nvidia-smi topo -m` has them; and the warnings.
// Characters that a terminal could obey are replaced by '?'. The error is w's.
func (r Report) Text(w io.Writer) error {
	p := newPicture(r)
	p.head()
	p.nodes()
	p.strayCPUs()
	p.strayGPUs()
	p.distances()
	p.links()
	p.warnings()
	if _, err := io.WriteString(w, p.text.String()); err != nil {
		return fmt.Errorf("write the host's picture: %w", err)
	}
	return nil
}

// A picture is the text as far as it is drawn, with tables that the drawing
// looks up often.
type picture struct {
	report            Report
	text              strings.Builder
	cpus              map[int]CPU
	isolated, offline bitset.Set
}

func newPicture(r Report) *picture {
	p := &picture{report: r, cpus: make(map[int]CPU, len(r.NUMA.CPUs))}
	for _, c := range r.NUMA.CPUs {
		p.cpus[c.ID] = c
		if c.Isolated {
			p.isolated.Add(c.ID)
		}
		if !c.Online {
			p.offline.Add(c.ID)
		}
	}
	return p
}

// line prints one line, cut where it is wider than the terminal.
func (p *picture) line(format string, args ...any) {
	p.text.WriteString(strings.TrimRight(clip(fmt.Sprintf(format, args...), columns), " "))
	p.text.WriteByte('\n')
}

// flow prints words, in several lines if need be.
func (p *picture) flow(title string, words []string) {
	for _, line := range wrap(title, words, columns) {
		p.line("%s", line)
	}
}

func (p *picture) head() {
	r := p.report
	p.flow("host", []string{orUnknown(r.Host.Hostname), "  kernel " + orUnknown(r.Host.Kernel), "  boot " + orUnknown(r.Host.BootID)})
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
	p.kinds()
	if !p.offline.IsEmpty() {
		p.flow("offline:", append([]string{"cpus"}, elements(p.offline)...))
	}
	if !p.isolated.IsEmpty() {
		p.flow("isolated, marked * and never handed out:", append([]string{"cpus"}, elements(p.isolated)...))
	}
	p.gpus()
}

// gpus counts the GPUs, and says why there are none.
func (p *picture) gpus() {
	r := p.report
	if r.Hung != "" {
		p.flow("the NVIDIA driver hangs:", strings.Split(printable(r.Hung), " "))
	}
	unknown := ""
	if n := len(r.Unknown); n > 0 {
		unknown = fmt.Sprintf(", and %d unknown", n)
	}
	switch {
	case len(r.Devices) > 0:
		driver := "NVIDIA driver " + printable(r.driver)
		if r.driver == "" {
			driver = "driver's version unknown"
		}
		p.line("%s%s, %s", count(len(r.Devices), "GPU"), unknown, driver)
	case unknown != "":
		p.line("no GPUs that can be used%s: the warnings say why", unknown)
	case r.Hung != "":
		p.line("no GPUs: the driver has not answered")
	case r.driver != "":
		p.line("no GPUs: the NVIDIA driver %s is loaded and shows none", printable(r.driver))
	default:
		p.line("no GPUs: no NVIDIA driver was found; this is a CPU-only host")
	}
}

// kinds counts the online cores of each kind of a hybrid processor.
func (p *picture) kinds() {
	var drawn bitset.Set
	cores := map[string]int{}
	for _, c := range p.report.NUMA.CPUs {
		if c.Online && c.Kind != "" && !drawn.Has(c.ID) {
			drawn = drawn.Union(c.Siblings)
			cores[c.Kind]++
		}
	}
	var words []string
	for _, kind := range []numa.CoreKind{numa.Performance, numa.Efficiency, numa.LowPower} {
		if n := cores[kind.String()]; n > 0 {
			words = append(words, count(n, kind.String()+" core"))
		}
	}
	if len(words) > 0 {
		p.line("hybrid: %s", strings.Join(words, ", "))
	}
}

func (p *picture) warnings() {
	if len(p.report.Warnings) == 0 {
		return
	}
	p.line("")
	p.line("%s", count(len(p.report.Warnings), "warning"))
	for _, w := range p.report.Warnings {
		p.flow("  !", strings.Split(printable(w), " "))
	}
}
