package fit

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/musterd/muster/resource"
)

// explainNUMA describes the shortages of a request that fits the host as a whole on its
// nodes.
func (h *Host) explainNUMA(f *Free, req *resource.Request, p pin) resource.Reason {
	var s search
	s.start(h, f, req, p.set)
	relaxed := *req
	relaxed.NUMA = resource.NUMABestEffort
	var a resource.Assignment
	var fits bool
	if p.text == "" {
		fits = h.Assign(f, relaxed, &a)
	} else {
		fits = h.pinned(f, &relaxed, p.set, &a)
	}
	needs := "more"
	if fits {
		needs = fmt.Sprint(bits.OnesCount64(h.touched(&a)))
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
		fmt.Fprintf(&b, "; %s has %s free", name, s.onDomain(i))
	}
	return resource.Reason{Code: resource.ReasonNUMA, Detail: p.join(b.String())}
}

// onDomain lists the free amounts of one domain: those that every request sees, and of
// the rest those that this request asks for.
func (s *search) onDomain(domain int) string {
	have := &s.have[domain]
	list := []string{
		resource.FormatAmount(resource.CPU, int64(have.cpu)) + " cpu",
		resource.FormatBytes(have.memory) + " memory",
	}
	if s.req.Cores > 0 {
		list = append(list, fmt.Sprintf("%d whole cores", have.cores))
	}
	if s.req.Hugepages > 0 {
		list = append(list, fmt.Sprintf("%s in %s pages", resource.FormatBytes(have.pages), resource.FormatBytes(s.req.HugepageSize)))
	}
	gpus := s.usable & s.h.domainGPUs[domain]
	if s.req.MIG == 0 {
		return strings.Join(append(list, fmt.Sprintf("%d GPUs", bits.OnesCount64(gpus))), ", ")
	}
	n := 0
	for ; gpus != 0; gpus &= gpus - 1 {
		n += int(s.mig.devices[bits.TrailingZeros64(gpus)].count)
	}
	return strings.Join(append(list, fmt.Sprintf("%d %s instances", n, s.req.MIGProfile)), ", ")
}

// touched returns the domains of an assignment.
func (h *Host) touched(a *resource.Assignment) uint64 {
	var gpus, set uint64
	for _, g := range a.GPUs {
		gpus |= 1 << g.Index
	}
	for _, g := range a.MIG {
		gpus |= 1 << g.GPU
	}
	for _, c := range a.CPUs {
		set |= 1 << h.cores[h.coreOf[h.position[c.ID]]].domain
	}
	for _, m := range a.Memory {
		set |= 1 << h.domainOf[h.topology.NodeIndex(m.Node)]
	}
	for _, m := range a.Hugepages {
		set |= 1 << h.domainOf[h.topology.NodeIndex(m.Node)]
	}
	return set | h.domainsOf(gpus)
}
