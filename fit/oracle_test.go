package fit_test

import (
	"cmp"
	"math/bits"
	"slices"

	"pgregory.net/rapid"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// This file is fit's naive twin: it tries everything and shares no code with
// the package. Hosts have at most 8 devices and 4 nodes.

// choice is a set of devices and its scores, in the order they count.
type choice struct {
	gpus    []int
	weakest devices.Link // more is better
	linkSum int          // more is better
	nodes   int          // less is better
	shared  resource.Milli
	left    int // links that remain; more is better
	onNode  int // pairs on one node that remain; more is better

	instances [][2]int // for MIG: device and instance
}

func (a choice) compare(b choice) int {
	return cmp.Or(cmp.Compare(b.weakest, a.weakest), cmp.Compare(b.linkSum, a.linkSum), cmp.Compare(a.nodes, b.nodes),
		cmp.Compare(a.shared, b.shared), cmp.Compare(b.left, a.left), cmp.Compare(b.onNode, a.onNode), slices.Compare(a.gpus, b.gpus))
}

// naive answers which devices Assign must choose; ok is whether it may.
func naive(h *fit.Host, f *fit.Free, req resource.Request) (best choice, ok bool) {
	limit := len(h.Topology().Nodes) + 1
	switch req.NUMA {
	case resource.NUMASingleNode:
		limit = 1
	case resource.NUMARestricted:
		empty := h.NewFree()
		empty.Unhealthy = 0
		limit = -1
		for _, c := range choices(h, empty, req) {
			if limit < 0 || c.nodes < limit {
				limit = c.nodes
			}
		}
	}
	for _, c := range choices(h, f, req) {
		if c.nodes > limit {
			continue
		}
		if req.NUMA == resource.NUMANone {
			c.nodes = 0
		}
		if !ok || c.compare(best) < 0 {
			best, ok = c, true
		}
	}
	return best, ok
}

// choices lists every set of devices that could serve, under no NUMA policy.
func choices(h *fit.Host, f *fit.Free, req resource.Request) []choice {
	inv := h.Inventory()
	want := req.GPUs
	if req.GPUShare > 0 {
		want = 1
	}
	var all []choice
	for mask := range 1 << len(inv.Devices) {
		if bits.OnesCount(uint(mask)) != want {
			continue
		}
		c := choice{weakest: 255}
		good := true
		nodes := map[int]bool{}
		for i, d := range inv.Devices {
			if mask&(1<<i) == 0 {
				continue
			}
			c.gpus = append(c.gpus, i)
			good = good && f.Unhealthy&(1<<i) == 0 && !d.MIG.Enabled && d.Memory >= req.GPUMemory &&
				(req.GPUModel == "" || req.GPUModel == d.Model)
			if req.GPUShare > 0 {
				good = good && f.GPU[i] >= req.GPUShare
				c.shared = f.GPU[i]
			} else {
				good = good && f.GPU[i] == resource.WholeDevice
			}
			if d.NUMANode >= 0 {
				nodes[d.NUMANode] = true
			}
			for _, j := range c.gpus[:len(c.gpus)-1] {
				c.weakest = min(c.weakest, inv.Links[i][j])
				c.linkSum += worth(inv.Links[i][j])
			}
		}
		good = good && (req.Link != resource.LinkSwitch || c.weakest >= devices.LinkPIX)
		good = good && (req.Link != resource.LinkNVLink || c.weakest.NVLinks() > 0)
		if !good {
			continue
		}
		// What remains idle, by pairs.
		for i := range inv.Devices {
			for j := range i {
				if idle(f, i) && idle(f, j) && mask&(1<<i) == 0 && mask&(1<<j) == 0 {
					c.left += worth(inv.Links[i][j])
					if n := inv.Devices[i].NUMANode; n >= 0 && n == inv.Devices[j].NUMANode {
						c.onNode++
					}
				}
			}
		}
		if c.nodes = fewestNodes(h, f, req, nodes); c.nodes >= 0 {
			all = append(all, c)
		}
	}
	return all
}

// worth is ten for each NVLink and one (SYS) to five (PIX) for the PCIe
// relation.
func worth(l devices.Link) int { return 10*l.NVLinks() + int(l.PCIe()) }

func idle(f *fit.Free, i int) bool {
	return f.GPU[i] == resource.WholeDevice && f.Unhealthy&(1<<i) == 0
}

// fewestNodes is the least number of nodes that include must and have the
// CPUs, cores, memory and huge pages, or -1.
func fewestNodes(h *fit.Host, f *fit.Free, req resource.Request, must map[int]bool) int {
	t := h.Topology()
	best := -1
	for mask := range 1 << len(t.Nodes) {
		var cpu resource.Millicores
		var memory, pages resource.Bytes
		cores := 0
		good := true
		for n, node := range t.Nodes {
			if mask&(1<<n) == 0 {
				good = good && !must[node.ID]
				continue
			}
			memory += f.Memory[n]
			if req.Hugepages > 0 {
				pages += h.HugepagesOn(f, n, req.HugepageSize)
			}
			cores += intactCores(h, f, node.ID)
			for i, c := range t.CPUs {
				if c.NUMA == node.ID {
					cpu += f.CPU[i]
				}
			}
		}
		good = good && cores >= req.Cores && pages >= req.Hugepages
		if n := bits.OnesCount(uint(mask)); good && cpu >= req.CPU && memory >= req.Memory && (best < 0 || n < best) {
			best = n
		}
	}
	return best
}

// intactCores counts the cores of a node all of whose online threads are free.
func intactCores(h *fit.Host, f *fit.Free, node int) int {
	intact := map[int]bool{}
	for i, c := range h.Topology().CPUs {
		if c.Online && c.NUMA == node {
			was, seen := intact[c.Siblings.Min()]
			intact[c.Siblings.Min()] = f.CPU[i] == resource.WholeCPU && (was || !seen)
		}
	}
	n := 0
	for _, is := range intact {
		if is {
			n++
		}
	}
	return n
}

// naiveLeaves bounds the free amounts that a request leaves beside the withheld amounts: sure where it
// leaves enough whichever cores it gets, never where it does not with the smallest cores.
func naiveLeaves(h *fit.Host, f *fit.Free, req resource.Request) (sure, never bool) {
	cpu, memory := -f.Withheld.CPU, -f.Withheld.Memory
	for _, m := range f.CPU {
		cpu += m
	}
	for _, m := range f.Memory {
		memory += m
	}
	most := 1
	for _, c := range h.Topology().CPUs {
		most = max(most, c.Siblings.Len())
	}
	cores := resource.Millicores(req.Cores) * resource.WholeCPU
	leaves := func(wanted resource.Millicores) bool {
		return (wanted == 0 || cpu >= wanted) && (req.Memory == 0 || memory >= req.Memory)
	}
	return leaves(req.CPU + cores*resource.Millicores(most)), !leaves(req.CPU + cores)
}

// drawRest draws withheld amounts of the huge pages and MIG instances of a host.
func drawRest(t *rapid.T, h *fit.Host) resource.Counts {
	rest := resource.Vector{}
	for _, size := range h.PageSizes() {
		rest[resource.Hugepages(size)] = int64(size) * int64(rapid.IntRange(0, 4).Draw(t, "withheld pages"))
	}
	for _, profile := range h.MIGProfiles() {
		rest[resource.MIG(profile)] = int64(rapid.IntRange(0, 4).Draw(t, "withheld instances"))
	}
	return resource.CountsOf(rest)
}

// naiveLeavesRest reports whether a request leaves the withheld huge pages and instances
// free. Instances on unhealthy devices are left free, too.
func naiveLeavesRest(h *fit.Host, f *fit.Free, req resource.Request) bool {
	pages, instances := int64(0), int64(0)
	for node := range h.Topology().Nodes {
		pages += int64(h.HugepagesOn(f, node, req.HugepageSize))
	}
	for i, d := range h.Inventory().Devices {
		for k, instance := range d.MIG.Instances {
			if f.MIG[i]&(1<<k) != 0 && instance.Profile == req.MIGProfile {
				instances++
			}
		}
	}
	return (req.Hugepages == 0 || pages-f.Withheld.Rest.Of(resource.Hugepages(req.HugepageSize)) >= int64(req.Hugepages)) &&
		(req.MIG == 0 || instances-f.Withheld.Rest.Of(resource.MIG(req.MIGProfile)) >= int64(req.MIG))
}
