package fit

import (
	"math/bits"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// spanWhenEmpty is the least number of nodes that the request would need on
// the empty host, devices and links included. Beyond two of more than
// maxExactDomains it gives up: unlimited.
func (s *search) spanWhenEmpty() int {
	full := s.h.fullAmounts(s.req.HugepageSize)
	var instances [MaxGPUs]uint8
	if s.req.MIG > 0 {
		s.h.countMIG(&s.req, &instances)
	}
	matching := s.h.linkable(s.h.matching(&s.req), wanted(&s.req), s.required)
	if bits.OnesCount64(matching) < wanted(&s.req) {
		return 0
	}
	least, _ := full.fewest(s.h.everywhere, &s.want)
	for size := least; size <= len(s.h.domains); size++ {
		if size > 2 && len(s.h.domains) > maxExactDomains {
			return unlimited
		}
		for c := newCombinations(s.h.everywhere, size); ; {
			set, more := c.draw()
			if !more {
				break
			}
			if !full.holds(set, &s.want) {
				continue
			}
			switch gpus := s.h.gpusOf(set); {
			case s.req.MIG > 0:
				n := 0
				for rest := gpus & s.h.partitions.devices; rest != 0; rest &= rest - 1 {
					n += int(instances[bits.TrailingZeros64(rest)])
				}
				if n >= s.req.MIG {
					return size
				}
			case s.h.linked(&s.req, s.required, matching&gpus):
				return size
			}
		}
	}
	return 0
}

// fullAmounts are the amounts of each domain of the empty host.
func (h *Host) fullAmounts(pageSize resource.Bytes) amounts {
	var full amounts
	size := h.pages.size(pageSize)
	for i, d := range h.domains {
		full[i] = amount{cpu: h.fullCPU[i], cores: int(h.fullCores[i])}
		if d.node >= 0 {
			full[i].memory = h.fullMemory[d.node]
			if size >= 0 {
				full[i].pages = h.pages.full[d.node*len(h.pages.sizes)+size]
			}
		}
	}
	return full
}

// linked reports whether among has as many devices as the request wants,
// connected as it requires. On hosts of more than maxExact devices it asks the
// greedy search.
func (h *Host) linked(req *resource.Request, required devices.Link, among uint64) bool {
	want := wanted(req)
	switch {
	case bits.OnesCount64(among) < want:
		return false
	case want < 2 || required == devices.LinkNone:
		return true
	case h.links != nil:
		return h.links.connected(want, uint16(among), required)
	}
	if among = h.linkable(among, want, required); bits.OnesCount64(among) < want {
		return false
	}
	for rest := among; rest != 0; rest &= rest - 1 {
		if _, ok := h.grow(bits.TrailingZeros64(rest), want, among, required); ok {
			return true
		}
	}
	return false
}
