package digest

import (
	"math"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// mib is the unit of NUMANode.FreeHugepages.
const mib resource.Bytes = 1 << 20

// Measure fills a digest's fields about devices and NUMA nodes: FreeGPUs,
// UnhealthyGPUs, GPUs and NUMA, whose memory it reuses. Nodes are listed where
// they are ordinary, those with CPUs or memory to hand out. The other fields
// stay as they are. f must be of h.
func (d *Digest) Measure(h *fit.Host, f *fit.Free) {
	d.FreeGPUs, d.UnhealthyGPUs = 0, 0
	d.GPUs, d.NUMA = d.GPUs[:0], d.NUMA[:0]
	for i, milli := range f.GPU {
		if milli == resource.WholeDevice {
			d.FreeGPUs |= 1 << i
		}
		d.UnhealthyGPUs |= f.Unhealthy & (1 << i)
		d.GPUs = append(d.GPUs, GPU{FreeMilli: uint16(milli), MIGSlices: uint8(h.FreeSlices(f, i))})
	}
	sizes := len(h.PageSizes())
	for i, n := range h.Topology().Nodes {
		if n.MemoryOnly || n.ID > math.MaxUint16 {
			continue
		}
		node := NUMANode{
			ID:             uint16(n.ID),
			FreeMillicores: uint32(min(h.FreeCPU(f, i), math.MaxUint32)),
			FreeCores:      uint16(min(h.WholeFreeCores(f, i), math.MaxUint16)),
			FreeMemory:     f.Memory[i],
		}
		var pages resource.Bytes
		for _, free := range f.Hugepages[i*sizes : (i+1)*sizes] {
			pages += free
		}
		node.FreeHugepages = uint32(min(pages/mib, math.MaxUint32))
		d.NUMA = append(d.NUMA, node)
	}
}

// Summary returns the digest's content about devices and NUMA nodes, for
// fit.Host.FreeOf. Whether the host takes new work at all (Flags) is not in it.
// Of a Truncated digest every device that FreeGPUs names is still wholly free.
func (d Digest) Summary() fit.Summary {
	s := fit.Summary{Unhealthy: d.UnhealthyGPUs, Folded: d.Flags&Truncated != 0}
	for _, g := range d.GPUs {
		s.GPUs = append(s.GPUs, fit.GPUSummary{Milli: resource.Milli(g.FreeMilli), MIGSlices: int(g.MIGSlices)})
	}
	if s.Folded && len(d.GPUs) == MaxGPUs {
		rest := s.GPUs[MaxGPUs-1]
		rest.AtLeast = true
		s.GPUs = s.GPUs[:MaxGPUs-1]
		for i := MaxGPUs - 1; i < fit.MaxGPUs; i++ {
			g := rest
			if d.FreeGPUs>>i&1 != 0 {
				g.Milli = resource.WholeDevice
			}
			s.GPUs = append(s.GPUs, g)
		}
	}
	for _, n := range d.NUMA {
		s.Nodes = append(s.Nodes, fit.NodeSummary{
			ID: int(n.ID), CPU: resource.Millicores(n.FreeMillicores), Cores: int(n.FreeCores), Memory: n.FreeMemory,
			Hugepages: resource.Bytes(n.FreeHugepages) * mib,
		})
	}
	return s
}
