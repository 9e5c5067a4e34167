package fit

import (
	"slices"

	"github.com/musterd/muster/resource"
)

// This file keeps a part of a host's amounts from new work. The part is of no particular
// CPUs, nodes or instances: an assignment has to leave at least this
// amount free on the host as a whole. Granted amounts stay granted, so less than the
// withheld amount may be free for a while.

// Withheld are the amounts that new work leaves free. The zero value withholds nothing.
type Withheld struct {
	CPU    resource.Millicores
	Memory resource.Bytes
	// Rest has the amounts of huge pages (bytes), MIG instances and counted resources,
	// by their names.
	Rest resource.Counts
	// Unapproved: a part of the amounts waits for an operator's approval.
	Unapproved bool
}

// WithheldBeyond is the withheld part with which at most these amounts, by their names in
// most, are handed out. A resource that most does not name is not withheld; whole
// devices are Free.Unhealthy.
func (h *Host) WithheldBeyond(most resource.Vector) Withheld {
	var w Withheld
	full := h.Allocatable()
	if limit, limited := most[resource.CPU]; limited {
		w.CPU = resource.Millicores(max(0, full[resource.CPU]-limit))
	}
	if limit, limited := most[resource.Memory]; limited {
		w.Memory = resource.Bytes(max(0, full[resource.Memory]-limit))
	}
	rest := resource.Vector{}
	for name, limit := range most {
		if over := full[name] - limit; over > 0 && name != resource.CPU && name != resource.Memory && name != resource.GPU {
			rest[name] = over
		}
	}
	w.Rest = resource.CountsOf(rest)
	return w
}

// open is a free amount of huge pages, MIG instances or a counted resource, less the
// withheld part.
func (f *Free) open(name resource.Name, free int64) int64 {
	if f.Withheld.Rest == "" {
		return free
	}
	return max(0, free-f.Withheld.Rest.Of(name))
}

// OpenCPU is the free amount of CPU that is not withheld.
func (f *Free) OpenCPU() resource.Millicores {
	var free resource.Millicores
	for _, m := range f.domainMilli {
		free += m
	}
	return max(0, free-f.Withheld.CPU)
}

// OpenMemory is the free amount of memory that is not withheld.
func (f *Free) OpenMemory() resource.Bytes {
	var free resource.Bytes
	for _, m := range f.Memory {
		free += m
	}
	return max(0, free-f.Withheld.Memory)
}

// leavesWithheld reports whether a request leaves the withheld part free. A whole core
// counts as the CPUs of the largest core of the host, so that the choice of cores does
// not matter.
func (h *Host) leavesWithheld(f *Free, req *resource.Request) bool {
	if f.Withheld == (Withheld{}) {
		return true
	}
	cpu, memory := h.asked(req)
	return (cpu == 0 || cpu <= f.OpenCPU()) && (memory == 0 || memory <= f.OpenMemory()) &&
		(req.Hugepages == 0 || req.Hugepages <= h.FreeHugepages(f, req.HugepageSize)) && (req.MIG == 0 || req.MIG <= h.FreeMIG(f, req.MIGProfile))
}

// openAmount is the amount still to be handed out of huge pages, MIG instances or a
// counted resource.
func (f *Free) openAmount(h *Host, name resource.Name) int64 {
	if at := slices.Index(h.pages.names, name); at >= 0 {
		return int64(h.FreeHugepages(f, h.pages.sizes[at]))
	}
	if at := slices.Index(h.partitions.names, name); at >= 0 {
		return int64(h.FreeMIG(f, h.partitions.profiles[at]))
	}
	return h.FreeCount(f, name)
}

// withheldDetail words the withheld amount of a resource.
func (f *Free) withheldDetail(name resource.Name) string {
	amount := f.Withheld.Rest.Of(name)
	switch name {
	case resource.CPU:
		amount = int64(f.Withheld.CPU)
	case resource.Memory:
		amount = int64(f.Withheld.Memory)
	}
	text := resource.FormatAmount(name, amount)
	if f.Withheld.Unapproved {
		return text + " of the node are withheld until an operator approves its growth"
	}
	return "an operator withholds " + text + " of the node"
}

// asked is the CPU, whole cores included, and the memory of a request.
func (h *Host) asked(req *resource.Request) (resource.Millicores, resource.Bytes) {
	cpu := req.CPU
	if req.Cores > 0 {
		threads := int32(0)
		for i := range h.cores {
			if c := &h.cores[i]; c.whole() {
				threads = max(threads, c.full)
			}
		}
		cpu += resource.Millicores(req.Cores) * resource.Millicores(threads) * resource.WholeCPU
	}
	return cpu, req.Memory
}

// explainWithheld finds the amounts of which too little is free beside the withheld part.
func (h *Host) explainWithheld(f *Free, req *resource.Request) []resource.Reason {
	var reasons []resource.Reason
	cpu, memory := h.asked(req)
	if have := f.OpenCPU(); cpu > have && f.Withheld.CPU > 0 {
		reasons = append(reasons, resource.Reason{
			Code: resource.ReasonInsufficient, Resource: resource.CPU, Want: int64(cpu), Have: int64(have), Detail: f.withheldDetail(resource.CPU),
		})
	}
	if have := f.OpenMemory(); memory > have && f.Withheld.Memory > 0 {
		reasons = append(reasons, resource.Reason{
			Code: resource.ReasonInsufficient, Resource: resource.Memory, Want: int64(memory), Have: int64(have), Detail: f.withheldDetail(resource.Memory),
		})
	}
	return reasons
}
