package fit

import (
	"cmp"
	"math/bits"

	"github.com/musterd/muster/resource"
)

// maxExactDomains is the most domains among which sets of any size are
// searched exhaustively; beyond it only sets of up to two are.
const maxExactDomains = 16

// combinations walks the sets of a given size out of the members of a set, in
// ascending order of the members' positions.
type combinations struct {
	members    [maxDomains]int8
	count      int
	next, last uint64 // in positions of members
	done       bool
}

// newCombinations starts a walk over the sets of size members of set.
func newCombinations(set uint64, size int) combinations {
	var c combinations
	for ; set != 0; set &= set - 1 {
		c.members[c.count] = int8(bits.TrailingZeros64(set))
		c.count++
	}
	if c.done = size > c.count; !c.done {
		c.next = 1<<size - 1
		c.last = c.next << (c.count - size)
	}
	return c
}

// draw returns the next set; false after the last.
func (c *combinations) draw() (uint64, bool) {
	if c.done {
		return 0, false
	}
	var set uint64
	for rest := c.next; rest != 0; rest &= rest - 1 {
		set |= 1 << c.members[bits.TrailingZeros64(rest)]
	}
	if c.next == c.last {
		c.done = true
		return set, true
	}
	// Gosper's hack: the next greater number with as many bits.
	low := c.next & -c.next
	ripple := c.next + low
	c.next = (ripple^c.next)>>2/low | ripple
	return set, true
}

// holds reports whether the domains together have the wanted amounts.
func (a *amounts) holds(domains uint64, want *amount) bool {
	var sum amount
	for ; domains != 0; domains &= domains - 1 {
		if sum.covers(want) {
			return true
		}
		sum.add(&a[bits.TrailingZeros64(domains)])
	}
	return sum.covers(want)
}

// fewest is a bound: no fewer domains out of a set have the wanted amounts. exact
// reports that so many do, which is certain where one resource is wanted.
// least is unlimited where all have not.
func (a *amounts) fewest(among uint64, want *amount) (least int, exact bool) {
	things := 0
	count := func(want int64, of func(*amount) int64) {
		if want <= 0 {
			return
		}
		things++
		n := 0
		for rest := among; want > 0; n++ {
			if rest == 0 {
				n = unlimited
				break
			}
			most := bits.TrailingZeros64(rest)
			for others := rest & (rest - 1); others != 0; others &= others - 1 {
				if d := bits.TrailingZeros64(others); of(&a[d]) > of(&a[most]) {
					most = d
				}
			}
			want -= of(&a[most])
			rest &^= 1 << most
		}
		least = max(least, n)
	}
	count(int64(want.cpu), func(x *amount) int64 { return int64(x.cpu) })
	count(int64(want.cores), func(x *amount) int64 { return int64(x.cores) })
	count(int64(want.memory), func(x *amount) int64 { return int64(x.memory) })
	count(int64(want.pages), func(x *amount) int64 { return int64(x.pages) })
	return least, things < 2 || least >= unlimited
}

// span is the least number of domains that include must and together have the
// CPUs and memory of the request; unlimited where all have not.
func (s *search) span(must uint64) int {
	lack := s.want
	for rest := must; rest != 0; rest &= rest - 1 {
		lack.sub(&s.have[bits.TrailingZeros64(rest)])
	}
	outside := s.h.everywhere &^ must
	least, exact := s.have.fewest(outside, &lack)
	if exact {
		return min(bits.OnesCount64(must)+least, unlimited)
	}
	for extra := least; extra <= bits.OnesCount64(outside); extra++ {
		if extra > 2 && len(s.h.domains) > maxExactDomains {
			return bits.OnesCount64(s.greedyNodes(must))
		}
		for c := newCombinations(outside, extra); ; {
			set, more := c.draw()
			if !more {
				break
			}
			if s.have.holds(must|set, &s.want) {
				return bits.OnesCount64(must) + extra
			}
		}
	}
	return unlimited
}

// spanMemo remembers the span of one set of slots; the zero value is unset.
type spanMemo struct {
	set  slot
	span int8 // plus one
}

// spanOf is span for a set of slots. Answers are kept in a direct-mapped
// table, for thousands of sets of devices share a few.
func (s *search) spanOf(set slot) int {
	memo := &s.spans[uint8(set^set>>8)]
	if memo.span == 0 || memo.set != set {
		var must uint64
		for rest := set; rest != 0; rest &= rest - 1 {
			must |= 1 << s.h.slots[bits.TrailingZeros16(uint16(rest))]
		}
		*memo = spanMemo{set: set, span: int8(s.span(must) + 1)}
	}
	return int(memo.span) - 1
}

// greedyNodes grows must by the domain with the most free of the short resource,
// CPUs before cores, memory and huge pages, until it holds the request or is
// everything.
func (s *search) greedyNodes(must uint64) uint64 {
	set := must
	for set != s.h.everywhere {
		var sum amount
		for rest := set; rest != 0; rest &= rest - 1 {
			sum.add(&s.have[bits.TrailingZeros64(rest)])
		}
		if sum.covers(&s.want) {
			break
		}
		best := -1
		for rest := s.h.everywhere &^ set; rest != 0; rest &= rest - 1 {
			if d := bits.TrailingZeros64(rest); best < 0 || s.short(&sum, d) > s.short(&sum, best) {
				best = d
			}
		}
		set |= 1 << best
	}
	return set
}

// short is a domain's amount of the first resource that sum lacks.
func (s *search) short(sum *amount, domain int) int64 {
	have := &s.have[domain]
	switch {
	case sum.cpu < s.want.cpu:
		return int64(have.cpu)
	case sum.cores < s.want.cores:
		return int64(have.cores)
	case sum.memory < s.want.memory:
		return int64(have.memory)
	}
	return int64(have.pages)
}

// nodeScore orders the sets of equally many domains that hold a request; less
// is better.
type nodeScore struct {
	fragmented int // 1 where there are not enough wholly free CPUs
	distance   int // sum over all pairs
	gpus       int // devices with room there, for requests without devices
	free       amount
	set        uint64
}

func (a nodeScore) compare(b nodeScore) int {
	if c := cmp.Or(cmp.Compare(a.fragmented, b.fragmented), cmp.Compare(a.distance, b.distance), cmp.Compare(a.gpus, b.gpus),
		cmp.Compare(a.free.cpu, b.free.cpu), cmp.Compare(a.free.cores, b.free.cores),
		cmp.Compare(a.free.memory, b.free.memory), cmp.Compare(a.free.pages, b.free.pages)); c != 0 || a.set == b.set {
		return c
	}
	if lower(a.set, b.set) {
		return -1
	}
	return 1
}

// chooseNodes returns the best set of domains that includes must and holds the
// CPUs and memory of the request: the fewest, then by nodeScore.
func (s *search) chooseNodes(must uint64) (uint64, bool) {
	extra := s.span(must) - bits.OnesCount64(must)
	switch {
	case extra == 0:
		return must, true
	case extra > len(s.h.domains):
		return 0, false
	case extra > 2 && len(s.h.domains) > maxExactDomains:
		return s.greedyNodes(must), true
	}
	var best nodeScore
	found := false
	for c := newCombinations(s.h.everywhere&^must, extra); ; {
		set, more := c.draw()
		if !more {
			return best.set, found
		}
		set |= must
		if !s.have.holds(set, &s.want) {
			continue
		}
		if score := s.scoreNodes(set); !found || score.compare(best) < 0 {
			best, found = score, true
		}
	}
}

func (s *search) scoreNodes(set uint64) nodeScore {
	score := nodeScore{set: set}
	var whole int32
	for rest := set; rest != 0; rest &= rest - 1 {
		d := bits.TrailingZeros64(rest)
		whole += s.f.domainWhole[d]
		if s.want.cpu > 0 {
			score.free.cpu += s.have[d].cpu
		}
		if s.want.cores > 0 {
			score.free.cores += s.have[d].cores
		}
		if s.want.memory > 0 {
			score.free.memory += s.have[d].memory
		}
		score.free.pages += s.have[d].pages // zero unless wanted
		if wanted(&s.req) == 0 && s.req.MIG == 0 {
			score.gpus += bits.OnesCount64(s.spare & s.h.domainGPUs[d])
		}
		for others := rest & (rest - 1); others != 0; others &= others - 1 {
			score.distance += s.h.distance[d][bits.TrailingZeros64(others)]
		}
	}
	if resource.Millicores(whole) < s.req.CPU/resource.WholeCPU {
		score.fragmented = 1
	}
	return score
}

// orderNodes lists the chosen domains in the order CPUs and memory are taken
// from them: those with chosen devices, then those that hold the whole request,
// then by most chosen devices, most free CPU, position. near counts those with
// chosen devices; without devices, all are.
func (s *search) orderNodes(set, gpus uint64, list []int8) (order []int8, near int) {
	for rest := set; rest != 0; rest &= rest - 1 {
		list = append(list, int8(bits.TrailingZeros64(rest)))
	}
	must := s.h.domainsOf(gpus)
	if near = bits.OnesCount64(must); near == 0 {
		near = len(list)
	}
	// By insertion: the lists are short, and slices.SortFunc would move them to
	// the heap.
	for i := range list {
		for ; i > 0 && s.before(list[i], list[i-1], must, gpus); i-- {
			list[i-1], list[i] = list[i], list[i-1]
		}
	}
	return list, near
}

// before is the order of orderNodes; must is the domains of gpus.
func (s *search) before(a, b int8, must, gpus uint64) bool {
	return cmp.Or(int(must>>b&1)-int(must>>a&1), s.shortOf(a)-s.shortOf(b),
		bits.OnesCount64(gpus&s.h.domainGPUs[b])-bits.OnesCount64(gpus&s.h.domainGPUs[a]),
		cmp.Compare(s.have[b].cpu, s.have[a].cpu), cmp.Compare(a, b)) < 0
}

// shortOf is 0 where the domain alone holds the request, else 1.
func (s *search) shortOf(d int8) int {
	if s.have[d].covers(&s.want) {
		return 0
	}
	return 1
}
