package digest

import (
	"encoding/binary"
	"fmt"

	"github.com/musterd/muster/resource"
)

// version is the first byte of the layout. Another layout takes another number
// and keeps a reader for this one.
//
// Layout 1, integers big-endian:
//
//	version u8 | flags u16 | len u8, nodeID | len u8, cell
//	revision i64 | sequence u64 | freeGPUs u64 | unhealthyGPUs u64
//	priorityFloor i32 | escrowFree u32 | ledgerHash u64
//	count u8, count × { freeMilli u16 | migSlices u8 }
//	count u8, count × { id u16 | freeMillicores u32 | freeCores u16 |
//	                    freeMemory u48 | freeHugepages u32 }
const version = 1

const (
	fixedSize = 1 + 2 + 1 + 1 + 8*4 + 4 + 4 + 8 + 1 + 1
	gpuSize   = 2 + 1
	numaSize  = 2 + 4 + 2 + 6 + 4
)

// Size returns how many bytes Append writes for d.
func (d Digest) Size() int {
	return fixedSize + len(d.NodeID) + len(d.Cell) +
		gpuSize*min(len(d.GPUs), MaxGPUs) + numaSize*min(len(d.NUMA), MaxNUMANodes)
}

// Append appends d.Folded() to dst in the layout's current version, at most
// MaxSize bytes, and returns the longer slice. It allocates only when dst is
// short. d must be valid: names that Validate refuses are a broken invariant
// and panic.
func (d Digest) Append(dst []byte) []byte {
	if len(d.NodeID) == 0 || len(d.NodeID) > MaxNodeID || len(d.Cell) == 0 || len(d.Cell) > MaxCell {
		panic(fmt.Sprintf("digest: append of an invalid digest: nodeID has %d bytes, cell %d", len(d.NodeID), len(d.Cell)))
	}
	if len(d.GPUs) > MaxGPUs || len(d.NUMA) > MaxNUMANodes {
		d.Flags |= Truncated
	}
	dst = append(dst, version)
	dst = binary.BigEndian.AppendUint16(dst, uint16(d.Flags))
	dst = append(dst, byte(len(d.NodeID)))
	dst = append(dst, d.NodeID...)
	dst = append(dst, byte(len(d.Cell)))
	dst = append(dst, d.Cell...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(d.Revision))
	dst = binary.BigEndian.AppendUint64(dst, d.Sequence)
	dst = binary.BigEndian.AppendUint64(dst, d.FreeGPUs)
	dst = binary.BigEndian.AppendUint64(dst, d.UnhealthyGPUs)
	dst = binary.BigEndian.AppendUint32(dst, uint32(d.PriorityFloor))
	dst = binary.BigEndian.AppendUint32(dst, d.EscrowFree)
	dst = binary.BigEndian.AppendUint64(dst, d.LedgerHash)

	n := min(len(d.GPUs), MaxGPUs)
	dst = append(dst, byte(n))
	for i := range n {
		g := d.GPUs[i]
		if i == MaxGPUs-1 {
			g = foldGPUs(d.GPUs[i:])
		}
		dst = binary.BigEndian.AppendUint16(dst, g.FreeMilli)
		dst = append(dst, g.MIGSlices)
	}
	n = min(len(d.NUMA), MaxNUMANodes)
	dst = append(dst, byte(n))
	for i := range n {
		node := d.NUMA[i]
		if i == MaxNUMANodes-1 {
			node = foldNUMA(d.NUMA[i:])
		}
		dst = appendNUMA(dst, node)
	}
	return dst
}

func appendNUMA(dst []byte, n NUMANode) []byte {
	memory := uint64(min(n.FreeMemory, MaxMemory))
	dst = binary.BigEndian.AppendUint16(dst, n.ID)
	dst = binary.BigEndian.AppendUint32(dst, n.FreeMillicores)
	dst = binary.BigEndian.AppendUint16(dst, n.FreeCores)
	dst = binary.BigEndian.AppendUint16(dst, uint16(memory>>32))
	dst = binary.BigEndian.AppendUint32(dst, uint32(memory))
	return binary.BigEndian.AppendUint32(dst, n.FreeHugepages)
}

// Parse reads one digest that fills b exactly. It refuses an unknown version,
// missing or trailing bytes, and every value that Validate refuses, naming the
// field. It keeps no part of b.
func Parse(b []byte) (Digest, error) {
	r := reader{rest: b}
	if v := r.uint8("version"); r.err == nil && v != version {
		return Digest{}, fmt.Errorf("digest: version: have %d, want %d", v, version)
	}
	var d Digest
	d.Flags = Flags(r.uint16("flags"))
	d.NodeID = resource.NodeID(r.text("nodeID", MaxNodeID))
	d.Cell = r.text("cell", MaxCell)
	d.Revision = resource.Revision(r.uint64("revision"))
	d.Sequence = r.uint64("sequence")
	d.FreeGPUs = r.uint64("freeGPUs")
	d.UnhealthyGPUs = r.uint64("unhealthyGPUs")
	d.PriorityFloor = int32(r.uint32("priorityFloor"))
	d.EscrowFree = r.uint32("escrowFree")
	d.LedgerHash = r.uint64("ledgerHash")
	if n := r.count("gpus", MaxGPUs, gpuSize); n > 0 {
		d.GPUs = make([]GPU, n)
		for i := range d.GPUs {
			d.GPUs[i] = GPU{FreeMilli: r.uint16("gpus"), MIGSlices: r.uint8("gpus")}
		}
	}
	if n := r.count("numa", MaxNUMANodes, numaSize); n > 0 {
		d.NUMA = make([]NUMANode, n)
		for i := range d.NUMA {
			d.NUMA[i] = r.numa()
		}
	}
	if r.err != nil {
		return Digest{}, r.err
	}
	if len(r.rest) != 0 {
		return Digest{}, fmt.Errorf("digest: %d trailing bytes after %d", len(r.rest), len(b)-len(r.rest))
	}
	if err := d.Validate(); err != nil {
		return Digest{}, err
	}
	return d, nil
}

// NodeIn returns the bytes of the node's name in an encoded digest, a part of b, without
// a judgement of the rest; nil where b is of another layout, or ends before the name
// does.
func NodeIn(b []byte) []byte {
	const at = 1 + 2 // behind version and flags
	if len(b) <= at || b[0] != version || len(b)-at-1 < int(b[at]) {
		return nil
	}
	return b[at+1:][:b[at]]
}

// reader takes fields off the front of rest. After the first failure it
// returns zeros and keeps err.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) take(field string, n int) []byte {
	if r.err != nil {
		return nil
	}
	if len(r.rest) < n {
		r.err = fmt.Errorf("digest: %s: want %d more bytes, have %d", field, n, len(r.rest))
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) uint8(field string) uint8 {
	if b := r.take(field, 1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint16(field string) uint16 {
	if b := r.take(field, 2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) uint32(field string) uint32 {
	if b := r.take(field, 4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64(field string) uint64 {
	if b := r.take(field, 8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) text(field string, most int) string {
	n := int(r.uint8(field))
	if r.err == nil && n > most {
		r.err = fmt.Errorf("digest: %s: %d bytes, want at most %d", field, n, most)
	}
	return string(r.take(field, n))
}

// count reads a number of entries and checks it against the bound and the
// remaining bytes, so that no count alone makes the caller allocate.
func (r *reader) count(field string, most, size int) int {
	n := int(r.uint8(field))
	if r.err == nil && n > most {
		r.err = fmt.Errorf("digest: %s: %d entries, want at most %d", field, n, most)
	}
	if r.err == nil && len(r.rest) < n*size {
		r.err = fmt.Errorf("digest: %s: %d entries want %d bytes, have %d", field, n, n*size, len(r.rest))
	}
	if r.err != nil {
		return 0
	}
	return n
}

func (r *reader) numa() NUMANode {
	n := NUMANode{ID: r.uint16("numa"), FreeMillicores: r.uint32("numa"), FreeCores: r.uint16("numa")}
	high, low := r.uint16("numa"), r.uint32("numa")
	n.FreeMemory = resource.Bytes(uint64(high)<<32 | uint64(low))
	n.FreeHugepages = r.uint32("numa")
	return n
}
