// Package digest is the summary of one host's free capacity as it travels in
// the capacity ring: its fields, its fixed binary layout, and the order of two
// by age.
//
// A digest is a hint. It ranks candidates; it grants nothing, frees nothing and
// fences nobody. Its amounts never exceed the host's real free capacity, so a
// reader that trusts it too much is at worst too careful (see Folded for hosts
// larger than the layout).
//
// Measure takes a digest's amounts from a host's state, and Summary gives them
// to fit, whose answers from it are never more optimistic than the host's own.
//
// The package decides neither when a digest is sent (package gossip does) nor
// the host's state (the agent does). No I/O, clock or goroutine.
package digest

import (
	"fmt"

	"github.com/musterd/muster/resource"
)

// Bounds of the layout.
const (
	// MaxSize is the most bytes that Append writes for one digest.
	MaxSize = 480
	// MaxNodeID and MaxCell are the most bytes of a node's and a cell's name.
	MaxNodeID = 63
	MaxCell   = 15
	// MaxGPUs and MaxNUMANodes are the most entries that are listed one by one.
	MaxGPUs      = 16
	MaxNUMANodes = 16
	// MaxMemory is the most free memory of one NUMA node that a digest can
	// hold; more is sent as this much.
	MaxMemory resource.Bytes = 1<<48 - 1
)

// Flags are a host's conditions that keep new work away.
type Flags uint16

const (
	// Cordoned hosts take no new work by an operator's wish.
	Cordoned Flags = 1 << iota
	// Quarantined hosts take no new work because they disagree with the record.
	Quarantined
	// Unregistered hosts have not registered with a coordinator yet.
	Unregistered
	// Truncated digests come from a host with more GPUs or NUMA nodes than the
	// layout lists one by one. Append sets it; see Folded.
	Truncated

	knownFlags = Cordoned | Quarantined | Unregistered | Truncated
)

// Digest is one host's free capacity at one moment of its ledger. Treat it as
// immutable once it has been handed over.
//
// Invariant: NodeID and Cell are 1 to MaxNodeID and MaxCell bytes of letters,
// digits, '-', '_' and '.'; Revision >= 0; GPUs hold at most 1000 milli each;
// NUMA ascends strictly by ID with 0 <= FreeMemory; a bit of a mask beyond
// len(GPUs) is set only in a Truncated digest.
type Digest struct {
	NodeID resource.NodeID
	Cell   string
	// Revision is the store revision of the node's registration, 0 before the
	// first. With Sequence it orders a node's digests.
	Revision resource.Revision
	// Sequence rises with every digest of one registration.
	Sequence uint64
	Flags    Flags
	// FreeGPUs has bit i set when GPU i is wholly free, UnhealthyGPUs when it
	// takes no new work. Both count from the inventory's index 0 to 63.
	FreeGPUs      uint64
	UnhealthyGPUs uint64
	GPUs          []GPU
	NUMA          []NUMANode
	// PriorityFloor is the lowest priority that could be preempted here.
	PriorityFloor int32
	// EscrowFree is the amount that waiting reservations have collected, in
	// device-milli.
	EscrowFree uint32
	// LedgerHash names the ledger state that the rest was taken from.
	LedgerHash uint64
}

// GPU is the free capacity of one device.
type GPU struct {
	FreeMilli uint16 // 0 to 1000
	MIGSlices uint8  // free compute slices
}

// NUMANode is the free capacity of one NUMA node.
type NUMANode struct {
	ID             uint16 // the kernel's node number
	FreeMillicores uint32
	FreeCores      uint16 // whole physical cores
	FreeMemory     resource.Bytes
	// FreeHugepages is memory in free huge pages of any size, in MiB rounded
	// down.
	FreeHugepages uint32
}

// Newer reports whether a replaces b: by registration, then by sequence. Equal
// digests do not replace each other.
func Newer(a, b Digest) bool {
	if a.Revision != b.Revision {
		return a.Revision > b.Revision
	}
	return a.Sequence > b.Sequence
}

// Clone returns an independent copy.
func (d Digest) Clone() Digest {
	d.GPUs = append([]GPU(nil), d.GPUs...)
	d.NUMA = append([]NUMANode(nil), d.NUMA...)
	return d
}

// Folded returns d as it reads after a round trip. A host with more than 16
// GPUs keeps the first 15; entry 16 then stands for all the rest and holds the
// least of each of their amounts, so that it is true of every one of them. NUMA
// nodes likewise, entry 16 keeping the number of the first it stands for. The
// masks still list GPUs up to 63 one by one. Memory is cut to MaxMemory.
func (d Digest) Folded() Digest {
	d = d.Clone()
	if len(d.GPUs) > MaxGPUs || len(d.NUMA) > MaxNUMANodes {
		d.Flags |= Truncated
	}
	if n := len(d.GPUs); n > MaxGPUs {
		d.GPUs[MaxGPUs-1] = foldGPUs(d.GPUs[MaxGPUs-1:])
		d.GPUs = d.GPUs[:MaxGPUs]
	}
	if n := len(d.NUMA); n > MaxNUMANodes {
		d.NUMA[MaxNUMANodes-1] = foldNUMA(d.NUMA[MaxNUMANodes-1:])
		d.NUMA = d.NUMA[:MaxNUMANodes]
	}
	for i := range d.NUMA {
		d.NUMA[i].FreeMemory = min(d.NUMA[i].FreeMemory, MaxMemory)
	}
	return d
}

func foldGPUs(rest []GPU) GPU {
	least := rest[0]
	for _, g := range rest[1:] {
		least.FreeMilli = min(least.FreeMilli, g.FreeMilli)
		least.MIGSlices = min(least.MIGSlices, g.MIGSlices)
	}
	return least
}

func foldNUMA(rest []NUMANode) NUMANode {
	least := rest[0]
	for _, n := range rest[1:] {
		least.FreeMillicores = min(least.FreeMillicores, n.FreeMillicores)
		least.FreeCores = min(least.FreeCores, n.FreeCores)
		least.FreeMemory = min(least.FreeMemory, n.FreeMemory)
		least.FreeHugepages = min(least.FreeHugepages, n.FreeHugepages)
	}
	return least
}

// Validate reports the first broken invariant, naming the field and its value.
func (d Digest) Validate() error {
	if err := checkName("nodeID", string(d.NodeID), MaxNodeID); err != nil {
		return err
	}
	if err := checkName("cell", d.Cell, MaxCell); err != nil {
		return err
	}
	if d.Revision < 0 {
		return fmt.Errorf("digest: revision: %d is negative", int64(d.Revision))
	}
	if unknown := d.Flags &^ knownFlags; unknown != 0 {
		return fmt.Errorf("digest: flags: unknown bits %#04x", uint16(unknown))
	}
	if d.Flags&Truncated == 0 && len(d.GPUs) < 64 {
		if extra := d.FreeGPUs >> len(d.GPUs); extra != 0 {
			return fmt.Errorf("digest: freeGPUs: %#x names a GPU beyond the %d listed", d.FreeGPUs, len(d.GPUs))
		}
		if extra := d.UnhealthyGPUs >> len(d.GPUs); extra != 0 {
			return fmt.Errorf("digest: unhealthyGPUs: %#x names a GPU beyond the %d listed", d.UnhealthyGPUs, len(d.GPUs))
		}
	}
	for i, g := range d.GPUs {
		if g.FreeMilli > uint16(resource.WholeDevice) {
			return fmt.Errorf("digest: gpus[%d].freeMilli: %d is more than %d", i, g.FreeMilli, resource.WholeDevice)
		}
	}
	for i, n := range d.NUMA {
		if n.FreeMemory < 0 {
			return fmt.Errorf("digest: numa[%d].freeMemory: %d is negative", i, int64(n.FreeMemory))
		}
		if i > 0 && n.ID <= d.NUMA[i-1].ID {
			return fmt.Errorf("digest: numa[%d].id: %d does not follow %d", i, n.ID, d.NUMA[i-1].ID)
		}
	}
	return nil
}

// ValidCell reports whether name can be a cell's name, as an error that names
// the value.
func ValidCell(name string) error { return checkName("cell", name, MaxCell) }

// ValidNodeID reports whether id can be carried by a digest, as an error that
// names the value.
func ValidNodeID(id resource.NodeID) error { return checkName("nodeID", string(id), MaxNodeID) }

func checkName(field, s string, most int) error {
	if len(s) == 0 || len(s) > most {
		return fmt.Errorf("digest: %s: %q has %d bytes, want 1 to %d", field, s, len(s), most)
	}
	for i := range len(s) {
		c := s[i]
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
		if !ok {
			return fmt.Errorf("digest: %s: %q: byte %q at %d, want letters, digits, '-', '_' or '.'", field, s, c, i)
		}
	}
	return nil
}
