package fit

import (
	"fmt"
	"math/bits"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// Summary has the free resources of a host as counts, without their ids: all that
// is known of a host from afar. No count exceeds the free resources.
//
// Invariant: Nodes ascends strictly by ID.
type Summary struct {
	// Unhealthy is as Free.Unhealthy.
	Unhealthy uint64
	// GPUs is by device index.
	GPUs []GPUSummary
	// Nodes are the ordinary NUMA nodes. Memory-only ones may be listed and are
	// not looked at; a device that is not listed counts as taken.
	Nodes []NodeSummary
	// Folded summaries are of hosts with more devices or nodes than the form
	// that carried them: GPUs may be shorter or longer than the inventory, and
	// the last of Nodes stands for every later node too.
	Folded bool
}

// GPUSummary has the free parts of one device.
type GPUSummary struct {
	Milli     resource.Milli
	MIGSlices int  // GPU slices of its free MIG instances
	AtLeast   bool // more MIG slices may be free than MIGSlices says
}

// NodeSummary has the free resources of one NUMA node.
type NodeSummary struct {
	ID        int // the kernel's node number
	CPU       resource.Millicores
	Cores     int // whole physical cores
	Memory    resource.Bytes
	Hugepages resource.Bytes // in pages of any size, at least
}

// FreeOf returns a state of the host that answers no request with yes which
// the state that s was taken from answers with no. Where several states have
// the same summary it is their common part: of MIG instances of several
// profiles, and of huge pages of several sizes, only the free ones of each of
// them. Which cores, CPUs and instances are free it cannot know: the ones it
// shows serve to decide whether a request fits, not to hand them out.
//
// A summary that is not of this host, with another number of devices or with a
// node that the host lacks, is an error.
func (h *Host) FreeOf(s Summary) (*Free, error) {
	if !s.Folded && len(s.GPUs) != len(h.inventory.Devices) {
		return nil, fmt.Errorf("fit: summary of %d GPUs on a host of %d", len(s.GPUs), len(h.inventory.Devices))
	}
	for _, n := range s.Nodes {
		if h.topology.NodeIndex(n.ID) < 0 {
			return nil, fmt.Errorf("fit: summary of node %d, which the host lacks", n.ID)
		}
	}
	f := h.NewFree()
	h.takeAll(f)
	f.Unhealthy = s.Unhealthy
	copy(f.Counts, h.counts.full) // a summary has none
	for i := range min(len(s.GPUs), len(f.GPU)) {
		g := &s.GPUs[i]
		if h.whole&(1<<i) != 0 {
			f.GPU[i] = max(0, min(g.Milli, resource.WholeDevice))
		}
		f.MIG[i] = h.partitions.sureOf(h.inventory.Devices[i].MIG.Instances, i, g)
	}
	next := 0
	for i, n := range h.topology.Nodes {
		for next < len(s.Nodes) && s.Nodes[next].ID < n.ID {
			next++
		}
		var told NodeSummary
		switch {
		case next < len(s.Nodes) && s.Nodes[next].ID == n.ID:
			told = s.Nodes[next]
		case next == len(s.Nodes) && s.Folded && next > 0:
			told = s.Nodes[next-1]
		}
		if !h.offers(i) {
			continue
		}
		f.Memory[i] = max(0, min(told.Memory, h.fullMemory[i]))
		h.pages.sure(f.Hugepages, i, told.Hugepages)
		h.spread(f, h.domainOf[i], told.CPU, told.Cores)
	}
	return f, nil
}

// takeAll leaves nothing free.
func (h *Host) takeAll(f *Free) {
	clear(f.Memory)
	clear(f.Hugepages)
	clear(f.GPU)
	clear(f.MIG)
	clear(f.Counts)
	for _, p := range h.order {
		h.setCPU(f, p, 0)
	}
}

// spread gives CPUs of a domain until as many cores are intact, those with the
// fewest threads first, and then up to the given millicores without making
// another core intact.
func (h *Host) spread(f *Free, d int32, milli resource.Millicores, cores int) {
	in := h.domains[d].cores
	for threads := int32(1); threads <= h.mostThreads(d); threads++ {
		need := resource.Millicores(threads) * resource.WholeCPU
		for c := in.from; c < in.to && cores > 0 && milli >= need; c++ {
			if h.cores[c].full == threads && h.cores[c].whole() {
				h.spreadCore(f, c, need)
				milli -= need
				cores--
			}
		}
	}
	for c := in.from; c < in.to && milli > 0; c++ {
		if f.coreWhole[c] < h.cores[c].full {
			most := resource.Millicores(h.cores[c].cpus.to-h.cores[c].cpus.from) * resource.WholeCPU
			if h.cores[c].whole() {
				most--
			}
			h.spreadCore(f, c, min(milli, most))
			milli -= min(milli, most)
		}
	}
}

// mostThreads is the threads of the largest core of a domain.
func (h *Host) mostThreads(d int32) int32 {
	most := int32(0)
	for g := h.domains[d].groups.from; g < h.domains[d].groups.to; g++ {
		most = max(most, h.groups[g].full)
	}
	return most
}

// spreadCore gives millicores of one core, CPU after CPU.
func (h *Host) spreadCore(f *Free, c int32, milli resource.Millicores) {
	cpus := h.cores[c].cpus
	for _, p := range h.order[cpus.from:cpus.to] {
		part := min(milli, resource.WholeCPU)
		h.setCPU(f, p, part)
		milli -= part
	}
}

// sure sets the free huge pages of a node to those that are free for any choice of
// pools the given amount is spread over.
func (p *pageTable) sure(free []resource.Bytes, node int, amount resource.Bytes) {
	from := node * len(p.sizes)
	full := p.full[from : from+len(p.sizes)]
	all := resource.Bytes(0)
	for _, pool := range full {
		all += pool
	}
	for i, size := range p.sizes {
		least := max(0, min(full[i], amount-(all-full[i])))
		free[from+i] = least - least%size
	}
}

// sureOf returns, of each profile, as many instances of a device as are free
// in every state with the given free slices: those with the least memory.
func (p *partitionTable) sureOf(instances []devices.MIGInstance, device int, g *GPUSummary) uint16 {
	if p.full[device] == 0 {
		return 0
	}
	most := g.MIGSlices
	if g.AtLeast {
		most = p.slicesOf(device, p.full[device])
	}
	var sure uint16
	for at, of := range p.of {
		rest := of[device]
		for n := p.fewest(at, device, g.MIGSlices, most); n > 0; n-- {
			least := bits.TrailingZeros16(rest)
			for others := rest; others != 0; others &= others - 1 {
				if k := bits.TrailingZeros16(others); instances[k].Memory < instances[least].Memory {
					least = k
				}
			}
			sure |= 1 << least
			rest &^= 1 << least
		}
	}
	return sure
}

// fewest is the least number of free instances of a profile on a device that
// has between low and high slices free in all; 0 where no state has so many.
func (p *partitionTable) fewest(profile, device, low, high int) int {
	// The slices that the other profiles can have free: sums of subsets of their slices.
	var reach [maxSlices + 1]bool
	reach[0] = true
	for at, of := range p.of {
		for n := bits.OnesCount16(of[device]); at != profile && n > 0; n-- {
			for sum := maxSlices; sum >= p.slices[at]; sum-- {
				reach[sum] = reach[sum] || reach[sum-p.slices[at]]
			}
		}
	}
	for n := range bits.OnesCount16(p.of[profile][device]) + 1 {
		for sum := low; sum <= high; sum++ {
			if others := sum - n*p.slices[profile]; others >= 0 && others <= maxSlices && reach[others] {
				return n
			}
		}
	}
	return 0
}
