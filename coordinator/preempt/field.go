package preempt

import (
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// candidate is a holder that may be evicted.
type candidate struct {
	*Holder
	fields []int // where its parts are, ascending
}

// field is one node that the unit may go to, with those who would free
// something there.
//
// Invariant: here ascends by rank; suffix[i] is the sum of here[i:].
type field struct {
	node   *cluster.Node
	here   []occupant
	suffix []amounts
	free   amounts // without any eviction
	base   int     // members that fit without any eviction
}

// occupant is what a candidate has on one node.
type occupant struct {
	rank  int
	gives []resource.Assignment
	sum   amounts
}

// amounts is what decides cheaply that there cannot be room: no state of a
// host has room for a request of more than is free of any of these.
type amounts struct {
	cpu    resource.Millicores
	memory resource.Bytes
	gpu    resource.Milli // of healthy devices
}

func (a amounts) plus(b amounts) amounts {
	return amounts{a.cpu + b.cpu, a.memory + b.memory, a.gpu + b.gpu}
}

func (a amounts) covers(want amounts) bool {
	return a.cpu >= want.cpu && a.memory >= want.memory && a.gpu >= want.gpu
}

// wanted is the least that a member takes; a core has at least one thread.
func wanted(r *resource.Request) amounts {
	return amounts{r.CPU + resource.Millicores(r.Cores)*resource.WholeCPU, r.Memory, r.GPUMilli()}
}

// sumOf is what an assignment gives back to a node.
func sumOf(n *cluster.Node, list []resource.Assignment) amounts {
	var sum amounts
	for i := range list {
		for _, g := range list[i].CPUs {
			sum.cpu += g.Milli
		}
		for _, g := range list[i].Memory {
			sum.memory += g.Bytes
		}
		for _, g := range list[i].GPUs {
			if g.Index < 64 && n.Free.Unhealthy&(1<<g.Index) == 0 {
				sum.gpu += g.Milli
			}
		}
	}
	return sum
}

// room counts how many members fit on a field with these ranks evicted, up to
// limit. It counts on a reused copy of the free amounts: a search asks thousands of
// times, and a copy costs less than the inverse of each part in the State's journal.
func (s *search) room(f *field, evicted []int, limit int) int {
	sum := f.free
	for i := range f.here {
		if _, gone := slices.BinarySearch(evicted, f.here[i].rank); gone {
			sum = sum.plus(f.here[i].sum)
		}
	}
	if !sum.covers(s.want) {
		return 0
	}
	s.steps += fitSteps
	h := f.node.Host
	free := s.scratch[h]
	if free == nil {
		free = &fit.Free{}
		s.scratch[h] = free
	}
	free.CopyFrom(f.node.Free)
	for i := range f.here {
		if _, gone := slices.BinarySearch(evicted, f.here[i].rank); !gone {
			continue
		}
		for _, a := range f.here[i].gives {
			_ = h.Give(free, a) // refused as a whole: nothing is freed
		}
	}
	n := 0
	for n < limit && h.Assign(free, s.unit.Request, &s.assignment) {
		if n++; n == limit {
			break
		}
		if h.Take(free, s.assignment) != nil {
			break
		}
		s.steps += fitSteps
	}
	return n
}
