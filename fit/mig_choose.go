package fit

import (
	"math/bits"

	"github.com/musterd/muster/resource"
)

// partitioned has the knowledge of a search about the MIG instances asked for.
type partitioned struct {
	profile   int               // position in partitionTable.profiles, or -1
	slices    int               // GPU slices of one instance
	instances [MaxGPUs]uint16   // by device: those that may be chosen
	devices   [MaxGPUs]cardHarm // by device: the harm of a choice from it
}

// cardHarm is the harm of taking instances of one device.
type cardHarm struct {
	count  int16 // instances that may be chosen
	slices int16 // free GPU slices of any profile
	fresh  int16 // 1 where nothing of the device is held
}

// gatherMIG finds the instances usable for the request and how many there are.
func (s *search) gatherMIG() int {
	t := &s.h.partitions
	s.mig.profile = t.profile(s.req.MIGProfile)
	if s.mig.profile < 0 {
		return 0
	}
	s.mig.slices = t.slices[s.mig.profile]
	sum := 0
	for rest := t.devices &^ s.f.Unhealthy & s.only; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		usable := s.h.matchingMIG(&s.req, s.mig.profile, i, s.f.MIG[i])
		if usable == 0 {
			continue
		}
		card := cardHarm{count: int16(bits.OnesCount16(usable)), slices: int16(t.slicesOf(i, s.f.MIG[i]))}
		if s.f.MIG[i] == t.full[i] {
			card.fresh = 1
		}
		s.mig.instances[i], s.mig.devices[i] = usable, card
		s.usable |= 1 << i
		sum += int(card.count)
	}
	return sum
}

// migScore orders the sets of devices that instances may be taken from, less
// is better: the NUMA nodes spanned, the devices broken that were wholly free,
// the devices touched, the free slices of these, from the highest 16 bits to
// the lowest. Each only grows with the set.
type migScore uint64

func (m *cardHarm) score() migScore {
	return migScore(m.fresh)<<32 | 1<<16 | migScore(m.slices)
}

func (a migScore) span() int { return int(a >> 48) }

func (a migScore) spanning(span int) migScore { return a&(1<<48-1) | migScore(span)<<48 }

// chooseMIG returns the devices to take the instances from.
func (s *search) chooseMIG() (uint64, bool) {
	if len(s.h.inventory.Devices) > maxExact {
		return s.chooseMIGWide()
	}
	var b migBranch
	b.start(s)
	b.extend(s, 0, s.req.MIG, 0, 0)
	return b.best, b.found
}

// migBranch is the exact search on hosts of at most maxExact devices: every
// device is taken or left, in ascending order, and a branch is cut where no
// set in it can be better than the best so far. Of equal sets the first found
// stays: it has the lowest indices.
type migBranch struct {
	aligned bool
	slices  int // of one instance
	devices [maxExact]int8
	count   int
	// By position in devices: the sums and maxima over it and all behind it.
	total, partly, most, mostFresh [maxExact + 1]int

	best  uint64
	score migScore
	found bool
}

func (b *migBranch) start(s *search) {
	b.aligned, b.slices = s.req.NUMA != resource.NUMANone, s.mig.slices
	for rest := s.usable; rest != 0; rest &= rest - 1 {
		b.devices[b.count] = int8(bits.TrailingZeros64(rest))
		b.count++
	}
	for at := b.count - 1; at >= 0; at-- {
		card := &s.mig.devices[b.devices[at]]
		n := int(card.count)
		b.total[at] = b.total[at+1] + n
		b.most[at] = max(b.most[at+1], n)
		b.partly[at], b.mostFresh[at] = b.partly[at+1], b.mostFresh[at+1]
		if card.fresh == 0 {
			b.partly[at] += n
		} else {
			b.mostFresh[at] = max(b.mostFresh[at], n)
		}
	}
}

// least is a bound: no completion of a set that lacks left instances, out of
// the devices from position at, adds less to its score.
func (b *migBranch) least(at, left int) migScore {
	bound := migScore((left+b.most[at]-1)/b.most[at])<<16 + migScore(left*b.slices)
	if short := left - b.partly[at]; short > 0 {
		bound += migScore((short+b.mostFresh[at]-1)/b.mostFresh[at]) << 32
	}
	return bound
}

// extend tries every completion of a set that lacks left instances, out of the
// devices from position at.
func (b *migBranch) extend(s *search, at, left int, set uint64, score migScore) {
	if left <= 0 {
		if !b.found || score < b.score {
			b.best, b.score, b.found = set, score, true
		}
		return
	}
	if b.total[at] < left || b.found && score+b.least(at, left) >= b.score {
		return
	}
	i := b.devices[at]
	with := set | 1<<i
	card := &s.mig.devices[i]
	more := score + card.score()
	if b.aligned {
		slots := s.h.slotsOf[0][with&0xff] | s.h.slotsOf[1][with>>8]
		more = more.spanning(s.spanOf(slots))
	}
	if more.span() <= s.limit {
		b.extend(s, at+1, left-int(card.count), with, more)
	}
	b.extend(s, at+1, left, set, score)
}

// chooseMIGWide returns the best of the sets gathered greedily: over the whole
// host, on each allowed node, and where the policy limits the nodes also
// within every allowed set of them, smallest first, until one is found.
func (s *search) chooseMIGWide() (uint64, bool) {
	best, score, found := uint64(0), migScore(0), false
	try := func(among uint64) {
		set, next, ok := s.gathered(among)
		if ok && (!found || next < score || next == score && lower(set, best)) {
			best, score, found = set, next, true
		}
	}
	try(s.usable)
	if s.req.NUMA == resource.NUMANone {
		return best, found
	}
	var nodes uint64
	for _, d := range s.h.slots {
		nodes |= 1 << d
	}
	for size := range min(s.limit, len(s.h.slots)) + 1 {
		if size > 1 && found || size > 2 && len(s.h.slots) > maxExactDomains {
			break
		}
		for c := newCombinations(nodes, size); ; {
			set, more := c.draw()
			if !more {
				break
			}
			try(s.usable & s.h.gpusOf(set))
		}
	}
	return best, found
}

// gathered grows a set within among: partly used devices before fresh ones;
// the tightest of those that have all that lacks, else the one with the most;
// then devices found needless are left out again. It satisfies the policy.
func (s *search) gathered(among uint64) (set uint64, score migScore, ok bool) {
	left := s.req.MIG
	for left > 0 {
		next := -1
		for rest := among &^ set; rest != 0; rest &= rest - 1 {
			if i := bits.TrailingZeros64(rest); next < 0 || s.mig.devices[i].before(&s.mig.devices[next], left) {
				next = i
			}
		}
		if next < 0 {
			return 0, 0, false
		}
		set |= 1 << next
		left -= int(s.mig.devices[next].count)
	}
	for rest := set; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		if n := int(s.mig.devices[i].count); left+n <= 0 {
			set &^= 1 << i
			left += n
			continue
		}
		score += s.mig.devices[i].score()
	}
	if s.req.NUMA != resource.NUMANone {
		score = score.spanning(s.span(s.h.domainsOf(set)))
	}
	return set, score, score.span() <= s.limit
}

// before is the order of gathered, for a set that lacks left instances.
func (m *cardHarm) before(other *cardHarm, left int) bool {
	if m.fresh != other.fresh {
		return m.fresh < other.fresh
	}
	all, otherAll := int(m.count) >= left, int(other.count) >= left
	switch {
	case all && otherAll:
		return m.slices < other.slices
	case all || otherAll:
		return all
	}
	return m.count > other.count
}

// pickMIG appends the instances to dst: from the chosen devices in ascending
// order as many as each has, at least one from every one, lowest first.
func (s *search) pickMIG(set uint64, dst *resource.Assignment) {
	left := s.req.MIG
	for ; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		free := s.mig.instances[i]
		for n := left - bits.OnesCount64(set&(set-1)); n > 0 && free != 0; free &= free - 1 {
			k := bits.TrailingZeros16(free)
			dst.MIG = append(dst.MIG, resource.MIGGrant{
				GPU: i, Instance: k, UUID: s.h.inventory.Devices[i].MIG.Instances[k].UUID, Profile: s.req.MIGProfile,
			})
			n--
			left--
		}
	}
}
