package fit

import (
	"fmt"

	"github.com/musterd/muster/resource"
)

// This file keeps a part of a host's CPUs and memory from new work. The part is an
// amount, of no particular CPUs or nodes: an assignment has to leave at least this
// amount free on the host as a whole. Granted amounts stay granted, so less than the
// withheld amount may be free for a while.

// Withheld is an amount of CPUs and memory that new work leaves free. The zero value
// withholds nothing.
type Withheld struct {
	CPU    resource.Millicores
	Memory resource.Bytes
}

// WithheldBeyond is the withheld part with which at most these amounts of CPU and memory,
// by their names in most, are handed out. A resource that most does not name is not
// withheld.
func (h *Host) WithheldBeyond(most resource.Vector) Withheld {
	var w Withheld
	full := h.Allocatable()
	if limit, limited := most[resource.CPU]; limited {
		w.CPU = resource.Millicores(max(0, full[resource.CPU]-limit))
	}
	if limit, limited := most[resource.Memory]; limited {
		w.Memory = resource.Bytes(max(0, full[resource.Memory]-limit))
	}
	return w
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
	return (cpu == 0 || cpu <= f.OpenCPU()) && (memory == 0 || memory <= f.OpenMemory())
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
			Code: resource.ReasonInsufficient, Resource: resource.CPU, Want: int64(cpu), Have: int64(have),
			Detail: fmt.Sprintf("an operator withholds %s of the node", resource.FormatAmount(resource.CPU, int64(f.Withheld.CPU))),
		})
	}
	if have := f.OpenMemory(); memory > have && f.Withheld.Memory > 0 {
		reasons = append(reasons, resource.Reason{
			Code: resource.ReasonInsufficient, Resource: resource.Memory, Want: int64(memory), Have: int64(have),
			Detail: fmt.Sprintf("an operator withholds %s of the node", resource.FormatBytes(f.Withheld.Memory)),
		})
	}
	return reasons
}
