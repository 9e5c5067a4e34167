package resttest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// host is a node and what is free on it.
type host struct {
	Node
	unschedulable bool
	operator      map[string]string // operators' labels
	annotations   map[string]string
	taints        []api.Taint
	version       int // grows with each patch
	fenced        bool
	cpu           []resource.Millicores // free of each CPU
	memory        resource.Bytes
	gpu           []resource.Milli // free of each GPU
}

// labels are the host's own with the operators' over them.
func (h *host) labels() map[string]string {
	labels := maps.Clone(h.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, h.operator)
	return labels
}

// uuid is a GPU's, made from its place.
func (h *host) uuid(index int) string {
	var sum uint32
	for _, b := range []byte(h.Name) {
		sum = sum*31 + uint32(b)
	}
	return fmt.Sprintf("GPU-%08x-0000-4000-8000-%012x", sum, index)
}

func (h *host) numaOf(cpu int) int {
	if h.CPUs <= 8 {
		return 0
	}
	return cpu * 2 / h.CPUs
}

// fits reports what one member lacks on the host; nothing = it fits.
func (h *host) fits(r resource.Request, selector map[string]string) []resource.Reason {
	var reasons []resource.Reason
	if h.unschedulable {
		reasons = append(reasons, resource.Reason{Code: resource.ReasonCordoned})
	}
	for k, v := range selector {
		if h.labels()[k] != v {
			reasons = append(reasons, resource.Reason{Code: resource.ReasonNodeSelector, Detail: k + "=" + v})
		}
	}
	var cpu resource.Millicores
	for _, free := range h.cpu {
		cpu += free
	}
	short := func(name resource.Name, want, have int64) {
		if want > have {
			reasons = append(reasons, resource.Reason{Code: resource.ReasonInsufficient, Resource: name, Want: want, Have: have})
		}
	}
	short(resource.CPU, int64(r.CPU), int64(cpu))
	short(resource.Memory, int64(r.Memory), int64(h.memory))
	whole, most := resource.Milli(0), resource.Milli(0)
	for _, free := range h.gpu {
		if free == resource.WholeDevice {
			whole += free
		}
		most = max(most, free)
	}
	short(resource.GPU, int64(r.GPUs)*int64(resource.WholeDevice), int64(whole))
	short(resource.GPU, int64(r.GPUShare), int64(most))
	short(resource.Cores, int64(r.Cores), 0) // these hosts hand out CPUs, memory and GPUs alone
	short(resource.Hugepages(r.HugepageSize), int64(r.Hugepages), 0)
	short(resource.MIG(r.MIGProfile), int64(r.MIG), 0)
	slices.SortFunc(reasons, func(a, b resource.Reason) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Resource, b.Resource))
	})
	return reasons
}

// take grants one member that fits.
func (h *host) take(r resource.Request) resource.Assignment {
	var a resource.Assignment
	want := r.CPU
	for id := range h.cpu {
		got := min(want, h.cpu[id])
		if got > 0 {
			h.cpu[id] -= got
			want -= got
			a.CPUs = append(a.CPUs, resource.CPUGrant{ID: id, Milli: got})
		}
	}
	if r.Memory > 0 {
		node := 0
		if len(a.CPUs) > 0 {
			node = h.numaOf(a.CPUs[0].ID)
		}
		h.memory -= r.Memory
		a.Memory = []resource.MemoryGrant{{Node: node, Bytes: r.Memory}}
	}
	devices := r.GPUs
	for i := range h.gpu {
		switch {
		case devices > 0 && h.gpu[i] == resource.WholeDevice:
			h.gpu[i], devices = 0, devices-1
			a.GPUs = append(a.GPUs, resource.GPUGrant{Index: i, UUID: h.uuid(i), Milli: resource.WholeDevice})
		case len(a.GPUs) == 0 && r.GPUShare > 0 && h.gpu[i] >= r.GPUShare:
			h.gpu[i] -= r.GPUShare
			a.GPUs = append(a.GPUs, resource.GPUGrant{Index: i, UUID: h.uuid(i), Milli: r.GPUShare})
		}
	}
	return a
}

// give takes a grant back.
func (h *host) give(a resource.Assignment) {
	for _, g := range a.CPUs {
		h.cpu[g.ID] += g.Milli
	}
	for _, g := range a.Memory {
		h.memory += g.Bytes
	}
	for _, g := range a.GPUs {
		h.gpu[g.Index] += g.Milli
	}
}

// status shows a grant as the API does.
func (h *host) status(a resource.Assignment) *api.AssignmentStatus {
	s := &api.AssignmentStatus{CPUs: a.CPUSet().String()}
	for _, g := range a.CPUs {
		if n := h.numaOf(g.ID); !slices.Contains(s.NUMANodes, n) {
			s.NUMANodes = append(s.NUMANodes, n)
		}
	}
	for _, g := range a.Memory {
		s.Memory = append(s.Memory, api.MemoryStatus{Node: g.Node, Bytes: resource.FormatBytes(g.Bytes)})
	}
	for _, g := range a.GPUs {
		s.GPUs = append(s.GPUs, api.GPUStatus{Index: g.Index, UUID: g.UUID, Model: "Test GPU 40GB", Milli: g.Milli})
	}
	return s
}
