package mix

import (
	"cmp"
	"slices"
	"strings"

	"github.com/musterd/muster/resource"
)

// Whole is the weight of all shapes of a table together, or up to one for each
// shape more: no shape has the weight 0.
const Whole = 1 << 14

// Table is a mix at one moment, as weights of shapes. Immutable.
type Table struct {
	any      *View            // of a model that no shape names
	named    map[string]*View // by product
	weight   int64
	cpu, gpu int64            // of the mean member, times weight
	only     map[string]int64 // the part of gpu that one product alone serves
}

// View is how the shapes see nodes with devices of one product.
type View struct {
	never int64 // weight of the shapes that may not run on the product
	asks  []ask // shares ascending, then whole devices ascending
	// The weights of the Table, see Unserved.
	weight, cpu, gpu int64
}

// ask is the shapes that ask for the same of devices.
//
// Invariant: cpu ascends; upto[i] is the weight of the shapes 0 to i; memory is that
// of the shapes and most the greatest of memory.
type ask struct {
	gpus   int
	share  uint16
	cpu    []resource.Millicores
	memory []resource.Bytes
	upto   []int64
	most   resource.Bytes
}

// Profile is what is free on a node. Parts are of devices that are partly free,
// descending, and end with the first 0.
type Profile struct {
	CPU    resource.Millicores
	Memory resource.Bytes
	Whole  int            // devices that are wholly free
	GPU    resource.Milli // of all devices
	Parts  []uint16
}

func newTable(counts map[Shape]int64, total int64) *Table {
	t := &Table{named: map[string]*View{}, only: map[string]int64{}}
	shapes := sortedShapes(counts)
	weights := make([]int64, len(shapes))
	for i, s := range shapes {
		w := (counts[s]*Whole + total - 1) / total
		weights[i] = w
		t.weight += w
		t.cpu += w * int64(s.CPU)
		t.gpu += w * int64(s.gpu())
		if s.Products == "" {
			continue
		}
		products := strings.Split(s.Products, "|")
		for _, p := range products {
			t.named[p] = nil
		}
		if len(products) == 1 {
			t.only[s.Products] += w * int64(s.gpu())
		}
	}
	for p := range t.named {
		t.named[p] = t.newView(shapes, weights, p)
	}
	t.any = t.newView(shapes, weights, "")
	return t
}

// newView gathers the shapes, which are in their order, that may run on a product.
func (t *Table) newView(shapes []Shape, weights []int64, product string) *View {
	v := &View{weight: t.weight, cpu: t.cpu, gpu: t.gpu}
	type row struct {
		Shape
		weight int64
	}
	var rows []row
	for i, s := range shapes {
		if s.Products != "" && !slices.Contains(strings.Split(s.Products, "|"), product) {
			v.never += weights[i]
			continue
		}
		rows = append(rows, row{s, weights[i]})
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.Share, b.Share), cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.Memory, b.Memory))
	})
	for _, r := range rows {
		last := len(v.asks) - 1
		if last < 0 || v.asks[last].gpus != r.GPUs || v.asks[last].share != uint16(r.Share) {
			v.asks = append(v.asks, ask{gpus: r.GPUs, share: uint16(r.Share)})
			last++
		}
		a := &v.asks[last]
		sum := r.weight
		if n := len(a.upto); n > 0 {
			sum += a.upto[n-1]
		}
		a.cpu, a.memory, a.upto = append(a.cpu, r.CPU), append(a.memory, r.Memory), append(a.upto, sum)
		a.most = max(a.most, r.Memory)
	}
	return v
}

// View returns how the shapes see nodes with devices of a product.
func (t *Table) View(product string) *View {
	if v := t.named[product]; v != nil {
		return v
	}
	return t.any
}

// Weight is the weight of all shapes together.
func (t *Table) Weight() int64 { return t.weight }

// Demand is the GPU that the mean member asks for, in milli times Weight, and the part
// of it that the product alone serves.
func (t *Table) Demand(product string) (all, only int64) { return t.gpu, t.only[product] }

// Products are the models that a shape names, ascending.
func (t *Table) Products() []string {
	list := make([]string, 0, len(t.named))
	for p := range t.named {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}

// Unusable is the free GPU of a node that a member drawn from the mix could not use, in
// milli times Weight: all of it where the node cannot take the member, else the parts
// of devices that are too small for it.
func (v *View) Unusable(p *Profile) int64 {
	if p.GPU == 0 {
		return 0
	}
	lost := v.never
	parts := p.Parts
	for i, part := range parts {
		if part == 0 {
			parts = parts[:i]
			break
		}
	}
	var largest uint16
	if len(parts) > 0 {
		largest = parts[0]
	}
	var sum, small int64 // small: of the parts that are too small
	smallFrom := len(parts)
	for i := range v.asks {
		a := &v.asks[i]
		all := a.upto[len(a.upto)-1]
		if a.gpus > 0 {
			if p.Whole < a.gpus {
				lost += all
				continue
			}
			small = int64(p.GPU) - int64(p.Whole)*int64(resource.WholeDevice)
		} else {
			if p.Whole == 0 && largest < a.share {
				lost += all
				continue
			}
			for smallFrom > 0 && parts[smallFrom-1] < a.share {
				smallFrom--
				small += int64(parts[smallFrom])
			}
		}
		served := a.served(p)
		lost += all - served
		sum += served * small
	}
	return sum + lost*int64(p.GPU)
}

// served is the weight of the shapes whose CPU and memory the node has.
func (a *ask) served(p *Profile) int64 {
	n := len(a.cpu)
	if a.cpu[n-1] > p.CPU {
		n, _ = slices.BinarySearch(a.cpu, p.CPU+1)
		if n == 0 {
			return 0
		}
	}
	if a.most <= p.Memory {
		return a.upto[n-1]
	}
	var sum, before int64
	for i := range n {
		if a.memory[i] <= p.Memory {
			sum += a.upto[i] - before
		}
		before = a.upto[i]
	}
	return sum
}

// Unserved is the free GPU of a node for which its free CPU does not suffice at the
// CPU for each GPU of the mean member, in milli times Weight.
func (v *View) Unserved(p *Profile) int64 {
	if v.cpu == 0 {
		return 0
	}
	// No overflow: CPU is below 2^32, v.gpu below 2^14 × 2^20 and the product below 2^63
	// after the division of both by Whole.
	served := int64(p.CPU) * (v.gpu / Whole) / max(1, v.cpu/Whole)
	return max(0, int64(p.GPU)-served) * v.weight
}
