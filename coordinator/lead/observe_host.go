package lead

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// This file writes down the hardware of a host for readers: amounts and names, and not
// the links and caches that only placement needs.

// factsOf are the facts of a host.
func factsOf(h *fit.Host) *record.HostFacts {
	full, t := h.NewFree(), h.Topology()
	facts := &record.HostFacts{Elsewhere: h.Usable(numa.Unknown).String()}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		facts.NUMA = append(facts.NUMA, record.NUMAFacts{
			ID: n.ID, MemoryOnly: n.MemoryOnly, CPUs: n.CPUs.String(), Memory: n.Memory,
			Usable: h.Usable(i).String(), Ordinary: full.Memory[i], Cores: coresOf(h, i), Pages: pagesOf(h, full, i),
		})
	}
	for i := range h.Inventory().Devices {
		d := &h.Inventory().Devices[i]
		at := slices.Index(facts.Models, d.Model)
		if at < 0 {
			at = len(facts.Models)
			facts.Models = append(facts.Models, d.Model)
		}
		device := record.DeviceFacts{UUID: d.UUID, Model: at, Memory: d.Memory, NUMANode: d.NUMANode, MIG: d.MIG.Enabled}
		for _, g := range d.MIG.Instances {
			device.Instances = append(device.Instances, record.InstanceFacts{UUID: g.UUID, Profile: g.Profile, Memory: g.Memory})
		}
		facts.Devices = append(facts.Devices, device)
	}
	amounts := h.Counts()
	for _, name := range amounts.Names() {
		facts.Counts = append(facts.Counts, resource.CountGrant{Name: name, Amount: amounts[name]})
	}
	return facts
}

// coresOf are the whole cores of the node at a position, as record.NUMAFacts has them.
func coresOf(h *fit.Host, node int) map[string]string {
	kinds := map[string]bitset.Set{}
	for threads := range h.WholeCores(node) {
		distances := ""
		for _, id := range threads[1:] {
			distances += "+" + strconv.Itoa(id-threads[0])
		}
		first := kinds[distances]
		first.Add(threads[0])
		kinds[distances] = first
	}
	cores := make(map[string]string, len(kinds))
	for distances, first := range kinds {
		cores[distances] = first.String()
	}
	return cores
}

// pagesOf are the huge pages of the node at a position.
func pagesOf(h *fit.Host, full *fit.Free, node int) (pages []record.PageFacts) {
	for _, size := range h.PageSizes() {
		if h.Topology().Nodes[node].Hugepages[int(size>>10)] != 0 {
			pages = append(pages, record.PageFacts{Size: size, Bytes: h.HugepagesOn(full, node, size)})
		}
	}
	return pages
}

// sumOf is the sum of the assignments of some grants, nil for none. Each resource is
// named once, in order.
func sumOf(grants []grant.Grant) *resource.Assignment {
	cpus, memory := map[int]resource.Millicores{}, map[int]resource.Bytes{}
	pages := map[resource.HugepageGrant]resource.Bytes{} // by node and size
	counts := resource.Vector{}
	gpus, instances := map[resource.GPUGrant]resource.Milli{}, map[resource.MIGGrant]bool{}
	for _, g := range grants {
		for _, m := range g.Members {
			for _, c := range m.Assignment.CPUs {
				cpus[c.ID] += c.Milli
			}
			for _, b := range m.Assignment.Memory {
				memory[b.Node] += b.Bytes
			}
			for _, p := range m.Assignment.Hugepages {
				pages[resource.HugepageGrant{Node: p.Node, Size: p.Size}] += p.Bytes
			}
			for _, d := range m.Assignment.GPUs {
				gpus[resource.GPUGrant{Index: d.Index, UUID: d.UUID}] += d.Milli
			}
			for _, i := range m.Assignment.MIG {
				instances[i] = true
			}
			for _, c := range m.Assignment.Counts {
				counts[c.Name] += c.Amount
			}
		}
	}
	if len(cpus)+len(memory)+len(pages)+len(gpus)+len(instances)+len(counts) == 0 {
		return nil
	}
	sum := &resource.Assignment{}
	for _, id := range slices.Sorted(maps.Keys(cpus)) {
		sum.CPUs = append(sum.CPUs, resource.CPUGrant{ID: id, Milli: cpus[id]})
	}
	for _, id := range slices.Sorted(maps.Keys(memory)) {
		sum.Memory = append(sum.Memory, resource.MemoryGrant{Node: id, Bytes: memory[id]})
	}
	for p, bytes := range pages {
		p.Bytes = bytes
		sum.Hugepages = append(sum.Hugepages, p)
	}
	slices.SortFunc(sum.Hugepages, func(a, b resource.HugepageGrant) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Size, b.Size))
	})
	for d, milli := range gpus {
		d.Milli = milli
		sum.GPUs = append(sum.GPUs, d)
	}
	slices.SortFunc(sum.GPUs, func(a, b resource.GPUGrant) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.UUID, b.UUID))
	})
	sum.MIG = slices.SortedFunc(maps.Keys(instances), func(a, b resource.MIGGrant) int {
		return cmp.Or(cmp.Compare(a.GPU, b.GPU), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.UUID, b.UUID))
	})
	for _, name := range counts.Names() {
		sum.Counts = append(sum.Counts, resource.CountGrant{Name: name, Amount: counts[name]})
	}
	return sum
}
