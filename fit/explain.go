package fit

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/musterd/muster/resource"
)

// Explain returns why Assign says no, each binding constraint with its
// numbers; it is empty exactly where Assign succeeds. The detail of a NUMA
// refusal lists at most maxListed nodes, that of an unknown MIG profile at most
// maxListed profiles.
func (h *Host) Explain(f *Free, req resource.Request) []resource.Reason {
	var a resource.Assignment
	if h.Assign(f, req, &a) {
		return nil
	}
	return h.explain(f, &req, pin{set: everyDevice})
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
	set, ok := h.setOf(gpus)
	switch {
	case req.Validate() != nil:
	case !ok:
		return invalid("pinned GPUs %v: want distinct indices below %d", gpus, len(h.inventory.Devices))
	case !pinnable(&req, set) && req.MIG > 0:
		return invalid("pinned GPUs %v: the request wants %d MIG instances, at least one from each", gpus, req.MIG)
	case !pinnable(&req, set):
		return invalid("pinned GPUs %v: the request wants %d", gpus, wanted(&req))
	}
	return h.explain(f, &req, pin{set: set, text: fmt.Sprintf("pinned to GPUs %v", gpus)})
}

// maxListed bounds the nodes and profiles that a detail lists.
const maxListed = 8

// pin is the devices that a question is about; text is "" for all of them.
type pin struct {
	set  uint64
	text string
}

// join puts the pin before a detail.
func (p pin) join(detail string) string {
	if p.text == "" {
		return detail
	}
	return p.text + ": " + detail
}

// explain finds the reasons of a refusal that has happened.
func (h *Host) explain(f *Free, req *resource.Request, p pin) []resource.Reason {
	if err := req.Validate(); err != nil {
		return []resource.Reason{{Code: resource.ReasonInvalidRequest, Detail: err.Error()}}
	}
	reasons := h.explainAmounts(f, req)
	if req.MIG > 0 {
		reasons = append(reasons, h.explainMIG(f, req, p)...)
	} else {
		reasons = append(reasons, h.explainGPUs(f, req, p)...)
	}
	if len(reasons) > 0 {
		return reasons
	}
	return []resource.Reason{h.explainNUMA(f, req, p)}
}

// explainAmounts finds the shortage of CPUs, memory and huge pages on the
// host as a whole.
func (h *Host) explainAmounts(f *Free, req *resource.Request) []resource.Reason {
	var cpu, memory int64
	for d, milli := range f.domainMilli {
		cpu += int64(milli)
		if n := h.domains[d].node; n >= 0 {
			memory += int64(f.Memory[n])
		}
	}
	reasons := h.explainWithheld(f, req)
	short := func(r resource.Reason) {
		said := slices.ContainsFunc(reasons, func(o resource.Reason) bool { return o.Resource == r.Resource })
		if r.Have < r.Want && !said {
			reasons = append(reasons, r)
		}
	}
	short(resource.Reason{Code: resource.ReasonInsufficient, Resource: resource.CPU, Want: int64(req.CPU), Have: cpu})
	short(h.explainCores(f, req, resource.Millicores(cpu)))
	short(resource.Reason{Code: resource.ReasonInsufficient, Resource: resource.Memory, Want: int64(req.Memory), Have: memory})
	if req.Hugepages > 0 {
		short(h.explainPages(f, req))
	}
	return append(reasons, h.explainCounts(f, req)...)
}

// explainCores counts the whole cores that are free; cpu is the free amount in
// all.
func (h *Host) explainCores(f *Free, req *resource.Request, cpu resource.Millicores) resource.Reason {
	r := resource.Reason{
		Code: resource.ReasonInsufficient, Resource: resource.Cores, Want: int64(req.Cores), Have: int64(h.FreeCores(f)),
	}
	whole, threads := 0, int32(0)
	for i := range h.cores {
		if c := &h.cores[i]; c.whole() {
			whole++
			threads = max(threads, c.full)
		}
	}
	r.Detail = fmt.Sprintf("%d of the host's %d whole cores are free", r.Have, whole)
	if whole >= req.Cores && cpu >= resource.Millicores(req.Cores)*resource.Millicores(threads)*resource.WholeCPU {
		r.Code = resource.ReasonFragmented
		r.Detail = fmt.Sprintf("%d millicores are free in all, partly in cores that others use; %s", cpu, r.Detail)
	}
	return r
}

// explainPages sums the free huge pages of the size asked for.
func (h *Host) explainPages(f *Free, req *resource.Request) resource.Reason {
	r := resource.Reason{
		Code: resource.ReasonInsufficient, Resource: resource.Hugepages(req.HugepageSize),
		Want: int64(req.Hugepages), Have: int64(h.FreeHugepages(f, req.HugepageSize)),
	}
	switch name := r.Resource; {
	case f.Withheld.Rest.Of(name) > 0:
		r.Detail = f.withheldDetail(name)
	case h.pages.size(req.HugepageSize) >= 0:
	case len(h.pages.sizes) == 0:
		r.Detail = "this host has no huge pages"
	default:
		var sizes []string
		for _, size := range h.pages.sizes {
			sizes = append(sizes, resource.FormatBytes(size))
		}
		r.Detail = "this host has huge pages of " + strings.Join(sizes, ", ")
	}
	return r
}

// explainGPUs finds why there are not enough devices, or none so connected.
func (h *Host) explainGPUs(f *Free, req *resource.Request, p pin) []resource.Reason {
	want := wanted(req)
	var s search
	s.h, s.f, s.req, s.required, s.only = h, f, *req, requiredLink(req.Link), p.set
	enough := s.gatherGPUs()
	usable := bits.OnesCount64(s.usable)
	if enough {
		if h.linked(req, s.required, s.usable) {
			return nil
		}
		detail := fmt.Sprintf("%d GPUs with every pair connected by %s: %d are free, but no such %d", want, req.Link, usable, want)
		return []resource.Reason{{
			Code: resource.ReasonLink, Resource: resource.GPU, Want: int64(req.GPUMilli()),
			Have: int64(h.bestLinked(&s)) * int64(resource.WholeDevice), Detail: p.join(detail),
		}}
	}
	matching := h.matching(req) & p.set
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
	case bits.OnesCount64(matching) < want && matching != h.whole&p.set:
		r.Code = resource.ReasonModel
		r.Detail = fmt.Sprintf("%d of %d GPUs are %s", bits.OnesCount64(matching), total, constraint(req))
		r.Have = int64(bits.OnesCount64(matching)) * int64(resource.WholeDevice)
	case milli >= req.GPUMilli():
		r.Code = resource.ReasonFragmented
		r.Detail = fmt.Sprintf("%d milli are free in all, in parts of devices", milli)
	case bits.OnesCount64(s.idleIfHealthy()&matching) >= want:
		r.Code = resource.ReasonUnhealthy
		r.Detail = fmt.Sprintf("%d matching GPUs are unhealthy", bits.OnesCount64(matching&f.Unhealthy))
		if f.Withheld.Unapproved {
			r.Code = resource.ReasonInsufficient
			r.Detail += ", or withheld until an operator approves the node's growth"
		}
	}
	if mig := total - bits.OnesCount64(h.whole); mig > 0 {
		r.Detail += fmt.Sprintf("; %d in MIG mode", mig)
	}
	r.Detail = p.join(r.Detail)
	return []resource.Reason{r}
}

// constraint words the properties that a request wants of its devices.
func constraint(req *resource.Request) string {
	return fmt.Sprintf("of model %q with at least %s", req.GPUModel, resource.FormatBytes(req.GPUMemory))
}

// idleIfHealthy returns the devices that have enough free, of any
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
