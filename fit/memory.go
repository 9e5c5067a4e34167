package fit

import "github.com/musterd/muster/resource"

// parts is how many bytes are taken from each domain.
type parts [maxDomains]resource.Bytes

// pickMemory appends the ordinary memory of the request to dst.
func (s *search) pickMemory(order []int8, dst *resource.Assignment) {
	if s.req.Memory == 0 {
		return
	}
	var free, take parts
	for _, d := range order {
		free[d] = s.have[d].memory
	}
	take.fill(&free, order, s.req.Memory)
	for d, bytes := range take[:len(s.h.domains)] {
		if bytes > 0 {
			dst.Memory = append(dst.Memory, resource.MemoryGrant{Node: s.h.nodeID(d), Bytes: bytes})
		}
	}
}

// pickPages appends the huge pages of the request to dst.
func (s *search) pickPages(order []int8, dst *resource.Assignment) {
	if s.req.Hugepages == 0 {
		return
	}
	var free, take parts
	for _, d := range order {
		free[d] = s.have[d].pages
	}
	take.fill(&free, order, s.req.Hugepages)
	for d, bytes := range take[:len(s.h.domains)] {
		if bytes > 0 {
			dst.Hugepages = append(dst.Hugepages, resource.HugepageGrant{Node: s.h.nodeID(d), Size: s.req.HugepageSize, Bytes: bytes})
		}
	}
}

// fill takes an amount, which the domains of order have together, from the
// first that has all of it, else from those with the most free. Whole pages
// stay whole: the amount and the free memory are multiples of their size.
func (p *parts) fill(free *parts, order []int8, left resource.Bytes) {
	for _, d := range order {
		if free[d] >= left {
			p[d] = left
			return
		}
	}
	for left > 0 {
		most := order[0]
		for _, d := range order {
			if p[d] == 0 && (p[most] > 0 || free[d] > free[most]) {
				most = d
			}
		}
		p[most] = min(left, free[most])
		left -= p[most]
	}
}

// nodeID is the kernel's number of a domain that is a node.
func (h *Host) nodeID(domain int) int { return h.topology.Nodes[h.domains[domain].node].ID }
