// Package inspect renders the hardware found on a host: as the JSON document of
// `muster-agent inspect -o json` and as a picture for a terminal. It decides
// only how facts are shown; it finds none (numa/sysfs and devices/nvml do) and
// does no I/O but writing to the writer that it is given.
package inspect

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/numa/sysfs"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// Report is the hardware of a host. Its JSON form is a contract
// (docs/inspect.md): every field but a CPU's kind and isolated, unknown and hung is always
// present, lists are never null, and their order is that of the topology and
// the inventory.
type Report struct {
	Host    Host     `json:"host"`
	NUMA    NUMA     `json:"numa"`
	Devices []Device `json:"devices"`
	Links   []Link   `json:"links"` // each pair once, A < B
	// Unknown are the GPUs that the driver counts and that are not in Devices.
	Unknown []Unknown `json:"unknown,omitempty"`
	// Hung names the call into the driver that has not returned; "" where all
	// have.
	Hung     string   `json:"hung,omitempty"`
	Warnings []string `json:"warnings"`

	// driver appears in the picture alone: "" where there is no NVIDIA driver.
	driver string
}

// Host is a host's identity; "" where unknown.
type Host struct {
	Hostname string `json:"hostname"`
	BootID   string `json:"bootID"`
	Kernel   string `json:"kernel"`
}

// NUMA is a host's processors and memory.
type NUMA struct {
	Sockets int    `json:"sockets"`
	Cores   int    `json:"cores"`   // online physical cores
	Threads int    `json:"threads"` // online CPUs
	Nodes   []Node `json:"nodes"`
	// Distances is a square in the order of Nodes, or empty where unknown.
	Distances [][]int `json:"distances"`
	CPUs      []CPU   `json:"cpus"`
}

// Node is one NUMA node.
type Node struct {
	ID          int            `json:"id"`
	CPUs        bitset.Set     `json:"cpus"` // listed and present, e.g. "0-5,48-53"
	MemoryBytes resource.Bytes `json:"memoryBytes"`
	MemoryOnly  bool           `json:"memoryOnly"`
	// Hugepages counts pages by page size in kB.
	Hugepages map[int]int64 `json:"hugepages"`
}

// CPU is one present logical CPU. Socket, Core and NUMA are -1 and L3 is null
// where unknown.
type CPU struct {
	ID       int        `json:"id"`
	Socket   int        `json:"socket"`
	Core     int        `json:"core"`
	L3       *int       `json:"l3"`
	NUMA     int        `json:"numa"`
	Online   bool       `json:"online"`
	Siblings bitset.Set `json:"siblings"` // itself included, e.g. "0,48"
	// Kind is performance, efficiency or low-power on a hybrid processor.
	Kind string `json:"kind,omitempty"`
	// Isolated CPUs are never handed out: isolcpus, or outside the cgroup.
	Isolated bool `json:"isolated,omitempty"`
}

// Device is one GPU.
type Device struct {
	Index       int            `json:"index"`
	UUID        string         `json:"uuid"`
	Model       string         `json:"model"`
	MemoryBytes resource.Bytes `json:"memoryBytes"`
	PCIBusID    string         `json:"pciBusID"`
	NUMANode    int            `json:"numaNode"` // -1 where unknown
	// Clique names the GPUs that NVLink connects over hosts.
	Clique string `json:"clique,omitempty"`
	MIG    MIG    `json:"mig"`
	Health string `json:"health"` // ok, suspect, tainted or probation
}

// MIG is the multi-instance state of a GPU.
type MIG struct {
	Enabled   bool          `json:"enabled"`
	Instances []MIGInstance `json:"instances"`
}

// MIGInstance is one partition of a GPU.
type MIGInstance struct {
	UUID        string         `json:"uuid"`
	Profile     string         `json:"profile"`
	MemoryBytes resource.Bytes `json:"memoryBytes"`
}

// Unknown is a GPU that could not be used, and why.
type Unknown struct {
	Position int    `json:"position"` // the driver's number
	PCIBusID string `json:"pciBusID"` // "" where it is not known
	Why      string `json:"why"`
}

// With returns the report with the GPUs that could not be used, and the call
// that has not returned.
func (r Report) With(unknown []devices.Unknown, hung string) Report {
	for _, u := range unknown {
		r.Unknown = append(r.Unknown, Unknown(u))
	}
	r.Hung = hung
	return r
}

// Link is how two GPUs reach each other: NV#, PIX, PXB, PHB, NODE or SYS.
type Link struct {
	A     int    `json:"a"`
	B     int    `json:"b"`
	Class string `json:"class"`
}

// New builds the report. t must be valid; inv may be nil, or empty with a
// driver's version or without. The report shares nothing that may change with
// its arguments. Pairs of GPUs whose relation is unknown have no link.
func New(host sysfs.Host, t *numa.Topology, inv *devices.Inventory, warnings []string) Report {
	r := Report{
		Host:     Host(host),
		NUMA:     newNUMA(t),
		Devices:  []Device{},
		Links:    []Link{},
		Warnings: append([]string{}, warnings...),
	}
	if inv == nil {
		return r
	}
	r.driver = inv.Driver
	for _, d := range inv.Devices {
		r.Devices = append(r.Devices, newDevice(d))
	}
	for a := range inv.Devices {
		for b := a + 1; b < len(inv.Devices); b++ {
			if class := inv.Link(a, b); class != devices.LinkNone {
				r.Links = append(r.Links, Link{A: a, B: b, Class: class.String()})
			}
		}
	}
	return r
}

func newNUMA(t *numa.Topology) NUMA {
	n := NUMA{
		Sockets: t.Sockets(), Cores: t.Cores(), Threads: t.Threads(),
		Nodes: []Node{}, Distances: [][]int{}, CPUs: []CPU{},
	}
	for _, node := range t.Nodes {
		pages := map[int]int64{}
		for size, count := range node.Hugepages {
			pages[size] = count
		}
		n.Nodes = append(n.Nodes, Node{
			ID: node.ID, CPUs: node.CPUs.Clone(), MemoryBytes: node.Memory, MemoryOnly: node.MemoryOnly, Hugepages: pages,
		})
	}
	for _, row := range t.Distances {
		n.Distances = append(n.Distances, append([]int{}, row...))
	}
	for _, c := range t.CPUs {
		cpu := CPU{
			ID: c.ID, Socket: c.Socket, Core: c.Core, NUMA: c.NUMA, Online: c.Online, Siblings: c.Siblings.Clone(),
			Kind: c.Kind.String(), Isolated: c.Isolated,
		}
		if c.L3 != numa.Unknown {
			l3 := c.L3
			cpu.L3 = &l3
		}
		n.CPUs = append(n.CPUs, cpu)
	}
	return n
}

func newDevice(d devices.Device) Device {
	instances := []MIGInstance{}
	for _, i := range d.MIG.Instances {
		instances = append(instances, MIGInstance{UUID: i.UUID, Profile: i.Profile, MemoryBytes: i.Memory})
	}
	return Device{
		Index: d.Index, UUID: d.UUID, Model: d.Model, MemoryBytes: d.Memory, PCIBusID: d.PCIBusID, NUMANode: d.NUMANode, Clique: d.Clique,
		MIG: MIG{Enabled: d.MIG.Enabled, Instances: instances}, Health: d.Health.String(),
	}
}

// JSON writes the report as an indented document and a newline. The error is
// w's.
func (r Report) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write the host's report: %w", err)
	}
	return nil
}
