package fit

import (
	"math/bits"
	"slices"

	"github.com/musterd/muster/devices"
)

// maxExact is the most devices for which every subset is scored.
const maxExact = 16

// worthOf is the value of a link in a sum: ten for each NVLink, and one (SYS) to
// five (PIX) for the PCIe relation on top. It is a tenth of the pair score of
// NVIDIA's go-gpuallocator (calculateGPUPairScore of its best-effort policy).
func worthOf(l devices.Link) bond { return bond(10*l.NVLinks() + int(l.PCIe())) }

// linkOf is the link of a worth.
func linkOf(worth bond) devices.Link {
	path := devices.Link(worth % 10)
	if worth < 10 {
		return path
	}
	return devices.NVLink(int(worth / 10)).Over(path)
}

// bond is the attraction of two devices: their link's worth, and below it
// whether they are on one NUMA node. Sums of bonds compare by the links first.
type bond uint32

// bondLink is the number of bits below the link: enough for a count of all
// pairs of MaxGPUs devices.
const bondLink = 12

// linkTable scores every set of up to maxExact devices by its links. It is
// immutable and depends on the bonds alone, so hosts of one kind may share it.
type linkTable struct {
	bonds [][]bond
	// worth is the sum of the bonds between all pairs of a set, by its mask.
	worth []bond
	// sets lists the masks of each size: best weakest link first, then the
	// greatest sum, then the lowest indices. runs cuts each list into runs of
	// equal weakest link and sum.
	sets [maxExact + 1][]uint16
	runs [maxExact + 1][]linkRun
}

// linkRun is a run of equally connected sets, ending before position end.
type linkRun struct {
	end     int32
	weakest devices.Link
}

// noLink is the weakest link of a set without pairs: every requirement holds.
const noLink = ^devices.Link(0)

// newLinkTable scores all subsets of at most maxExact devices.
func newLinkTable(bonds [][]bond) *linkTable {
	n := len(bonds)
	t := &linkTable{bonds: bonds, worth: make([]bond, 1<<n)}
	weakest := make([]devices.Link, 1<<n)
	weakest[0] = noLink
	// keys sort by size, weakest link, sum and indices, each in its own bits.
	keys := make([]uint64, 0, 1<<n)
	for mask := range 1 << n {
		size := bits.OnesCount(uint(mask))
		if mask != 0 {
			low := bits.TrailingZeros(uint(mask))
			others := mask & (mask - 1)
			worth, least := t.worth[others], weakest[others]
			for rest := others; rest != 0; rest &= rest - 1 {
				b := bonds[low][bits.TrailingZeros(uint(rest))]
				worth += b
				least = min(least, linkOf(b>>bondLink))
			}
			t.worth[mask], weakest[mask] = worth, least
		}
		keys = append(keys, uint64(size)<<40|uint64(noLink-weakest[mask])<<32|
			uint64(^uint16(t.worth[mask]>>bondLink))<<16|uint64(^bits.Reverse16(uint16(mask))))
	}
	slices.Sort(keys)
	sets := make([]uint16, len(keys))
	start := 0
	for i, key := range keys {
		sets[i] = bits.Reverse16(^uint16(key))
		size := int(key >> 40)
		if i+1 < len(keys) && keys[i+1]>>16 == key>>16 {
			continue
		}
		t.runs[size] = append(t.runs[size], linkRun{end: int32(i + 1 - start), weakest: weakest[sets[i]]})
		if i+1 == len(keys) || int(keys[i+1]>>40) != size {
			t.sets[size] = sets[start : i+1]
			start = i + 1
		}
	}
	return t
}

// serves reports whether the table was made for these bonds.
func (t *linkTable) serves(bonds [][]bond) bool {
	return t != nil && slices.EqualFunc(t.bonds, bonds, slices.Equal[[]bond])
}

// connected reports whether among is a superset of some set of the given size
// whose weakest link is at least required.
func (t *linkTable) connected(size int, among uint16, required devices.Link) bool {
	if size > len(t.bonds) {
		return false
	}
	from := int32(0)
	for _, run := range t.runs[size] {
		if run.weakest < required {
			return false
		}
		for _, set := range t.sets[size][from:run.end] {
			if set&^among == 0 {
				return true
			}
		}
		from = run.end
	}
	return false
}

// peers is by device the others that it is connected to by at least some link.
type peers [MaxGPUs]uint64

// The links that requests can require, as positions in Host.peers.
const (
	switchPeers = iota
	nvlinkPeers
)

// peersOf returns the devices that a row of links reaches by at least least.
func peersOf(links []devices.Link, least devices.Link) uint64 {
	var set uint64
	for i, l := range links {
		if l >= least {
			set |= 1 << i
		}
	}
	return set
}

// linkable leaves out of a set, again and again, the devices with too few
// peers in it to be one of size devices that are all connected as required.
// The rest is not enough where there are no such devices.
func (h *Host) linkable(among uint64, size int, required devices.Link) uint64 {
	table := &h.peers[switchPeers]
	switch {
	case required == devices.LinkNone:
		return among
	case required > devices.LinkPIX:
		table = &h.peers[nvlinkPeers]
	}
	for again := true; again; {
		again = false
		for rest := among; rest != 0; rest &= rest - 1 {
			if i := bits.TrailingZeros64(rest); bits.OnesCount64(table[i]&among) < size-1 {
				among &^= 1 << i
				again = true
			}
		}
	}
	return among
}

// lower reports whether the ascending indices of a come before those of b.
func lower(a, b uint64) bool {
	differ := a ^ b
	return a&(differ&-differ) != 0
}
