package fit

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/musterd/muster/resource"
)

// explainMIG finds why there are not enough instances of the profile.
func (h *Host) explainMIG(f *Free, req *resource.Request, p pin) []resource.Reason {
	var s search
	s.h, s.f, s.req, s.only = h, f, *req, p.set
	r := resource.Reason{Code: resource.ReasonInsufficient, Resource: resource.MIG(req.MIGProfile), Want: int64(req.MIG)}
	r.Have = int64(s.gatherMIG())
	if open := int64(h.FreeMIG(f, req.MIGProfile)); open < r.Want && r.Have >= r.Want {
		r.Have, r.Detail = open, p.join(f.withheldDetail(r.Resource))
		return []resource.Reason{r}
	}
	if r.Have >= r.Want {
		return h.explainIdlePins(&s, p)
	}
	all := h.migTotals(f, req, p.set)
	switch {
	case s.mig.profile < 0:
		r.Code = resource.ReasonModel
		r.Detail = "no GPU has instances of this profile; " + h.listProfiles()
	case all.matching < req.MIG && all.matching < all.profile:
		r.Code, r.Have = resource.ReasonModel, int64(all.matching)
		r.Detail = fmt.Sprintf("%d of %d such instances are %s", all.matching, all.profile, constraint(req))
	case all.free >= req.MIG:
		r.Code = resource.ReasonUnhealthy
		r.Detail = fmt.Sprintf("%d free instances are on unhealthy GPUs", all.free-int(r.Have))
	default:
		r.Detail = fmt.Sprintf("%d of %d such instances are free on healthy GPUs", r.Have, all.matching)
	}
	r.Detail = p.join(r.Detail)
	return []resource.Reason{r}
}

// explainIdlePins finds pinned devices that cannot give an instance, though
// all of them together have enough.
func (h *Host) explainIdlePins(s *search, p pin) []resource.Reason {
	if p.text == "" || s.usable == p.set {
		return nil
	}
	return []resource.Reason{{
		Code: resource.ReasonInsufficient, Resource: resource.MIG(s.req.MIGProfile),
		Want: int64(bits.OnesCount64(p.set)), Have: int64(bits.OnesCount64(s.usable)),
		Detail: p.join(fmt.Sprintf("each must give an instance, GPU %d has none free", bits.TrailingZeros64(p.set&^s.usable))),
	}}
}

// migTotals counts the instances of a profile.
type migTotals struct {
	profile  int // all of the profile
	matching int // of a device and size that the request accepts
	free     int // of these, those that are free, of any health
}

func (h *Host) migTotals(f *Free, req *resource.Request, among uint64) migTotals {
	var t migTotals
	profile := h.partitions.profile(req.MIGProfile)
	if profile < 0 {
		return t
	}
	for rest := h.partitions.devices & among; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		t.profile += bits.OnesCount16(h.partitions.of[profile][i])
		matching := h.matchingMIG(req, profile, i, h.partitions.full[i])
		t.matching += bits.OnesCount16(matching)
		t.free += bits.OnesCount16(matching & f.MIG[i])
	}
	return t
}

// listProfiles names the host's profiles and how many instances each has.
func (h *Host) listProfiles() string {
	if len(h.partitions.profiles) == 0 {
		return "this host has no MIG instances"
	}
	var list []string
	for at, profile := range h.partitions.profiles {
		if at == maxListed {
			list = append(list, fmt.Sprintf("and %d more", len(h.partitions.profiles)-maxListed))
			break
		}
		n := 0
		for _, instances := range h.partitions.of[at] {
			n += bits.OnesCount16(instances)
		}
		list = append(list, fmt.Sprintf("%s (%d)", profile, n))
	}
	return "this host has " + strings.Join(list, ", ")
}
