package fit

import (
	"math/bits"

	"github.com/musterd/muster/devices"
)

// Around returns n of the devices in among that include all of with: the best set by
// weakest link, then by the sum of links, then by the fewest NUMA nodes, then by the links
// that it leaves between the other devices of among. On hosts of more than 16 devices it
// is a set grown from with, each time by the device that is linked best. It looks at
// links alone: neither at free amounts nor at CPUs and memory. The lists are indices of
// devices. It returns false where an index is given twice or does not exist, with is no
// part of among, or n lies outside len(with)..len(among).
func (h *Host) Around(among, with []int, n int) ([]int, bool) {
	all, ok := h.setOf(among)
	must, fits := h.setOf(with)
	if !ok || !fits || must&^all != 0 || n < len(with) || n > len(among) {
		return nil, false
	}
	switch {
	case n == 0:
		return nil, true
	case h.links == nil && must == 0:
		return indices(h.grownFrom(all, n)), true
	case h.links == nil:
		return indices(h.grownAround(all, must, n)), true
	}
	return indices(h.links.around(h, uint16(all), uint16(must), n)), true
}

// around is the best set of n devices by the table.
func (t *linkTable) around(h *Host, all, must uint16, n int) uint64 {
	var best uint16
	var bestLeft bond
	bestSpan, from := 0, int32(0)
	for _, run := range t.runs[n] {
		for _, set := range t.sets[n][from:run.end] {
			if set&^all != 0 || must&^set != 0 {
				continue
			}
			span, left := bits.OnesCount64(h.domainsOf(uint64(set))), t.worth[all&^set]
			if best == 0 || span < bestSpan || span == bestSpan && left > bestLeft {
				best, bestSpan, bestLeft = set, span, left
			}
		}
		if best != 0 {
			break
		}
		from = run.end
	}
	return uint64(best)
}

// grownFrom is the best of the sets of n devices that are grown from each device of all.
func (h *Host) grownFrom(all uint64, n int) uint64 {
	best, found := wideScore{}, false
	for rest := all; rest != 0; rest &= rest - 1 {
		score, ok := h.grow(bits.TrailingZeros64(rest), n, all, devices.LinkNone)
		if !ok {
			continue
		}
		score.span = bits.OnesCount64(h.domainsOf(score.set))
		for in := score.set; in != 0; in &= in - 1 {
			for out := all &^ score.set; out != 0; out &= out - 1 {
				score.broken += h.bonds[bits.TrailingZeros64(in)][bits.TrailingZeros64(out)]
			}
		}
		if !found || score.compare(best) < 0 {
			best, found = score, true
		}
	}
	return best.set
}

// grownAround adds devices of all to must until there are n.
func (h *Host) grownAround(all, must uint64, n int) uint64 {
	set := must
	for bits.OnesCount64(set) < n {
		next, weakest, sum := -1, devices.LinkNone, 0
		for rest := all &^ set; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros64(rest)
			least, total := noLink, 0
			for in := set; in != 0; in &= in - 1 {
				l := h.inventory.Links[i][bits.TrailingZeros64(in)]
				least, total = min(least, l), total+int(worthOf(l))
			}
			if next < 0 || least > weakest || least == weakest && total > sum {
				next, weakest, sum = i, least, total
			}
		}
		set |= 1 << next
	}
	return set
}

func indices(set uint64) []int {
	list := make([]int, 0, bits.OnesCount64(set))
	for ; set != 0; set &= set - 1 {
		list = append(list, bits.TrailingZeros64(set))
	}
	return list
}
