package fit

import (
	"cmp"
	"math/bits"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// maxExactDomains is the most domains among which sets of any size are
// searched exhaustively; beyond it only sets of up to two are.
const maxExactDomains = 16

// combinations walks the sets of a given size out of the members of a set, in
// ascending order of the members' positions.
type combinations struct {
	members   [maxDomains]int8
	count     int
	next, end uint64 // in positions of members
}

// newCombinations starts a walk over the sets of size members of set.
func newCombinations(set uint64, size int) combinations {
	var c combinations
	for ; set != 0; set &= set - 1 {
		c.members[c.count] = int8(bits.TrailingZeros64(set))
		c.count++
	}
	if size <= c.count {
		c.next, c.end = 1<<size-1, 1<<c.count
	}
	return c
}

// draw returns the next set; false after the last.
func (c *combinations) draw() (uint64, bool) {
	if c.next >= c.end {
		return 0, false
	}
	var set uint64
	for rest := c.next; rest != 0; rest &= rest - 1 {
		set |= 1 << c.members[bits.TrailingZeros64(rest)]
	}
	if c.next == 0 {
		c.next = c.end
		return set, true
	}
	// Gosper's hack: the next greater number with as many bits.
	low := c.next & -c.next
	ripple := c.next + low
	c.next = (ripple^c.next)>>2/low | ripple
	return set, true
}

// holds reports whether the domains together have the amounts.
func (a *amounts) holds(domains uint64, cpu resource.Millicores, memory resource.Bytes) bool {
	for ; domains != 0 && (cpu > 0 || memory > 0); domains &= domains - 1 {
		d := bits.TrailingZeros64(domains)
		cpu -= a.cpu[d]
		memory -= a.memory[d]
	}
	return cpu <= 0 && memory <= 0
}

// span is the least number of domains that include must and together have the
// CPU and memory of the request; unlimited where all have not.
func (s *search) span(must uint64) int {
	if s.holds(must, s.req.CPU, s.req.Memory) {
		return bits.OnesCount64(must)
	}
	outside := s.h.everywhere &^ must
	for extra := 1; extra <= bits.OnesCount64(outside); extra++ {
		if extra > 2 && len(s.h.domains) > maxExactDomains {
			return bits.OnesCount64(s.greedyNodes(must))
		}
		for c := newCombinations(outside, extra); ; {
			set, more := c.draw()
			if !more {
				break
			}
			if s.holds(must|set, s.req.CPU, s.req.Memory) {
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

// greedyNodes grows must by the domain with the most free CPU while CPU is
// short, then memory, until it holds the request or is everything.
func (s *search) greedyNodes(must uint64) uint64 {
	set := must
	for set != s.h.everywhere && !s.holds(set, s.req.CPU, s.req.Memory) {
		cpuShort := !s.holds(set, s.req.CPU, 0)
		best := -1
		for rest := s.h.everywhere &^ set; rest != 0; rest &= rest - 1 {
			d := bits.TrailingZeros64(rest)
			if best < 0 || (cpuShort && s.cpu[d] > s.cpu[best]) || (!cpuShort && s.memory[d] > s.memory[best]) {
				best = d
			}
		}
		set |= 1 << best
	}
	return set
}

// nodeScore orders the sets of equally many domains that hold a request; less
// is better.
type nodeScore struct {
	fragmented int // 1 where there are not enough wholly free CPUs
	distance   int // sum over all pairs
	gpus       int // idle devices there, for requests without devices
	cpu        resource.Millicores
	memory     resource.Bytes
	set        uint64
}

func (a nodeScore) compare(b nodeScore) int {
	if c := cmp.Or(cmp.Compare(a.fragmented, b.fragmented), cmp.Compare(a.distance, b.distance), cmp.Compare(a.gpus, b.gpus),
		cmp.Compare(a.cpu, b.cpu), cmp.Compare(a.memory, b.memory)); c != 0 || a.set == b.set {
		return c
	}
	if lower(a.set, b.set) {
		return -1
	}
	return 1
}

// chooseNodes returns the best set of domains that includes must and holds the
// CPU and memory of the request: the fewest, then by nodeScore.
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
		if !s.holds(set, s.req.CPU, s.req.Memory) {
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
		if s.req.CPU > 0 {
			score.cpu += s.cpu[d]
		}
		if s.req.Memory > 0 {
			score.memory += s.memory[d]
		}
		if wanted(&s.req) == 0 {
			score.gpus += bits.OnesCount64(s.idle & s.h.domainGPUs[d])
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
		cmp.Compare(s.cpu[b], s.cpu[a]), cmp.Compare(a, b)) < 0
}

// shortOf is 0 where the domain alone holds the request, else 1.
func (s *search) shortOf(d int8) int {
	if s.holds(1<<d, s.req.CPU, s.req.Memory) {
		return 0
	}
	return 1
}

// spanWhenEmpty is the least number of nodes that the request would need on
// the empty host, devices and links included. Beyond two of more than
// maxExactDomains it gives up: unlimited.
func (s *search) spanWhenEmpty() int {
	var full amounts
	for i, d := range s.h.domains {
		full.cpu[i] = s.h.fullCPU[i]
		if d.node >= 0 {
			full.memory[i] = s.h.fullMemory[d.node]
		}
	}
	matching := s.h.matching(&s.req)
	for size := range len(s.h.domains) + 1 {
		if size > 2 && len(s.h.domains) > maxExactDomains {
			return unlimited
		}
		for c := newCombinations(s.h.everywhere, size); ; {
			set, more := c.draw()
			if !more {
				break
			}
			if full.holds(set, s.req.CPU, s.req.Memory) && s.h.linked(&s.req, s.required, matching&s.h.gpusOf(set)) {
				return size
			}
		}
	}
	return 0
}

// linked reports whether among has as many devices as the request wants,
// connected as it requires. On hosts of more than maxExact devices it asks the
// greedy search.
func (h *Host) linked(req *resource.Request, required devices.Link, among uint64) bool {
	want := wanted(req)
	switch {
	case bits.OnesCount64(among) < want:
		return false
	case want < 2 || required == devices.LinkNone:
		return true
	case h.links != nil:
		return h.links.connected(want, uint16(among), required)
	}
	for rest := among; rest != 0; rest &= rest - 1 {
		if _, ok := h.grow(bits.TrailingZeros64(rest), want, among, required); ok {
			return true
		}
	}
	return false
}
