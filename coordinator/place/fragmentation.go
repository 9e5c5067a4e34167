package place

import (
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/mix"
	"github.com/musterd/muster/resource"
)

// Fragmentation is the Policy that keeps free GPU usable for the members that are to
// come. The cost of a node is
//
//	growthWeight × growth of the free GPU that a member drawn from the mix cannot use
//	+ cpuWeight × growth of the free GPU that the node's free CPU cannot serve
//	+ priceWeight × price of the model × GPU taken
//
// The price of a model is the demand of the mix that this model alone serves, as a part
// of all demand, over the model's part of the cluster's devices. The least cost wins,
// then the least that is left over. The growth follows "Beware of Fragmentation" (Weng
// et al., USENIX ATC 2023).
//
// Immutable; a pointer to it is the State's Rater.
type Fragmentation struct {
	doubts
	table  *mix.Table
	views  map[string]*mix.View // by product
	prices map[string]int64     // by product, in 1/priceUnit
}

// The weights of the cost, and the bits of the score that are left to the tie. They
// were chosen on lists that test/openb makes (docs/benchmarks.md).
const (
	growthWeight = 10
	cpuWeight    = 1
	priceWeight  = 6

	priceUnit = 1 << 10
	maxPrice  = 4 * priceUnit
	// No host has 1<<16 device-milli, so the cost is below 1<<36: with costShift and the
	// tie the score is below 1<<47.
	costShift = 5
	tieBits   = 16
)

// newFragmentation prices the models of a cluster, whose devices are counted by product.
func newFragmentation(table *mix.Table, capacity map[string]int64) *Fragmentation {
	p := &Fragmentation{table: table, views: map[string]*mix.View{}, prices: map[string]int64{}}
	var total int64
	for _, milli := range capacity {
		total += milli
	}
	for product, milli := range capacity {
		p.views[product] = table.View(product)
		demand, only := table.Demand(product)
		if only > 0 && milli > 0 && demand > 0 {
			p.prices[product] = min(maxPrice, only*priceUnit/demand*total/milli)
		}
	}
	return p
}

// Score is the greater, the less the cost is.
func (p *Fragmentation) Score(s *cluster.Standing, k *cluster.Kind, r *resource.Request) int64 {
	view := p.views[k.Product]
	if view == nil {
		view = p.table.View(k.Product)
	}
	before := mix.Profile{CPU: s.FreeCPU, Memory: s.FreeMemory, Whole: s.WholeGPUs, GPU: s.FreeGPU, Parts: s.Parts[:]}
	after := before
	var parts [cluster.MaxParts + 1]uint16
	copy(parts[:], s.Parts[:])
	after.Parts = parts[:]
	takeOff(&after, r)
	cost := growthWeight*(view.Unusable(&after)-view.Unusable(&before)) +
		cpuWeight*(view.Unserved(&after)-view.Unserved(&before)) +
		priceWeight*p.prices[k.Product]*int64(r.GPUMilli())*p.table.Weight()/priceUnit
	return -(cost>>costShift<<tieBits + leftOver(s, k, r))
}

// takeOff takes a member off the profile, as fit does: a share is of the smallest part
// that has room, else of a whole device. Parts has room for one more part.
func takeOff(p *mix.Profile, r *resource.Request) {
	p.CPU -= r.CPU + resource.Millicores(r.Cores)*resource.WholeCPU
	p.Memory -= r.Memory
	p.GPU -= r.GPUMilli()
	p.Whole -= r.GPUs
	if r.GPUShare == 0 {
		return
	}
	at := -1
	for i, part := range p.Parts {
		if part == 0 || resource.Milli(part) < r.GPUShare {
			break
		}
		at = i
	}
	left := uint16(resource.WholeDevice - r.GPUShare)
	if at < 0 {
		p.Whole--
		for i := range p.Parts { // insert
			if left > p.Parts[i] {
				left, p.Parts[i] = p.Parts[i], left
			}
		}
		return
	}
	left = p.Parts[at] - uint16(r.GPUShare)
	for at+1 < len(p.Parts) && p.Parts[at+1] > left {
		p.Parts[at] = p.Parts[at+1]
		at++
	}
	p.Parts[at] = left
}

// leftOver is how much of the node would be left, in tieBits: devices before CPU, both
// as parts of the empty node. Work without devices leaves those of the node over.
func leftOver(s *cluster.Standing, k *cluster.Kind, r *resource.Request) int64 {
	const mostGPUs, cpuBits = 63, 10
	const most = 1<<cpuBits - 1
	gpu := s.FreeGPU - r.GPUMilli()
	if r.GPUMilli() == 0 {
		gpu += leftOfMIG(&s.Sums, r)
	}
	left := min(mostGPUs, int64(gpu+resource.WholeDevice-1)/int64(resource.WholeDevice)) << cpuBits
	if k.Full.CPU > 0 {
		left += max(0, min(most, int64(s.FreeCPU-r.CPU)*most/int64(k.Full.CPU)))
	}
	return left
}
