package fit_test

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// This file is the naive twin for MIG instances: it tries every set of
// instances, of which a host has at most maxInstances.

// harm is what a set of instances costs, in the order it counts; less is
// better.
type harm struct {
	nodes   int
	fresh   int // devices that were wholly free
	touched int // devices
	slices  int // free slices of the devices touched, before
}

func (a harm) compare(b harm) int {
	return cmp.Or(cmp.Compare(a.nodes, b.nodes), cmp.Compare(a.fresh, b.fresh), cmp.Compare(a.touched, b.touched), cmp.Compare(a.slices, b.slices))
}

// naiveMIG answers which instances Assign must choose; ok is whether it may.
func naiveMIG(h *fit.Host, f *fit.Free, req resource.Request) (best choice, ok bool) {
	limit := len(h.Topology().Nodes) + 1
	switch req.NUMA {
	case resource.NUMASingleNode:
		limit = 1
	case resource.NUMARestricted:
		empty := h.NewFree()
		empty.Unhealthy = 0
		limit = -1
		eachMIG(h, empty, req, func(_ [][2]int, cost harm) {
			if limit < 0 || cost.nodes < limit {
				limit = cost.nodes
			}
		})
	}
	var least harm
	eachMIG(h, f, req, func(list [][2]int, cost harm) {
		if cost.nodes > limit {
			return
		}
		nodes := cost.nodes
		if req.NUMA == resource.NUMANone {
			cost.nodes = 0
		}
		order := func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }
		if c := cost.compare(least); !ok || c < 0 || c == 0 && slices.CompareFunc(list, best.instances, order) < 0 {
			best, least, ok = choice{instances: slices.Clone(list), nodes: nodes}, cost, true
		}
	})
	return best, ok
}

// eachMIG visits every set of free instances that could serve, under no NUMA
// policy.
func eachMIG(h *fit.Host, f *fit.Free, req resource.Request, visit func([][2]int, harm)) {
	var all [][2]int
	inv := h.Inventory()
	for i, d := range inv.Devices {
		for k, m := range d.MIG.Instances {
			if f.Unhealthy&(1<<i) == 0 && f.MIG[i]&(1<<k) != 0 && m.Profile == req.MIGProfile && m.Memory >= req.GPUMemory &&
				(req.GPUModel == "" || req.GPUModel == d.Model) {
				all = append(all, [2]int{i, k})
			}
		}
	}
	needs := map[string]int{} // nodes, by the nodes of the devices
	for mask := range 1 << len(all) {
		if bits.OnesCount(uint(mask)) != req.MIG {
			continue
		}
		var list [][2]int
		var cost harm
		nodes := map[int]bool{}
		for at, instance := range all {
			if mask&(1<<at) == 0 {
				continue
			}
			i := instance[0]
			if len(list) == 0 || list[len(list)-1][0] != i {
				cost.touched++
				free := 0
				for k, m := range inv.Devices[i].MIG.Instances {
					if f.MIG[i]&(1<<k) != 0 {
						cost.slices += m.Slices()
						free++
					}
				}
				if free == len(inv.Devices[i].MIG.Instances) {
					cost.fresh++
				}
				if n := inv.Devices[i].NUMANode; n >= 0 {
					nodes[n] = true
				}
			}
			list = append(list, instance)
		}
		key := ""
		for _, n := range h.Topology().Nodes {
			if nodes[n.ID] {
				key += "x"
			} else {
				key += "-"
			}
		}
		if _, known := needs[key]; !known {
			needs[key] = fewestNodes(h, f, req, nodes)
		}
		if cost.nodes = needs[key]; cost.nodes >= 0 {
			visit(list, cost)
		}
	}
}
