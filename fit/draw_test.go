package fit_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// between draws a number from low to high, each as likely as any other:
// rapid.IntRange favours small ones, and then most hosts would be empty and
// most requests refused.
func between(t *rapid.T, low, high int, label string) int {
	n := 0
	for span := 1; span <= high-low; span *= 2 {
		n *= 2
		if rapid.Bool().Draw(t, label) {
			n++
		}
	}
	return low + n%(high-low+1)
}

// one draws one of the values, each as likely as any other.
func one[T any](t *rapid.T, label string, values ...T) T {
	return values[between(t, 0, len(values)-1, label)]
}

// drawHost draws a host, regular or broken: sparse node numbers, cores of one
// or two threads and of several kinds, isolated and offline CPUs, pools of huge
// pages, any links, devices in MIG mode.
func drawHost(t *rapid.T, maxNodes, maxGPUs int) *fit.Host {
	topology := &numa.Topology{}
	step := between(t, 1, 3, "step")
	next := 0
	var ordinary resource.Bytes
	hybrid := between(t, 0, 3, "hybrid") == 0
	for n := range between(t, 1, maxNodes, "nodes") {
		node := numa.Node{ID: n * step, Memory: resource.Bytes(between(t, 0, 20, "memory"))}
		ordinary += node.Memory
		if between(t, 0, 2, "pools") == 0 {
			node.Hugepages = map[int]int64{1: int64(between(t, 0, 4, "pages")), 4: int64(between(t, 0, 2, "larger pages"))}
			node.Memory += resource.Bytes(node.Hugepages[1]+4*node.Hugepages[4]) * 1024
		}
		for c := range one(t, "cores", 0, 1, 2, 4, 4, 5, 6, 8) {
			threads := between(t, 1, 2, "threads")
			var siblings bitset.Set
			kind := numa.UnknownKind
			if hybrid {
				kind = numa.CoreKind(between(t, 1, 2, "kind"))
			}
			for i := range threads {
				siblings.Add(next + i)
			}
			for range threads {
				topology.CPUs = append(topology.CPUs, numa.CPU{
					ID: next, Core: c, L3: n*4 + c/2, NUMA: node.ID, Siblings: siblings, Kind: kind,
					Online: between(t, 0, 9, "online") > 0, Isolated: between(t, 0, 9, "isolated") == 0,
				})
				node.CPUs.Add(next)
				next++
			}
		}
		topology.Nodes = append(topology.Nodes, node)
	}
	for range topology.Nodes {
		row := make([]int, len(topology.Nodes))
		for j := range row {
			row[j] = between(t, 10, 40, "distance")
		}
		topology.Distances = append(topology.Distances, row)
	}
	inventory := drawInventory(t, len(topology.Nodes), step, maxGPUs)
	var reserved fit.Reserved
	if next > 0 && rapid.Bool().Draw(t, "reserve") {
		reserved.CPUs = bitset.Of(between(t, 0, next-1, "reserved"))
		reserved.Memory = ordinary / 10
	}
	h, err := fit.NewHost(topology, inventory, reserved)
	if err != nil {
		t.Fatalf("the drawn host is refused: %v", err)
	}
	return h
}

// maxInstances bounds the MIG instances of a drawn host, so that the oracle can
// try every set of them.
const maxInstances = 12

func drawInventory(t *rapid.T, nodes, step, maxGPUs int) *devices.Inventory {
	classes := []devices.Link{devices.LinkSYS, devices.LinkNODE, devices.LinkPIX, devices.NVLink(2), devices.NVLink(2).Over(devices.LinkPIX), devices.NVLink(3).Over(devices.LinkSYS), devices.NVLink(4)}
	few := between(t, 1, len(classes), "classes")
	n := between(t, 0, maxGPUs, "gpus")
	if n < maxGPUs/2 && !rapid.Bool().Draw(t, "few gpus") {
		n = maxGPUs - n
	}
	inv := &devices.Inventory{Links: make([][]devices.Link, n)}
	migRate := one(t, "migRate", 0, 1, 8, 16)
	instances := 0
	for i := range n {
		d := devices.Device{
			Index: i, UUID: fmt.Sprintf("GPU-%d", i), Model: one(t, "model", "A", "A", "A", "B"),
			Memory: resource.Bytes(one(t, "gpuMemory", 40, 80)), NUMANode: between(t, -1, nodes-1, "gpuNode"),
		}
		if d.NUMANode > 0 {
			d.NUMANode *= step
		}
		d.MIG.Enabled = between(t, 0, 15, "mig") < migRate
		for k := range between(t, 0, 4, "instances") {
			if !d.MIG.Enabled || instances == maxInstances {
				break
			}
			instances++
			g := one(t, "profile", 1, 1, 2)
			d.MIG.Instances = append(d.MIG.Instances, devices.MIGInstance{
				UUID: fmt.Sprintf("MIG-%d-%d", i, k), Profile: fmt.Sprintf("%dg.%dgb", g, 10*g), Memory: resource.Bytes(10 * g),
			})
		}
		d.Health = devices.Health(one(t, "health", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3))
		inv.Devices = append(inv.Devices, d)
		inv.Links[i] = make([]devices.Link, n)
		for j := range i {
			l := classes[between(t, 0, few-1, "link")]
			inv.Links[i][j], inv.Links[j][i] = l, l
		}
	}
	return inv
}

// drawHeld takes random amounts of everything and returns what.
func drawHeld(t *rapid.T, h *fit.Host, f *fit.Free) resource.Assignment {
	var a resource.Assignment
	load := between(t, 1, 4, "load") // one part in so many
	for i, free := range f.CPU {
		if free > 0 {
			if m := one(t, "cpu", 0, 0, 0, 250, 500, 900, 1000, 1000); m > 0 && between(t, 1, load, "loaded") == 1 {
				a.CPUs = append(a.CPUs, resource.CPUGrant{ID: h.Topology().CPUs[i].ID, Milli: resource.Millicores(m)})
			}
		}
	}
	for i, free := range f.Memory {
		if m := between(t, 0, int(free), "memory") / load; m > 0 {
			a.Memory = append(a.Memory, resource.MemoryGrant{Node: h.Topology().Nodes[i].ID, Bytes: resource.Bytes(m)})
		}
	}
	for i, free := range f.GPU {
		if free > 0 {
			if m := one(t, "gpu", 0, 0, 0, 0, 300, 700, 1000); m > 0 && between(t, 1, load, "loaded") == 1 {
				a.GPUs = append(a.GPUs, resource.GPUGrant{Index: i, UUID: h.Inventory().Devices[i].UUID, Milli: resource.Milli(m)})
			}
		}
	}
	for i, free := range f.Hugepages {
		size := h.PageSizes()[i%len(h.PageSizes())]
		if m := between(t, 0, int(free/size), "pages") / load; m > 0 {
			node := h.Topology().Nodes[i/len(h.PageSizes())].ID
			a.Hugepages = append(a.Hugepages, resource.HugepageGrant{Node: node, Size: size, Bytes: resource.Bytes(m) * size})
		}
	}
	for i, free := range f.MIG {
		for k, instance := range h.Inventory().Devices[i].MIG.Instances {
			if free&(1<<k) != 0 && between(t, 0, load, "instance") == 0 {
				a.MIG = append(a.MIG, resource.MIGGrant{GPU: i, Instance: k, UUID: instance.UUID, Profile: instance.Profile})
			}
		}
	}
	if err := h.Take(f, a); err != nil {
		t.Fatalf("take of what is free: %v", err)
	}
	return a
}

func drawRequest(t *rapid.T, h *fit.Host, maxGPUs int) resource.Request {
	req := resource.Request{
		CPU:    resource.Millicores(one(t, "cpu", 0, 0, 0, 0, 0, 0, 100, 600, 1000, 1500, 2000, 3000, 4000, 7250, 12000)),
		Memory: resource.Bytes(between(t, 0, 12, "memory") * between(t, 0, 2, "much")),
		NUMA:   resource.NUMAPolicy(between(t, 0, 3, "policy")),
	}
	if between(t, 0, 2, "whole cores") == 0 {
		req.CPU, req.Cores = 0, between(t, 1, one(t, "most cores", 2, 6), "cores")
	}
	if between(t, 0, 7, "huge") == 0 {
		req.HugepageSize = resource.Bytes(one(t, "page", 1, 1, 1, 4, 4, 2)) * 1024
		req.Hugepages = req.HugepageSize * resource.Bytes(between(t, 1, 4, "pages"))
	}
	devices := between(t, 0, 4, "devices")
	if len(h.MIGProfiles()) > 0 && rapid.Bool().Draw(t, "mig") {
		devices = 4
	}
	switch devices {
	case 4:
		req.MIG = between(t, 1, one(t, "most instances", 2, 6), "instances")
		req.MIGProfile = one(t, "profile", "1g.10gb", "1g.10gb", "1g.10gb", "2g.20gb", "2g.20gb", "3g.40gb")
		req.GPUModel = one(t, "model", "", "", "A")
		req.GPUMemory = resource.Bytes(one(t, "gpuMemory", 0, 0, 10, 20))
	case 0:
		req.GPUShare = resource.Milli(one(t, "share", 100, 300, 500, 999))
	case 1, 2:
		req.GPUs = between(t, 1, one(t, "most gpus", 1, 2, maxGPUs), "gpus")
		req.Link = resource.LinkRequirement(one(t, "link", 0, 0, 0, 1, 2))
	}
	if req.GPUMilli() > 0 {
		req.GPUModel = one(t, "model", "", "", "A")
		req.GPUMemory = resource.Bytes(one(t, "gpuMemory", 0, 0, 80))
	}
	return req
}
