// Package mix learns which shapes of members a cluster is asked for, and rates how
// much of a node's free GPU these shapes cannot use. It does not choose nodes
// (coordinator/place does).
//
// Pure: no clock, no I/O, integers alone, and no result depends on map order.
package mix

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterd/muster/resource"
)

// Shape is what one member asks for. Members without GPUs have no shape.
type Shape struct {
	GPUs   int            // whole devices
	Share  resource.Milli // of one device
	CPU    resource.Millicores
	Memory resource.Bytes
	// Products are the models that the member may run on: values of the label
	// nvidia.com/gpu.product, ascending, separated by "|"; "" for any.
	Products string
}

// gpu is the part of devices that a member of the shape takes.
func (s *Shape) gpu() resource.Milli { return resource.Milli(s.GPUs)*resource.WholeDevice + s.Share }

func compareShapes(a, b Shape) int {
	return cmp.Or(cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.Share, b.Share), cmp.Compare(a.Products, b.Products),
		cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.Memory, b.Memory))
}

// The bounds of a Mix.
const (
	// Enough is how many members a Mix has to have seen before it has a Table: fewer
	// say nothing about the next ones.
	Enough = 64
	// mostShapes is how many shapes are counted. Of more, the rarest is forgotten.
	mostShapes = 1024
	// mostOfOne is how many members of one unit count.
	mostOfOne = 64
	// horizon is the count of members at which all counts are halved, so that the mix
	// follows the work of the recent past.
	horizon = 1 << 15
)

// Mix counts shapes. The zero Mix has seen nothing. One goroutine owns a Mix; its
// Tables are immutable.
//
// Invariant: total is the sum of counts, no count is 0, and there are at most
// mostShapes counts; table is that of tabled, and nil without tabled.
type Mix struct {
	counts map[Shape]int64
	total  int64
	due    int64 // total at which the next table is made
	table  *Table
	tabled map[Shape]int64 // the counts that table was made of
}

// Observe counts members of a shape that have arrived.
func (m *Mix) Observe(s Shape, members int) {
	if s.gpu() <= 0 || members <= 0 {
		return
	}
	if m.counts == nil {
		m.counts, m.due = map[Shape]int64{}, Enough
	}
	if m.counts[s] == 0 && len(m.counts) == mostShapes {
		m.forgetRarest()
	}
	n := int64(min(members, mostOfOne))
	m.counts[s] += n
	if m.total += n; m.total >= horizon {
		m.halve()
	}
	if m.total >= m.due {
		m.setTable(maps.Clone(m.counts))
		m.due = m.total + max(1, m.total/2)
	}
}

// Table rates nodes by the mix; nil before Enough members have been seen. It is made
// anew each time that the count of members has grown by half, so it follows the mix
// while what is derived from it may be kept for a time.
func (m *Mix) Table() *Table { return m.table }

// forgetRarest drops the shape with the least count, of several the greatest.
func (m *Mix) forgetRarest() {
	var rarest Shape
	least := int64(-1)
	for s, n := range m.counts {
		if least < 0 || n < least || n == least && compareShapes(s, rarest) > 0 {
			rarest, least = s, n
		}
	}
	delete(m.counts, rarest)
	m.total -= least
}

// halve halves all counts.
func (m *Mix) halve() {
	m.total = 0
	for s, n := range m.counts {
		if n /= 2; n == 0 {
			delete(m.counts, s)
			continue
		}
		m.counts[s] = n
		m.total += n
	}
	m.due = min(m.due, m.total+max(1, m.total/2))
}

// sortedShapes lists the shapes of counts in their order.
func sortedShapes(counts map[Shape]int64) []Shape {
	return slices.SortedFunc(maps.Keys(counts), compareShapes)
}
