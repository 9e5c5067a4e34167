package fit

import (
	"math/bits"

	"github.com/musterd/muster/resource"
)

// pickCPUs chooses the CPUs of the request from the domains in order, which
// together have enough, and appends them to dst by ascending ID. One of the
// first near domains serves alone if it can.
func (s *search) pickCPUs(order []int8, near int, dst *resource.Assignment) {
	if s.req.CPU == 0 {
		return
	}
	p := picker{h: s.h, f: s.f, x: &s.f.scratch}
	need := int32(s.req.CPU / resource.WholeCPU)
	rest := s.req.CPU % resource.WholeCPU
	for i, d := range order[:near] {
		if s.have[d].cpu >= s.req.CPU && s.f.domainWhole[d] >= need {
			order = order[i : i+1]
			break
		}
	}
	var whole int32
	for _, d := range order {
		whole += s.f.domainWhole[d]
	}
	fresh := false
	switch {
	case need > whole:
		rest += resource.Millicores(need-whole) * resource.WholeCPU
		need = whole
	case rest > 0:
		if at, fits := p.tightest(order, rest, resource.WholeCPU-1); fits {
			p.mark(at, rest)
			rest = 0
		} else if need < whole {
			need++
			fresh = true
		}
	}
	for _, d := range order {
		n := min(need, s.f.domainWhole[d])
		p.pickWhole(d, n)
		need -= n
	}
	if fresh {
		p.x.amount[p.last] = int16(rest)
		rest = 0
	}
	for rest > 0 {
		at, _ := p.tightest(order, rest, resource.WholeCPU)
		part := min(rest, s.f.CPU[at])
		p.mark(at, part)
		rest -= part
	}
	p.emit(dst)
}

// picker marks CPUs in the scratch of a Free.
type picker struct {
	h    *Host
	f    *Free
	x    *scratch
	last int32 // the position marked last
}

// tightest returns the CPU not yet picked with the least free that is at least
// want and at most most; where there is none, false and the one with the most
// free.
func (p *picker) tightest(order []int8, want, most resource.Millicores) (int32, bool) {
	best, largest := int32(-1), int32(-1)
	for _, d := range order {
		cpus := p.h.domains[d].cpus
		for _, at := range p.h.order[cpus.from:cpus.to] {
			free := p.f.CPU[at]
			if free == 0 || free > most || p.x.amount[at] != 0 {
				continue
			}
			if free >= want && (best < 0 || free < p.f.CPU[best]) {
				best = at
			}
			if largest < 0 || free > p.f.CPU[largest] {
				largest = at
			}
		}
	}
	if best >= 0 {
		return best, true
	}
	return largest, false
}

// mark picks an amount of one CPU that was not picked yet.
func (p *picker) mark(at int32, amount resource.Millicores) {
	p.last = at
	p.x.picked[at/64] |= 1 << (at % 64)
	p.x.amount[at] = int16(amount)
	if p.f.CPU[at] != resource.WholeCPU {
		return
	}
	c := p.h.coreOf[at]
	g := p.h.cores[c].group
	if p.x.coreTaken[c] == 0 && p.f.coreWhole[c] == p.h.cores[c].full {
		p.x.groupBroken[g] += p.h.cores[c].full
	}
	p.x.coreTaken[c]++
	p.x.groupTaken[g]++
}

// emit appends the picked CPUs to dst and clears the scratch.
func (p *picker) emit(dst *resource.Assignment) {
	for w, word := range p.x.picked {
		p.x.picked[w] = 0
		for ; word != 0; word &= word - 1 {
			at := w*64 + bits.TrailingZeros64(word)
			dst.CPUs = append(dst.CPUs, resource.CPUGrant{ID: p.h.topology.CPUs[at].ID, Milli: resource.Millicores(p.x.amount[at])})
			p.x.amount[at] = 0
			c := p.h.coreOf[at]
			g := p.h.cores[c].group
			p.x.coreTaken[c], p.x.groupTaken[g], p.x.groupBroken[g] = 0, 0, 0
		}
	}
}

// pickWhole picks n wholly free CPUs of a domain that has as many: intact
// cores from the tightest L3 group that holds all n, or from the largest ones
// until one does; then single threads.
func (p *picker) pickWhole(d int8, n int32) {
	home := int32(-1)
	for n > 0 {
		tight, largest := p.bestGroups(d, n)
		if tight >= 0 {
			home = tight
			n -= p.pickIntact(tight, n)
			break
		}
		if largest < 0 {
			break
		}
		home = largest
		taken := p.pickIntact(largest, n)
		if n -= taken; taken == 0 {
			break
		}
	}
	p.pickThreads(d, home, n)
}

// bestGroups returns the tightest group that can hold n CPUs without breaking
// a core in vain, and the group with the most CPUs in intact cores; -1 for
// none.
func (p *picker) bestGroups(d int8, n int32) (tight, largest int32) {
	tight, largest = -1, -1
	var tightIntact, tightWhole, most int32
	groups := p.h.domains[d].groups
	for g := groups.from; g < groups.to; g++ {
		whole := p.f.groupWhole[g] - p.x.groupTaken[g]
		intact := p.f.groupIntact[g] - p.x.groupBroken[g]
		if whole >= n && intact >= n-n%p.h.groups[g].full &&
			(tight < 0 || intact < tightIntact || (intact == tightIntact && whole < tightWhole)) {
			tight, tightIntact, tightWhole = g, intact, whole
		}
		if intact > most {
			largest, most = g, intact
		}
	}
	return tight, largest
}

// left counts the wholly free CPUs of a core that are not picked, and reports
// whether it is intact.
func (p *picker) left(c int32) (int32, bool) {
	return p.f.coreWhole[c] - p.x.coreTaken[c], p.x.coreTaken[c] == 0 && p.f.coreWhole[c] == p.h.cores[c].full
}

// pickIntact picks whole intact cores of a group while they are not larger
// than the rest of the demand, and returns how many CPUs that were.
func (p *picker) pickIntact(g, n int32) int32 {
	need := n
	cores := p.h.groups[g].cores
	for c := cores.from; c < cores.to && need > 0; c++ {
		if count, intact := p.left(c); intact && count <= need {
			need -= p.pickFromCore(c, count)
		}
	}
	return n - need
}

// pickThreads picks n single CPUs, which the domain must have: of split cores
// before intact ones, of the home group before others, of cores with the
// fewest left, lowest first.
func (p *picker) pickThreads(d int8, home, n int32) {
	cores := p.h.domains[d].cores
	for n > 0 {
		best := int32(0)
		for c := cores.from; c < cores.to; c++ {
			if rank := p.rank(c, home); rank > 0 && (best == 0 || rank < best) {
				best = rank
			}
		}
		for c := cores.from; c < cores.to && n > 0; c++ {
			if p.rank(c, home) == best {
				n -= p.pickFromCore(c, n)
			}
		}
	}
}

// rank orders the cores to take single CPUs from, best first; 0 is a core with
// none left.
func (p *picker) rank(c, home int32) int32 {
	rank, intact := p.left(c)
	if rank == 0 {
		return 0
	}
	if p.h.cores[c].group != home {
		rank += 1 << 20
	}
	if intact {
		rank += 1 << 21
	}
	return rank
}

// pickFromCore picks up to n wholly free CPUs of a core, lowest first, and
// returns how many.
func (p *picker) pickFromCore(c, n int32) int32 {
	need := n
	cpus := p.h.cores[c].cpus
	for _, at := range p.h.order[cpus.from:cpus.to] {
		if need == 0 {
			break
		}
		if p.f.CPU[at] == resource.WholeCPU && p.x.amount[at] == 0 {
			p.mark(at, resource.WholeCPU)
			need--
		}
	}
	return n - need
}
