package fit

import (
	"fmt"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
)

// coreKinds is the order in which the kinds of a hybrid processor's cores are
// tried.
var coreKinds = [...]numa.CoreKind{numa.Performance, numa.UnknownKind, numa.Efficiency, numa.LowPower}

// anyKind stands for every kind of core.
const anyKind = numa.LowPower + 1

// pickCores chooses the whole cores of the request from the domains in order,
// which together have enough, and appends their CPUs to dst by ascending ID.
// One of the first near domains serves alone if it can. Kinds are mixed only
// where none has enough.
func (s *search) pickCores(order []int8, near int, dst *resource.Assignment) {
	left := int32(s.req.Cores)
	if left == 0 {
		return
	}
	p := picker{h: s.h, f: s.f, x: &s.f.scratch}
	defer p.emit(dst)
	if !s.h.hybrid {
		p.pickKind(order, near, anyKind, left)
		return
	}
	for _, kind := range coreKinds {
		if p.intactOn(order, kind) >= left {
			p.pickKind(order, near, kind, left)
			return
		}
	}
	for _, kind := range coreKinds {
		n := min(left, p.intactOn(order, kind))
		p.pickKind(order, near, kind, n)
		left -= n
	}
}

// intactOn counts the intact cores of one kind that are not picked.
func (p *picker) intactOn(order []int8, kind numa.CoreKind) int32 {
	n := int32(0)
	for _, d := range order {
		n += p.intactIn(d, kind)
	}
	return n
}

// intactIn is intactOn for one domain.
func (p *picker) intactIn(d int8, kind numa.CoreKind) int32 {
	if kind == anyKind {
		return p.f.domainCores[d] // asked before any of them is picked
	}
	n := int32(0)
	groups := p.h.domains[d].groups
	for g := groups.from; g < groups.to; g++ {
		n += p.intactOf(g, kind)
	}
	return n
}

// intactOf is intactOn for one L3 group.
func (p *picker) intactOf(g int32, kind numa.CoreKind) int32 {
	if kind == anyKind {
		return p.f.groupCores[g] - p.x.groupTaken[g]
	}
	n := int32(0)
	cores := p.h.groups[g].cores
	for c := cores.from; c < cores.to; c++ {
		if _, intact := p.left(c); intact && p.h.cores[c].kind == kind {
			n++
		}
	}
	return n
}

// pickKind picks n cores of one kind from the domains, which have as many.
func (p *picker) pickKind(order []int8, near int, kind numa.CoreKind, n int32) {
	for i, d := range order[:near] {
		if p.intactIn(d, kind) >= n {
			order = order[i : i+1]
			break
		}
	}
	for _, d := range order {
		part := min(n, p.intactIn(d, kind))
		p.pickCoresIn(d, kind, part)
		n -= part
	}
}

// pickCoresIn picks n cores of one kind from a domain that has as many: from
// the tightest L3 group that holds them all, else first all of the largest,
// which makes the groups the fewest.
func (p *picker) pickCoresIn(d int8, kind numa.CoreKind, n int32) {
	groups := p.h.domains[d].groups
	for n > 0 {
		best, most := groups.from, int32(0)
		for g := groups.from; g < groups.to; g++ {
			if count := p.intactOf(g, kind); count > 0 && (most < n && count > most || most >= n && count >= n && count < most) {
				best, most = g, count
			}
		}
		if most == 0 {
			panic(fmt.Sprintf("fit: %d more intact cores are counted in domain %d than are there", n, d))
		}
		n -= p.pickCoresOf(best, kind, min(n, most))
	}
}

// pickCoresOf picks the first n intact cores of one kind in an L3 group that
// has as many, with all their threads, and returns n. It counts cores in
// groupTaken.
func (p *picker) pickCoresOf(g int32, kind numa.CoreKind, n int32) int32 {
	picked := int32(0)
	cores := p.h.groups[g].cores
	for c := cores.from; c < cores.to && picked < n; c++ {
		if _, intact := p.left(c); !intact || kind != anyKind && p.h.cores[c].kind != kind {
			continue
		}
		cpus := p.h.cores[c].cpus
		for _, at := range p.h.order[cpus.from:cpus.to] {
			p.x.picked[at/64] |= 1 << (at % 64)
			p.x.amount[at] = int16(resource.WholeCPU)
		}
		p.x.coreTaken[c] = p.h.cores[c].full
		p.x.groupTaken[g]++
		picked++
	}
	return picked
}
