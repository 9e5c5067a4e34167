package fit

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/musterd/muster/resource"
)

// Explain returns why Assign says no, each binding constraint with its
// numbers; it is empty exactly where Assign succeeds. The detail of a NUMA
// refusal lists at most maxListed nodes.
func (h *Host) Explain(f *Free, req resource.Request) []resource.Reason {
	var a resource.Assignment
	if h.Assign(f, req, &a) {
		return nil
	}
	return h.explain(f, &req, "")
}

// ExplainPinned is Explain for Pinned.
func (h *Host) ExplainPinned(f *Free, req resource.Request, gpus []int) []resource.Reason {
	var a resource.Assignment
	if h.Pinned(f, req, gpus, &a) {
		return nil
	}
	invalid := func(format string, args ...any) []resource.Reason {
		return []resource.Reason{{Code: resource.ReasonInvalidRequest, Detail: fmt.Sprintf(format, args...)}}
	}
	if req.Validate() == nil {
		set, ok := h.setOf(gpus)
		if !ok {
			return invalid("pinned GPUs %v: want distinct indices below %d", gpus, len(h.inventory.Devices))
		}
		if len(gpus) != wanted(&req) {
			return invalid("pinned GPUs %v: the request wants %d", gpus, wanted(&req))
		}
		// Hide all other devices: then the question is Explain's.
		only := f.Clone()
		only.Unhealthy |= ^set
		return h.explain(only, &req, fmt.Sprintf("pinned to GPUs %v", gpus))
	}
	return h.explain(f, &req, "")
}

// maxListed bounds the nodes that a detail lists.
const maxListed = 8

// explain finds the reasons of a refusal that has happened. pinned tells of
// devices hidden as unhealthy, "" for none.
func (h *Host) explain(f *Free, req *resource.Request, pinned string) []resource.Reason {
	if err := req.Validate(); err != nil {
		return []resource.Reason{{Code: resource.ReasonInvalidRequest, Detail: err.Error()}}
	}
	var reasons []resource.Reason
	free := h.FreeVector(f)
	for _, r := range []resource.Reason{
		{Resource: resource.CPU, Want: int64(req.CPU), Have: free[resource.CPU]},
		{Resource: resource.Memory, Want: int64(req.Memory), Have: free[resource.Memory]},
	} {
		if r.Have < r.Want {
			r.Code = resource.ReasonInsufficient
			reasons = append(reasons, r)
		}
	}
	gpuReasons := h.explainGPUs(f, req, pinned)
	if reasons = append(reasons, gpuReasons...); len(reasons) > 0 {
		return reasons
	}
	return []resource.Reason{h.explainNUMA(f, req, pinned)}
}

// explainGPUs finds why there are not enough devices, or none so connected.
func (h *Host) explainGPUs(f *Free, req *resource.Request, pinned string) []resource.Reason {
	want := wanted(req)
	var s search
	s.h, s.f, s.req, s.required = h, f, *req, requiredLink(req.Link)
	s.gatherGPUs()
	usable := bits.OnesCount64(s.usable)
	if usable >= want {
		if h.linked(req, s.required, s.usable) {
			return nil
		}
		detail := fmt.Sprintf("%d GPUs with every pair connected by %s: %d are free, but no such %d", want, req.Link, usable, want)
		return []resource.Reason{{
			Code: resource.ReasonLink, Resource: resource.GPU, Want: int64(req.GPUMilli()),
			Have: int64(h.bestLinked(&s)) * int64(resource.WholeDevice), Detail: join(pinned, detail),
		}}
	}
	matching := h.matching(req)
	healthy := matching &^ f.Unhealthy
	r := resource.Reason{
		Code: resource.ReasonInsufficient, Resource: resource.GPU, Want: int64(req.GPUMilli()),
		Have: int64(usable) * int64(resource.WholeDevice),
	}
	var milli, largest resource.Milli
	for rest := healthy; rest != 0; rest &= rest - 1 {
		m := f.GPU[bits.TrailingZeros64(rest)]
		milli += m
		largest = max(largest, m)
	}
	if req.GPUShare > 0 {
		r.Have = int64(largest)
	}
	total := len(h.inventory.Devices)
	r.Detail = fmt.Sprintf("%d of %d GPUs match and are healthy, %d of them can take this request", bits.OnesCount64(healthy), total, usable)
	switch {
	case bits.OnesCount64(matching) < want && matching != h.whole:
		r.Code = resource.ReasonModel
		r.Detail = fmt.Sprintf("%d of %d GPUs are of model %q with at least %s", bits.OnesCount64(matching), total, req.GPUModel, resource.FormatBytes(req.GPUMemory))
		r.Have = int64(bits.OnesCount64(matching)) * int64(resource.WholeDevice)
	case milli >= req.GPUMilli():
		r.Code = resource.ReasonFragmented
		r.Detail = fmt.Sprintf("%d milli are free in all, in parts of devices", milli)
	case pinned == "" && bits.OnesCount64(s.idleIfHealthy()&matching) >= want:
		r.Code = resource.ReasonUnhealthy
		r.Detail = fmt.Sprintf("%d matching GPUs are unhealthy", bits.OnesCount64(matching&f.Unhealthy))
	}
	if mig := total - bits.OnesCount64(h.whole); mig > 0 {
		r.Detail += fmt.Sprintf("; %d in MIG mode", mig)
	}
	r.Detail = join(pinned, r.Detail)
	return []resource.Reason{r}
}

// idleIfHealthy returns the devices that have enough free, whatever their
// health.
func (s *search) idleIfHealthy() uint64 {
	least := resource.WholeDevice
	if s.req.GPUShare > 0 {
		least = s.req.GPUShare
	}
	var set uint64
	for i, m := range s.f.GPU {
		if m >= least {
			set |= 1 << i
		}
	}
	return set
}

// bestLinked is the most usable devices that are connected as required.
func (h *Host) bestLinked(s *search) int {
	smaller := s.req
	for smaller.GPUs = s.req.GPUs - 1; smaller.GPUs > 0; smaller.GPUs-- {
		if h.linked(&smaller, s.required, s.usable) {
			return smaller.GPUs
		}
	}
	return 0
}

// explainNUMA tells what a request that fits the host as a whole finds on its
// nodes.
func (h *Host) explainNUMA(f *Free, req *resource.Request, pinned string) resource.Reason {
	var s search
	s.start(h, f, req)
	relaxed := *req
	relaxed.NUMA = resource.NUMABestEffort
	var a resource.Assignment
	needs := "more"
	if h.Assign(f, relaxed, &a) {
		needs = fmt.Sprint(bits.OnesCount64(h.touched(a)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "policy %s allows %d nodes, what is free needs %s", req.NUMA, s.limit, needs)
	for i, d := range h.domains {
		if i == maxListed {
			fmt.Fprintf(&b, "; and %d more nodes", len(h.domains)-maxListed)
			break
		}
		name := "no node"
		if d.node >= 0 {
			name = fmt.Sprintf("node %d", h.topology.Nodes[d.node].ID)
		}
		fmt.Fprintf(&b, "; %s has %s cpu, %s memory, %d GPUs free", name, resource.FormatAmount(resource.CPU, int64(s.cpu[i])),
			resource.FormatBytes(s.memory[i]), bits.OnesCount64(s.usable&h.domainGPUs[i]))
	}
	return resource.Reason{Code: resource.ReasonNUMA, Detail: join(pinned, b.String())}
}

// touched returns the domains of an assignment.
func (h *Host) touched(a resource.Assignment) uint64 {
	var gpus, set uint64
	for _, g := range a.GPUs {
		gpus |= 1 << g.Index
	}
	for _, c := range a.CPUs {
		set |= 1 << h.cores[h.coreOf[h.position[c.ID]]].domain
	}
	for _, m := range a.Memory {
		set |= 1 << h.domainOf[h.topology.NodeIndex(m.Node)]
	}
	return set | h.domainsOf(gpus)
}

func join(prefix, detail string) string {
	if prefix == "" {
		return detail
	}
	return prefix + ": " + detail
}
