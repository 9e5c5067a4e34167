// Package numa describes a host's processors and memory: packages, cores, SMT
// siblings, L3 groups, NUMA nodes, their memory and distances. It validates
// and answers questions about a Topology; it does not read one from a host
// (numa/sysfs does) and does not choose CPUs (fit does).
package numa

import (
	"fmt"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// The most that a Topology holds: the greatest numbers that Linux is built for (NR_CPUS,
// MAX_NUMNODES), and far more NUMA nodes than any machine has.
const (
	MaxCPUs   = 8192 // CPUs, and their numbers are below it
	MaxNodes  = 256
	MaxNodeID = 1023
	// MaxSiblings bounds the hardware threads of one core. Processors have at most
	// 8; virtual machines are configured with more.
	MaxSiblings = 256
	// MaxPageSizes bounds the sizes of huge pages of one host. The architecture
	// with the most that Linux runs on, arm64, has four.
	MaxPageSizes = 8
)

// Unknown marks a socket, core, L3 group or node that the host does not report.
const Unknown = -1

// Topology is one host's processors and memory. It is immutable once built.
//
// Invariant: Nodes ascend by ID and CPUs by ID; every CPU's NUMA is Unknown or
// the ID of a node; a node's CPUs are in the topology, and each has that node
// for its NUMA or, where the host contradicts itself, Unknown; every online CPU
// is among the CPUs of its NUMA; Distances is empty or a square over Nodes;
// there are at most MaxNodes nodes and MaxCPUs CPUs, a CPU has at most
// MaxSiblings siblings, and all nodes together have at most resource.MaxMemory
// bytes, so that no sum over a topology overflows.
type Topology struct {
	Nodes []Node
	CPUs  []CPU
	// Distances holds ACPI SLIT distances, rows and columns in the order of
	// Nodes (10 = local); nil where the host does not report.
	Distances [][]int
}

// Node is one NUMA node. A host without NUMA has one node 0 with everything.
type Node struct {
	ID int
	// CPUs are those that the host lists for this node and that are present.
	// Kernels leave out offline ones, whose NUMA may still name the node.
	CPUs   bitset.Set
	Memory resource.Bytes
	// MemoryOnly nodes have memory but no CPU (CXL, HBM, GPU memory): never
	// offered as ordinary memory.
	MemoryOnly bool
	// Hugepages counts pages by page size in kB, e.g. 2048 → 512.
	Hugepages map[int]int64
}

// CPU is one logical CPU.
type CPU struct {
	ID     int
	Socket int // physical package id, unique on the host, or Unknown
	Core   int // core id within the socket or one of its dies, or Unknown
	L3     int // L3 group id, unique on the host, or Unknown
	NUMA   int // node ID, or Unknown
	// Kind distinguishes the cores of a hybrid processor.
	Kind   CoreKind
	Online bool
	// Isolated CPUs (isolcpus, or outside the agent's cgroup) are shown but
	// never handed out.
	Isolated bool
	// Siblings are the hardware threads of this CPU's core, itself included.
	Siblings bitset.Set
}

// CoreKind is the kind of a core on a processor that has several.
type CoreKind uint8

const (
	// UnknownKind: all cores are alike, or the host does not report.
	UnknownKind CoreKind = iota
	// Performance cores are the fast ones.
	Performance
	// Efficiency cores are the small ones.
	Efficiency
	// LowPower cores are smaller still (Intel's LP E-cores).
	LowPower
)

var coreKindNames = [...]string{"", "performance", "efficiency", "low-power"}

// String returns the kind's name, "" for UnknownKind.
func (k CoreKind) String() string {
	if int(k) < len(coreKindNames) {
		return coreKindNames[k]
	}
	return fmt.Sprintf("CoreKind(%d)", uint8(k))
}

// Usable reports whether the CPU may be handed out.
func (c CPU) Usable() bool { return c.Online && !c.Isolated }

// Sockets counts distinct packages among online CPUs. CPUs that do not report
// theirs add none, but where no CPU reports its own they are in one.
func (t *Topology) Sockets() int {
	seen := map[int]bool{}
	for _, c := range t.CPUs {
		if c.Online {
			seen[c.Socket] = true
		}
	}
	if len(seen) > 1 {
		delete(seen, Unknown) // CPUs that do not report add no package
	}
	return len(seen)
}

// Cores counts online physical cores: groups of SMT siblings.
func (t *Topology) Cores() int {
	n := 0
	for _, c := range t.CPUs {
		if c.Online && c.firstOnlineSibling(t) == c.ID {
			n++
		}
	}
	return n
}

// Threads counts online logical CPUs.
func (t *Topology) Threads() int {
	n := 0
	for _, c := range t.CPUs {
		if c.Online {
			n++
		}
	}
	return n
}

// firstOnlineSibling is the least online CPU of the same core.
func (c CPU) firstOnlineSibling(t *Topology) int {
	for id := range c.Siblings.All() {
		if sibling, ok := t.CPU(id); ok && sibling.Online {
			return id
		}
	}
	return c.ID
}

// CPU returns the CPU with the given kernel number.
func (t *Topology) CPU(id int) (CPU, bool) {
	low, high := 0, len(t.CPUs)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if t.CPUs[mid].ID < id {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < len(t.CPUs) && t.CPUs[low].ID == id {
		return t.CPUs[low], true
	}
	return CPU{}, false
}

// NodeIndex returns the position of the node with the given ID in Nodes, or
// Unknown.
func (t *Topology) NodeIndex(id int) int {
	for i, n := range t.Nodes {
		if n.ID == id {
			return i
		}
	}
	return Unknown
}

// Memory is the ordinary memory of the host: memory-only nodes do not count.
func (t *Topology) Memory() resource.Bytes {
	var sum resource.Bytes
	for _, n := range t.Nodes {
		if !n.MemoryOnly {
			sum += n.Memory
		}
	}
	return sum
}

// Validate checks the type's invariants and names the first that is broken.
func (t *Topology) Validate() error {
	switch {
	case len(t.Nodes) > MaxNodes:
		return fmt.Errorf("numa: %d nodes, more than %d", len(t.Nodes), MaxNodes)
	case len(t.CPUs) > MaxCPUs:
		return fmt.Errorf("numa: %d cpus, more than %d", len(t.CPUs), MaxCPUs)
	}
	var memory resource.Bytes
	for i, n := range t.Nodes {
		if i > 0 && t.Nodes[i-1].ID >= n.ID {
			return fmt.Errorf("numa: node %d listed after node %d", n.ID, t.Nodes[i-1].ID)
		}
		if n.Memory < 0 || n.Memory > resource.MaxMemory {
			return fmt.Errorf("numa: node %d has %d bytes of memory, outside 0..%d", n.ID, n.Memory, resource.MaxMemory)
		}
		if memory += n.Memory; memory > resource.MaxMemory { // each is at most MaxMemory: the sum is exact
			return fmt.Errorf("numa: nodes up to %d have %d bytes of memory together, more than %d", n.ID, memory, resource.MaxMemory)
		}
	}
	for i, c := range t.CPUs {
		if i > 0 && t.CPUs[i-1].ID >= c.ID {
			return fmt.Errorf("numa: cpu %d listed after cpu %d", c.ID, t.CPUs[i-1].ID)
		}
		if !c.Siblings.Has(c.ID) {
			return fmt.Errorf("numa: cpu %d is not among its own siblings %q", c.ID, c.Siblings)
		}
		if n := c.Siblings.Len(); n > MaxSiblings {
			return fmt.Errorf("numa: cpu %d has %d siblings, more than %d", c.ID, n, MaxSiblings)
		}
		if c.NUMA == Unknown {
			continue
		}
		home := t.NodeIndex(c.NUMA)
		if home == Unknown {
			return fmt.Errorf("numa: cpu %d is on node %d, which does not exist", c.ID, c.NUMA)
		}
		if c.Online && !t.Nodes[home].CPUs.Has(c.ID) {
			return fmt.Errorf("numa: cpu %d is on node %d, which lists cpus %q", c.ID, c.NUMA, t.Nodes[home].CPUs)
		}
	}
	for _, n := range t.Nodes {
		for id := range n.CPUs.All() {
			c, ok := t.CPU(id)
			if !ok {
				return fmt.Errorf("numa: node %d lists cpu %d, which does not exist", n.ID, id)
			}
			if c.NUMA != n.ID && c.NUMA != Unknown {
				return fmt.Errorf("numa: node %d lists cpu %d, which is on node %d", n.ID, id, c.NUMA)
			}
		}
	}
	for i, row := range t.Distances {
		if len(t.Distances) != len(t.Nodes) || len(row) != len(t.Nodes) {
			return fmt.Errorf("numa: distance row %d has %d columns for %d nodes", i, len(row), len(t.Nodes))
		}
	}
	return nil
}
