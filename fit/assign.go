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
	h        *Host
	f        *Free
	req      resource.Request
	want     amount  // of all domains together
	have     amounts // what is free
	only     uint64  // devices that are looked at
	usable   uint64  // devices that may be chosen for req
	idle     uint64  // healthy devices that are wholly free
	spare    uint64  // these, and healthy devices with free MIG instances
	limit    int     // most nodes the policy allows, or unlimited
	required devices.Link
	mig      partitioned
	spans    [256]spanMemo // answers of spanOf, see there
}

// everyDevice is the set of all devices of any host.
const everyDevice = ^uint64(0)

// amount is a request's demand on its nodes, or a node's part of the demand.
type amount struct {
	cpu    resource.Millicores
	cores  int
	memory resource.Bytes
	pages  resource.Bytes // in huge pages of the size asked for
}

// amounts are the free amounts of each domain.
type amounts [maxDomains]amount

func (a *amount) add(b *amount) {
	a.cpu += b.cpu
	a.cores += b.cores
	a.memory += b.memory
	a.pages += b.pages
}

func (a *amount) sub(b *amount) {
	a.cpu -= b.cpu
	a.cores -= b.cores
	a.memory -= b.memory
	a.pages -= b.pages
}

// covers reports whether a has all of b.
func (a *amount) covers(b *amount) bool {
	return a.cpu >= b.cpu && a.cores >= b.cores && a.memory >= b.memory && a.pages >= b.pages
}

// Assign chooses the devices, CPUs, memory and huge pages for req out of the resources
// that are free, as the package comment says, and reports whether there are any. It fills dst,
// whose slices it reuses; on false dst is empty. f is not changed. In the
// steady state nothing is allocated on the heap.
func (h *Host) Assign(f *Free, req resource.Request, dst *resource.Assignment) bool {
	dst.Reset()
	var s search
	if !s.start(h, f, &req, everyDevice) {
		return false
	}
	var gpus uint64
	ok := true
	switch {
	case req.MIG > 0:
		gpus, ok = s.chooseMIG()
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
// for (one for a share). For MIG instances they are the devices that these come
// from, at least one from each. It reports false where they are not free, do
// not satisfy req or are listed twice.
func (h *Host) Pinned(f *Free, req resource.Request, gpus []int, dst *resource.Assignment) bool {
	dst.Reset()
	h.own(f)
	set, ok := h.setOf(gpus)
	return ok && h.pinned(f, &req, set, dst)
}

// pinned is Pinned for a set of devices that exist.
func (h *Host) pinned(f *Free, req *resource.Request, set uint64, dst *resource.Assignment) bool {
	var s search
	return s.start(h, f, req, set) && set == s.usable && pinnable(req, set) && h.connected(set, s.required) && s.finish(set, dst)
}

// pinnable reports whether a request can touch exactly the devices of a set.
func pinnable(req *resource.Request, set uint64) bool {
	n := bits.OnesCount64(set)
	if req.MIG > 0 {
		return n >= 1 && n <= req.MIG
	}
	return n == wanted(req)
}

// wanted is the number of devices that req takes whole or in part, 0 for MIG
// instances.
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

// start gathers the free resources, of the devices in only, and reports whether req
// is valid and there is enough of each resource by itself.
func (s *search) start(h *Host, f *Free, req *resource.Request, only uint64) bool {
	h.own(f)
	if req.Validate() != nil || !h.HasRoomForCounts(f, req) {
		return false
	}
	s.h, s.f, s.req, s.only = h, f, *req, only
	s.want = amount{cpu: req.CPU, cores: req.Cores, memory: req.Memory, pages: req.Hugepages}
	size := -1
	if req.Hugepages > 0 {
		size = h.pages.size(req.HugepageSize)
	}
	var sum amount
	for i := range h.domains {
		have := &s.have[i]
		have.cpu, have.cores = f.domainMilli[i], int(f.domainCores[i])
		if n := h.domains[i].node; n >= 0 {
			have.memory = f.Memory[n]
			if size >= 0 {
				have.pages = f.Hugepages[n*len(h.pages.sizes)+size]
			}
		}
		sum.add(have)
	}
	if !sum.covers(&s.want) || !h.leavesWithheld(f, req) {
		return false
	}
	s.required = requiredLink(req.Link)
	if !s.gatherGPUs() {
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

// gatherGPUs finds the devices that are idle and those usable for the request,
// and reports whether these are enough.
func (s *search) gatherGPUs() bool {
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
	s.spare = s.idle
	for rest := s.h.partitions.devices &^ s.f.Unhealthy; rest != 0; rest &= rest - 1 {
		if i := bits.TrailingZeros64(rest); s.f.MIG[i] != 0 {
			s.spare |= 1 << i
		}
	}
	if s.req.MIG > 0 {
		s.usable = 0
		return s.gatherMIG() >= s.req.MIG
	}
	s.usable &= s.only &^ s.f.Unhealthy & s.h.matching(&s.req)
	return bits.OnesCount64(s.usable) >= wanted(&s.req)
}

// matching returns the devices of the model and memory asked for, with any
// part of them free.
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

// finish chooses nodes, CPUs, memory and huge pages for the devices chosen and
// writes the assignment, unless the policy allows no such nodes.
func (s *search) finish(gpus uint64, dst *resource.Assignment) bool {
	nodes, ok := s.chooseNodes(s.h.domainsOf(gpus))
	if !ok || bits.OnesCount64(nodes) > s.limit {
		return false
	}
	var list [maxDomains]int8
	order, near := s.orderNodes(nodes, gpus, list[:0])
	s.pickCPUs(order, near, dst)
	s.pickCores(order, near, dst)
	s.pickMemory(order, dst)
	s.pickPages(order, dst)
	s.pickCounts(dst)
	if s.req.MIG > 0 {
		s.pickMIG(gpus, dst)
		return true
	}
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
