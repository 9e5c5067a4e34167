package fit

import (
	"fmt"
	"math/bits"

	"github.com/musterd/muster/resource"
)

// This file judges an assignment that another program made: a leader trusts no
// agent's vote before Satisfies has accepted it.

// Mismatch is a difference between an assignment and its request.
type Mismatch struct {
	// Field of the assignment: "cpus", "memory", "hugepages", "gpus", "mig",
	// "counts" or "numa".
	Field  string
	Detail string // with the numbers
	// OfHost: the request alone does not contradict the assignment, but the host
	// does. An assignment of an earlier state of the hardware looks alike.
	OfHost bool
	// OfPolicy: the amounts are right, the NUMA policy or the links are not met.
	// Another version of this package may judge those otherwise.
	OfPolicy bool
}

func (m *Mismatch) Error() string { return m.Field + ": " + m.Detail }

// Satisfies reports whether an assignment is exactly the demand of a request on this
// host: each amount equal to the request's; CPUs, NUMA nodes, devices and
// instances that the host hands out, each once, in the order that
// resource.Assignment wants; devices of the model, memory and links asked for;
// whole cores with all their threads; one NUMA node where the policy wants one.
// It looks neither at the free resources, nor whether a restricted policy could have
// been served by fewer nodes. The error is a *Mismatch. It accepts all that
// Assign and Pinned produce.
func (h *Host) Satisfies(req resource.Request, a resource.Assignment) error {
	for _, check := range [...]func(*resource.Request, *resource.Assignment) *Mismatch{
		amountsDiffer, countsDiffer, h.outsideHost, h.coresDiffer, h.devicesDiffer, h.nodesDiffer,
	} {
		if m := check(&req, &a); m != nil {
			return m
		}
	}
	return nil
}

// amountsDiffer compares the amounts, for which no host is needed.
func amountsDiffer(req *resource.Request, a *resource.Assignment) *Mismatch {
	var cpu resource.Millicores
	for _, g := range a.CPUs {
		if g.Milli < 1 || g.Milli > resource.WholeCPU {
			return &Mismatch{Field: "cpus", Detail: fmt.Sprintf("cpu %d: %d millicores are outside 1..%d", g.ID, g.Milli, resource.WholeCPU)}
		}
		cpu += g.Milli
	}
	switch {
	case req.Cores == 0 && cpu != req.CPU:
		return &Mismatch{Field: "cpus", Detail: fmt.Sprintf("%d millicores on %d CPUs, want %d", cpu, len(a.CPUs), req.CPU)}
	case req.Cores > 0 && (len(a.CPUs) < req.Cores || cpu != resource.Millicores(len(a.CPUs))*resource.WholeCPU):
		return &Mismatch{Field: "cpus", Detail: fmt.Sprintf("%d millicores on %d CPUs, want %d whole cores", cpu, len(a.CPUs), req.Cores)}
	}
	left := req.Memory
	for _, g := range a.Memory {
		if g.Bytes < 1 || g.Bytes > left {
			return &Mismatch{Field: "memory", Detail: fmt.Sprintf("node %d: %d bytes, want 1..%d of the %d asked for", g.Node, g.Bytes, left, req.Memory)}
		}
		left -= g.Bytes
	}
	if left > 0 {
		return &Mismatch{Field: "memory", Detail: fmt.Sprintf("%d bytes, want %d", req.Memory-left, req.Memory)}
	}
	return pagesDiffer(req, a)
}

// pagesDiffer is amountsDiffer for huge pages and devices.
func pagesDiffer(req *resource.Request, a *resource.Assignment) *Mismatch {
	left := req.Hugepages
	for _, g := range a.Hugepages {
		if g.Size != req.HugepageSize || g.Bytes < 1 || g.Bytes > left {
			return &Mismatch{Field: "hugepages", Detail: fmt.Sprintf("node %d: %d bytes in pages of %d, want 1..%d of the %d asked for in pages of %d",
				g.Node, g.Bytes, g.Size, left, req.Hugepages, req.HugepageSize)}
		}
		left -= g.Bytes
	}
	if left > 0 {
		return &Mismatch{Field: "hugepages", Detail: fmt.Sprintf("%d bytes, want %d", req.Hugepages-left, req.Hugepages)}
	}
	if len(a.GPUs) != wanted(req) {
		return &Mismatch{Field: "gpus", Detail: fmt.Sprintf("%d devices, want %d", len(a.GPUs), wanted(req))}
	}
	share := resource.WholeDevice
	if req.GPUShare > 0 {
		share = req.GPUShare
	}
	for _, g := range a.GPUs {
		if g.Milli != share {
			return &Mismatch{Field: "gpus", Detail: fmt.Sprintf("%d milli of GPU %d, want %d", g.Milli, g.Index, share)}
		}
	}
	if len(a.MIG) != req.MIG {
		return &Mismatch{Field: "mig", Detail: fmt.Sprintf("%d instances, want %d", len(a.MIG), req.MIG)}
	}
	for _, g := range a.MIG {
		if g.Profile != req.MIGProfile {
			return &Mismatch{Field: "mig", Detail: fmt.Sprintf("instance %d of GPU %d is of profile %.32q, want %q", g.Instance, g.GPU, g.Profile, req.MIGProfile)}
		}
	}
	return nil
}

// outsideHost finds entries that the host does not have or does not hand out,
// and entries that are listed twice.
func (h *Host) outsideHost(_ *resource.Request, a *resource.Assignment) *Mismatch {
	if err := h.wellFormed(*a); err != nil {
		return &Mismatch{Field: "assignment", Detail: err.Error(), OfHost: true}
	}
	return nil
}

// coresDiffer counts the physical cores of a request for whole ones. The CPUs
// exist and are whole.
func (h *Host) coresDiffer(req *resource.Request, a *resource.Assignment) *Mismatch {
	if req.Cores == 0 {
		return nil
	}
	threads := make(map[int32]int32, req.Cores)
	for _, g := range a.CPUs {
		threads[h.coreOf[h.position[g.ID]]]++
	}
	for _, g := range a.CPUs {
		at := h.coreOf[h.position[g.ID]]
		if have, want := threads[at], h.cores[at].full; have != want {
			return &Mismatch{Field: "cpus", Detail: fmt.Sprintf("%d threads of the core of cpu %d, want all %d", have, g.ID, want), OfHost: true}
		}
	}
	if len(threads) != req.Cores {
		return &Mismatch{Field: "cpus", Detail: fmt.Sprintf("%d whole cores, want %d", len(threads), req.Cores), OfHost: true}
	}
	return nil
}

// devicesDiffer compares devices and instances that exist with the model, the
// memory and the links asked for.
func (h *Host) devicesDiffer(req *resource.Request, a *resource.Assignment) *Mismatch {
	var set uint64
	for _, g := range a.GPUs {
		set |= 1 << g.Index
	}
	if wrong := set &^ h.matching(req); wrong != 0 {
		i := bits.TrailingZeros64(wrong)
		return &Mismatch{Field: "gpus", Detail: h.notOf(req, i, h.inventory.Devices[i].Memory), OfHost: true}
	}
	if !h.connected(set, requiredLink(req.Link)) {
		return &Mismatch{Field: "gpus", Detail: fmt.Sprintf("not every pair of the %d devices has the link %s", len(a.GPUs), req.Link), OfHost: true, OfPolicy: true}
	}
	for i := range a.MIG {
		g := &a.MIG[i]
		if h.matchingMIG(req, h.partitions.profile(req.MIGProfile), g.GPU, 1<<g.Instance) == 0 {
			return &Mismatch{Field: "mig", Detail: h.notOf(req, g.GPU, h.inventory.Devices[g.GPU].MIG.Instances[g.Instance].Memory), OfHost: true}
		}
	}
	return nil
}

func (h *Host) notOf(req *resource.Request, gpu int, memory resource.Bytes) string {
	return fmt.Sprintf("GPU %d is %.64q with %d bytes, want model %q and at least %d bytes", gpu, h.inventory.Devices[gpu].Model, memory, req.GPUModel, req.GPUMemory)
}

// nodesDiffer finds an assignment of several NUMA nodes where the policy wants one.
// CPUs whose node the host does not report count as a node of their own, devices
// without a node as none.
func (h *Host) nodesDiffer(req *resource.Request, a *resource.Assignment) *Mismatch {
	if req.NUMA != resource.NUMASingleNode {
		return nil
	}
	var gpus uint64
	for _, g := range a.GPUs {
		gpus |= 1 << g.Index
	}
	for _, g := range a.MIG {
		gpus |= 1 << g.GPU
	}
	nodes := h.domainsOf(gpus)
	for _, g := range a.CPUs {
		nodes |= 1 << h.cores[h.coreOf[h.position[g.ID]]].domain
	}
	for _, g := range a.Memory {
		nodes |= 1 << h.domainOf[h.topology.NodeIndex(g.Node)]
	}
	for _, g := range a.Hugepages {
		nodes |= 1 << h.domainOf[h.topology.NodeIndex(g.Node)]
	}
	if n := bits.OnesCount64(nodes); n > 1 {
		return &Mismatch{Field: "numa", Detail: fmt.Sprintf("%d NUMA nodes, want 1 for %s", n, req.NUMA), OfHost: true, OfPolicy: true}
	}
	return nil
}

// Disjoint reports whether the empty host has all of several assignments at
// once. The error is a *Mismatch.
func (h *Host) Disjoint(assignments ...resource.Assignment) error {
	if len(assignments) < 2 {
		return nil
	}
	f := h.NewFree()
	for _, a := range assignments {
		if err := h.Take(f, a); err != nil {
			return &Mismatch{Field: "assignment", Detail: "given to several members: " + err.Error(), OfHost: true}
		}
	}
	return nil
}
