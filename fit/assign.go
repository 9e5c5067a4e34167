package fit

import (
	"math/bits"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// unlimited is more nodes than any host has.
const unlimited = maxDomains + 1

// search is one question to a host: its inputs, gathered and checked once.
type search struct {
	h   *Host
	f   *Free
	req resource.Request
	amounts
	usable   uint64 // devices that may be chosen for req
	idle     uint64 // healthy devices that are wholly free
	limit    int    // most nodes the policy allows, or unlimited
	required devices.Link
	spans    [256]spanMemo // answers of spanOf, see there
}

// amounts is the CPU and memory of each domain.
type amounts struct {
	cpu    [maxDomains]resource.Millicores
	memory [maxDomains]resource.Bytes
}

// Assign chooses the devices, CPUs and memory for req out of what is free, as
// the package comment tells, and reports whether there are any. It fills dst,
// whose slices it reuses; on false dst is empty. f is not changed. In the
// steady state nothing is allocated on the heap.
func (h *Host) Assign(f *Free, req resource.Request, dst *resource.Assignment) bool {
	clearAssignment(dst)
	var s search
	if !s.start(h, f, &req) {
		return false
	}
	var gpus uint64
	ok := true
	switch {
	case req.GPUShare > 0:
		gpus, ok = s.chooseShared()
	case req.GPUs == 0:
	case h.links != nil:
		gpus, ok = s.chooseExact()
	default:
		gpus, ok = s.chooseWide()
	}
	return ok && s.finish(gpus, dst)
}

// Pinned is Assign with the devices given: exactly gpus, as many as req asks
// for (one for a share). It reports false where they are not free, do not
// satisfy req or are listed twice.
func (h *Host) Pinned(f *Free, req resource.Request, gpus []int, dst *resource.Assignment) bool {
	clearAssignment(dst)
	var s search
	if !s.start(h, f, &req) {
		return false
	}
	set, ok := h.setOf(gpus)
	if !ok || len(gpus) != wanted(&req) || set&^s.usable != 0 || !h.connected(set, s.required) {
		return false
	}
	return s.finish(set, dst)
}

// wanted is the number of devices that req touches.
func wanted(req *resource.Request) int {
	if req.GPUShare > 0 {
		return 1
	}
	return req.GPUs
}

// setOf returns the set of the given indices, which must be distinct and exist.
func (h *Host) setOf(gpus []int) (uint64, bool) {
	var set uint64
	for _, g := range gpus {
		if g < 0 || g >= len(h.inventory.Devices) || set&(1<<g) != 0 {
			return 0, false
		}
		set |= 1 << g
	}
	return set, true
}

// connected reports whether every pair of the set has at least the required
// link.
func (h *Host) connected(set uint64, required devices.Link) bool {
	for ; set != 0; set &= set - 1 {
		row := h.inventory.Links[bits.TrailingZeros64(set)]
		for rest := set & (set - 1); rest != 0; rest &= rest - 1 {
			if row[bits.TrailingZeros64(rest)] < required {
				return false
			}
		}
	}
	return true
}

func clearAssignment(dst *resource.Assignment) {
	dst.CPUs, dst.Memory, dst.GPUs = dst.CPUs[:0], dst.Memory[:0], dst.GPUs[:0]
}

// start gathers what is free and reports whether req is valid and there is
// enough of each resource by itself.
func (s *search) start(h *Host, f *Free, req *resource.Request) bool {
	h.own(f)
	if req.Validate() != nil {
		return false
	}
	s.h, s.f, s.req = h, f, *req
	var cpu resource.Millicores
	var memory resource.Bytes
	for i := range h.domains {
		s.cpu[i] = f.domainMilli[i]
		cpu += s.cpu[i]
		if n := h.domains[i].node; n >= 0 {
			s.memory[i] = f.Memory[n]
			memory += s.memory[i]
		}
	}
	if cpu < req.CPU || memory < req.Memory {
		return false
	}
	s.required = requiredLink(req.Link)
	s.gatherGPUs()
	if bits.OnesCount64(s.usable) < wanted(req) {
		return false
	}
	switch req.NUMA {
	case resource.NUMASingleNode:
		s.limit = 1
	case resource.NUMARestricted:
		s.limit = s.spanWhenEmpty()
	default:
		s.limit = unlimited
	}
	return true
}

// gatherGPUs finds the devices that are idle and those usable for the request.
func (s *search) gatherGPUs() {
	least := resource.WholeDevice
	if s.req.GPUShare > 0 {
		least = s.req.GPUShare
	}
	for i, m := range s.f.GPU {
		if m == resource.WholeDevice {
			s.idle |= 1 << i
		}
		if m >= least {
			s.usable |= 1 << i
		}
	}
	s.idle &^= s.f.Unhealthy
	s.usable &^= s.f.Unhealthy
	s.usable &= s.h.matching(&s.req)
}

// matching returns the devices of the model and memory asked for, whatever is
// free of them.
func (h *Host) matching(req *resource.Request) uint64 {
	if req.GPUModel == "" && req.GPUMemory == 0 {
		return h.whole
	}
	var set uint64
	for rest := h.whole; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		d := &h.inventory.Devices[i]
		if d.Memory >= req.GPUMemory && (req.GPUModel == "" || req.GPUModel == d.Model) {
			set |= 1 << i
		}
	}
	return set
}

// requiredLink is the least link that satisfies a requirement.
func requiredLink(l resource.LinkRequirement) devices.Link {
	switch l {
	case resource.LinkSwitch:
		return devices.LinkPIX
	case resource.LinkNVLink:
		return devices.NVLink(1)
	default:
		return devices.LinkNone
	}
}

// finish chooses nodes, CPUs and memory for the devices chosen and writes the
// assignment, unless the policy allows no such nodes.
func (s *search) finish(gpus uint64, dst *resource.Assignment) bool {
	nodes, ok := s.chooseNodes(s.h.domainsOf(gpus))
	if !ok || bits.OnesCount64(nodes) > s.limit {
		return false
	}
	var list [maxDomains]int8
	order, near := s.orderNodes(nodes, gpus, list[:0])
	s.pickCPUs(order, near, dst)
	s.pickMemory(order, dst)
	milli := resource.WholeDevice
	if s.req.GPUShare > 0 {
		milli = s.req.GPUShare
	}
	for ; gpus != 0; gpus &= gpus - 1 {
		i := bits.TrailingZeros64(gpus)
		dst.GPUs = append(dst.GPUs, resource.GPUGrant{Index: i, UUID: s.h.inventory.Devices[i].UUID, Milli: milli})
	}
	return true
}

// pickMemory takes the memory from the first node that has all of it, else
// from the nodes with the most free.
func (s *search) pickMemory(order []int8, dst *resource.Assignment) {
	left := s.req.Memory
	var take [maxDomains]resource.Bytes
	for _, d := range order {
		if s.memory[d] >= left {
			take[d], left = left, 0
			break
		}
	}
	for left > 0 {
		most := order[0]
		for _, d := range order {
			if take[d] == 0 && (take[most] > 0 || s.memory[d] > s.memory[most]) {
				most = d
			}
		}
		take[most] = min(left, s.memory[most])
		left -= take[most]
	}
	for d, bytes := range take[:len(s.h.domains)] {
		if bytes > 0 {
			node := s.h.topology.Nodes[s.h.domains[d].node].ID
			dst.Memory = append(dst.Memory, resource.MemoryGrant{Node: node, Bytes: bytes})
		}
	}
}
