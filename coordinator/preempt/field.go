package preempt

import (
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/fit"
)

// field is a node that may take the unit, with the candidates that would free
// resources there.
//
// Invariant: here ascends by rank; suffix[i] is the sum of here[i:]. Both are parts of
// the slices of the Index.
type field struct {
	node   *cluster.Node
	here   []occupant
	suffix []cluster.Amounts
	free   cluster.Amounts // without any eviction
	base   int             // members that fit without any eviction
}

// exclude takes the holders above a rank out of the field.
func (f *field) exclude(first int) {
	above := 0
	for above < len(f.here) && f.here[above].rank < first {
		above++
	}
	f.here, f.suffix = f.here[above:], f.suffix[above:]
}

// sumOf is the sum of the resources that parts give back to their node.
func sumOf(n *cluster.Node, parts []Part) cluster.Amounts {
	var sum cluster.Amounts
	for i := range parts {
		a := &parts[i].Assignment
		for _, g := range a.CPUs {
			sum.CPU += g.Milli
		}
		for _, g := range a.Memory {
			sum.Memory += g.Bytes
		}
		for _, g := range a.GPUs {
			if g.Index < 64 && n.Free.Unhealthy&(1<<g.Index) == 0 {
				sum.GPU += g.Milli
			}
		}
	}
	return sum
}

// without are the amounts that are free with these ranks evicted.
func (f *field) without(evicted []int) cluster.Amounts {
	sum := f.free
	for i := range f.here {
		if _, gone := slices.BinarySearch(evicted, f.here[i].rank); gone {
			sum = sum.Plus(f.here[i].sum)
		}
	}
	return sum
}

// room counts how many members fit on a field with these ranks evicted, up to
// limit. It counts on a reused copy of the free amounts: a search calls room thousands of
// times, and a copy costs less than the inverse of each part in the State's journal.
func (s *search) room(f *field, evicted []int, limit int) int {
	sum := f.without(evicted)
	if limit = most(&sum, &s.want, limit); limit == 0 {
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
		for k := range f.here[i].gives {
			_ = h.Give(free, f.here[i].gives[k].Assignment) // refused as a whole: nothing is freed
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
