package fit

import (
	"cmp"
	"math/bits"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// chooseExact returns the best set of whole devices out of all usable ones, on
// hosts of at most maxExact devices.
func (s *search) chooseExact() (uint64, bool) {
	t, size := s.h.links, s.req.GPUs
	usable, idle := uint16(s.usable), uint16(s.idle)
	aligned := s.req.NUMA != resource.NUMANone
	var best uint16
	var bestLeft bond
	bestSpan := s.limit + 1
	from := int32(0)
	for _, run := range t.runs[size] {
		if run.weakest < s.required {
			return 0, false
		}
		found := false
		for _, set := range t.sets[size][from:run.end] {
			if set&^usable != 0 {
				continue
			}
			span := 0
			if aligned {
				slots := s.h.slotsOf[0][set&0xff] | s.h.slotsOf[1][set>>8]
				if bits.OnesCount16(uint16(slots)) > bestSpan {
					continue
				}
				if span = s.spanOf(slots); span > bestSpan {
					continue
				}
			}
			// Of equal scores the first stays: it has the lowest indices.
			left := t.worth[idle&^set]
			if span < bestSpan || (found && left > bestLeft) {
				best, bestSpan, bestLeft, found = set, span, left, true
			}
		}
		if found {
			return uint64(best), true
		}
		from = run.end
	}
	return 0, false
}

// chooseShared returns the device for a share.
func (s *search) chooseShared() (uint64, bool) {
	best, found := sharedScore{}, false
	for rest := s.usable; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		score := sharedScore{index: i, free: s.f.GPU[i]}
		if s.req.NUMA != resource.NUMANone {
			if score.span = s.span(s.h.domainsOf(1 << i)); score.span > s.limit {
				continue
			}
		}
		if score.free == resource.WholeDevice {
			score.harm = s.bondsTo(i, s.idle)
		}
		if !found || score.compare(best) < 0 {
			best, found = score, true
		}
	}
	return 1 << best.index, found
}

// sharedScore orders the devices that can take a share; less is better.
type sharedScore struct {
	span  int
	free  resource.Milli // so partly used devices come before fresh ones
	harm  bond           // bonds to idle devices that a fresh one would break
	index int
}

func (a sharedScore) compare(b sharedScore) int {
	return cmp.Or(cmp.Compare(a.span, b.span), cmp.Compare(a.free, b.free), cmp.Compare(a.harm, b.harm), cmp.Compare(a.index, b.index))
}

// bondsTo sums the bonds of one device to the others of a set.
func (s *search) bondsTo(gpu int, set uint64) bond {
	var sum bond
	row := s.h.bonds[gpu]
	for rest := set &^ (1 << gpu); rest != 0; rest &= rest - 1 {
		sum += row[bits.TrailingZeros64(rest)]
	}
	return sum
}

// wideScore orders the sets grown on hosts of more than maxExact devices;
// less is better.
type wideScore struct {
	weakest devices.Link
	sum     int
	span    int
	broken  bond // bonds to idle devices outside the set
	set     uint64
}

func (a wideScore) compare(b wideScore) int {
	if c := cmp.Or(cmp.Compare(b.weakest, a.weakest), cmp.Compare(b.sum, a.sum),
		cmp.Compare(a.span, b.span), cmp.Compare(a.broken, b.broken)); c != 0 || a.set == b.set {
		return c
	}
	if lower(a.set, b.set) {
		return -1
	}
	return 1
}

// chooseWide returns the best of the sets grown from each usable device: over
// the whole host, and where the policy limits the nodes also within every
// allowed set of nodes, smallest first, until one is found.
func (s *search) chooseWide() (uint64, bool) {
	best, found := s.grown(s.usable)
	if s.limit == unlimited || s.req.NUMA == resource.NUMANone {
		return best.set, found
	}
	var nodes uint64
	for _, d := range s.h.slots {
		nodes |= 1 << d
	}
	for size := 1; size <= min(s.limit, len(s.h.slots)); size++ {
		if size > 1 && found || size > 2 && len(s.h.slots) > maxExactDomains {
			break
		}
		for c := newCombinations(nodes, size); ; {
			set, more := c.draw()
			if !more {
				break
			}
			if score, ok := s.grown(s.usable & s.h.gpusOf(set)); ok && (!found || score.compare(best) < 0) {
				best, found = score, true
			}
		}
	}
	return best.set, found
}

// grown returns the best of the sets grown within among that satisfies the
// policy.
func (s *search) grown(among uint64) (wideScore, bool) {
	best, found := wideScore{}, false
	among = s.h.linkable(among, s.req.GPUs, s.required)
	if bits.OnesCount64(among) < s.req.GPUs {
		return best, false
	}
	for rest := among; rest != 0; rest &= rest - 1 {
		score, ok := s.h.grow(bits.TrailingZeros64(rest), s.req.GPUs, among, s.required)
		if !ok {
			continue
		}
		if s.req.NUMA != resource.NUMANone {
			if score.span = s.span(s.h.domainsOf(score.set)); score.span > s.limit {
				continue
			}
		}
		for in := score.set; in != 0; in &= in - 1 {
			score.broken += s.bondsTo(bits.TrailingZeros64(in), s.idle&^score.set)
		}
		if !found || score.compare(best) < 0 {
			best, found = score, true
		}
	}
	return best, found
}

// grow adds devices of among to seed until there are size: each time the one
// with the best weakest link to the set, then the greatest sum of links to it,
// then on a node already touched, then the lowest.
func (h *Host) grow(seed, size int, among uint64, required devices.Link) (wideScore, bool) {
	var weakest [MaxGPUs]devices.Link
	var sum [MaxGPUs]int
	for i := range weakest {
		weakest[i] = noLink
	}
	score := wideScore{weakest: noLink}
	for at := seed; ; {
		score.set |= 1 << at
		score.sum += sum[at]
		score.weakest = min(score.weakest, weakest[at])
		among &^= 1 << at
		if size--; size == 0 {
			return score, score.weakest >= required
		}
		touched := h.gpusOf(h.domainsOf(score.set))
		next := -1
		for rest := among; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros64(rest)
			l := h.inventory.Links[at][i]
			weakest[i] = min(weakest[i], l)
			sum[i] += int(worthOf(l))
			if next < 0 || cmp.Or(cmp.Compare(weakest[i], weakest[next]), cmp.Compare(sum[i], sum[next]),
				int(touched>>i&1)-int(touched>>next&1)) > 0 {
				next = i
			}
		}
		if next < 0 {
			return score, false
		}
		at = next
	}
}
