package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/musterd/muster/resource"
)

// This file hands out counted resources: a host has an amount of each, and gives a
// member a part of the amount. Of pods, where a host has them, each member takes one
// without asking.

// countTable is the counted resources of a host. It is immutable.
type countTable struct {
	names []resource.Name // ascending
	full  []int64         // as Free.Counts
	pods  int             // position of pods, -1 for none
}

func newCountTable(amounts resource.Vector) (countTable, error) {
	t := countTable{pods: -1}
	if len(amounts) > resource.MaxCounts {
		return t, fmt.Errorf("fit: %d counted resources, at most %d are supported", len(amounts), resource.MaxCounts)
	}
	for _, name := range amounts.Names() {
		if err := resource.CheckCount(name, amounts[name]); err != nil {
			return t, fmt.Errorf("fit: %w", err)
		}
		if name == resource.Pods {
			t.pods = len(t.names)
		}
		t.names, t.full = append(t.names, name), append(t.full, amounts[name])
	}
	return t, nil
}

// position returns the position of a name, or -1.
func (t *countTable) position(name resource.Name) int { return slices.Index(t.names, name) }

// WithCounts returns the host with amounts of counted resources, in place of those it
// has. It refuses names that are not counted and amounts out of bounds. The two hosts
// share the rest.
func (h *Host) WithCounts(amounts resource.Vector) (*Host, error) {
	table, err := newCountTable(amounts)
	if err != nil {
		return nil, err
	}
	with := *h
	with.counts = table
	return &with, nil
}

// Counts returns the amounts of the counted resources of the host; nil for none.
func (h *Host) Counts() resource.Vector {
	if len(h.counts.names) == 0 {
		return nil
	}
	v := resource.Vector{}
	for i, name := range h.counts.names {
		v[name] = h.counts.full[i]
	}
	return v
}

// FreeCount returns the free amount of a counted resource, 0 of one that the host does
// not have or that takes no new work.
func (h *Host) FreeCount(f *Free, name resource.Name) int64 {
	if at := h.counts.position(name); at >= 0 && f.ClosedCounts&(1<<at) != 0 {
		return 0
	}
	return f.open(name, h.FreePart(f, name))
}

// FreePart returns the amount of a counted resource that nobody holds, the part that
// takes no new work included.
func (h *Host) FreePart(f *Free, name resource.Name) int64 {
	h.own(f)
	if at := h.counts.position(name); at >= 0 {
		return f.Counts[at]
	}
	return 0
}

// MostByCounts returns how many members of a request the empty host has counted
// resources for, math.MaxInt32 where these set no bound.
func (h *Host) MostByCounts(req *resource.Request) int {
	most := int64(math.MaxInt32)
	if h.counts.pods >= 0 {
		most = min(most, h.counts.full[h.counts.pods])
	}
	for name, amount := range req.Counts.All() {
		at := h.counts.position(name)
		if at < 0 {
			return 0
		}
		most = min(most, h.counts.full[at]/amount)
	}
	return int(most)
}

// HasRoomForCounts reports whether the host has the counted resources of a request, and
// a pod for the member.
func (h *Host) HasRoomForCounts(f *Free, req *resource.Request) bool {
	if h.IsFull(f) {
		return false
	}
	if req.Counts == "" {
		return true
	}
	for name, amount := range req.Counts.All() {
		if h.FreeCount(f, name) < amount {
			return false
		}
	}
	return true
}

// IsFull reports whether the host has pods and none of them may be handed out.
func (h *Host) IsFull(f *Free) bool {
	return h.counts.pods >= 0 && f.open(resource.Pods, f.Counts[h.counts.pods]) < 1
}

// ClosedBits is the value of Free.ClosedCounts in which exactly the named resources take
// no new work. Names that the host does not have are ignored.
func (h *Host) ClosedBits(names []resource.Name) uint32 {
	var bits uint32
	for i, name := range h.counts.names {
		if slices.Contains(names, name) {
			bits |= 1 << i
		}
	}
	return bits
}

// pickCounts appends the counted resources of the request, and the member's pod.
func (s *search) pickCounts(dst *resource.Assignment) {
	pod := s.h.counts.pods >= 0
	for name, amount := range s.req.Counts.All() {
		if pod && name > resource.Pods {
			dst.Counts, pod = append(dst.Counts, resource.CountGrant{Name: resource.Pods, Amount: 1}), false
		}
		dst.Counts = append(dst.Counts, resource.CountGrant{Name: name, Amount: amount})
	}
	if pod {
		dst.Counts = append(dst.Counts, resource.CountGrant{Name: resource.Pods, Amount: 1})
	}
}

// countsDiffer compares the counted resources of an assignment with the request. A pod
// may be missing: an agent that did not count pods made the assignment.
func countsDiffer(req *resource.Request, a *resource.Assignment) *Mismatch {
	left := req.Counts.Vector()
	for _, g := range a.Counts {
		want := left[g.Name]
		if g.Name == resource.Pods {
			want = 1
		}
		if g.Amount != want {
			return &Mismatch{Field: "counts", Detail: fmt.Sprintf("%d of %.64q, want %d", g.Amount, g.Name, want)}
		}
		delete(left, g.Name)
	}
	for _, name := range left.Names() {
		return &Mismatch{Field: "counts", Detail: fmt.Sprintf("0 of %.64q, want %d", name, left[name])}
	}
	return nil
}

// wellFormedCounts is wellFormed for counted resources.
func (h *Host) wellFormedCounts(grants []resource.CountGrant) error {
	for i, g := range grants {
		switch {
		case h.counts.position(g.Name) < 0:
			return fmt.Errorf("%.64q: this host has none", g.Name)
		case i > 0 && grants[i-1].Name >= g.Name:
			return fmt.Errorf("%s: listed after %s, want ascending order", g.Name, grants[i-1].Name)
		case g.Amount < 1:
			return fmt.Errorf("%s: an amount of %d is less than 1", g.Name, g.Amount)
		}
	}
	return nil
}

// takeCounts reports why grants that are well-formed cannot be taken.
func (h *Host) takeCounts(f *Free, grants []resource.CountGrant) error {
	for _, g := range grants {
		if have := f.Counts[h.counts.position(g.Name)]; have < g.Amount {
			return fmt.Errorf("take %s: want %d, %d free", g.Name, g.Amount, have)
		}
	}
	return nil
}

// giveCounts reports why grants that are well-formed cannot be given.
func (h *Host) giveCounts(f *Free, grants []resource.CountGrant) error {
	for _, g := range grants {
		at := h.counts.position(g.Name)
		if held := h.counts.full[at] - f.Counts[at]; g.Amount > held {
			return fmt.Errorf("give %s: %d to %d free exceed %d", g.Name, g.Amount, f.Counts[at], h.counts.full[at])
		}
	}
	return nil
}

// checkCounts is Check for counted resources.
func (h *Host) checkCounts(f *Free) error {
	for i, free := range f.Counts {
		if free < 0 || free > h.counts.full[i] {
			return fmt.Errorf("fit: %d of %s are free of %d", free, h.counts.names[i], h.counts.full[i])
		}
	}
	return nil
}

// explainCounts finds the counted resources of which the host has too few.
func (h *Host) explainCounts(f *Free, req *resource.Request) []resource.Reason {
	var reasons []resource.Reason
	if h.IsFull(f) {
		most := h.counts.full[h.counts.pods] - f.Withheld.Rest.Of(resource.Pods)
		reasons = append(reasons, resource.Reason{
			Code: resource.ReasonInsufficient, Resource: resource.Pods, Want: 1, Have: 0,
			Detail: fmt.Sprintf("the node has %d members, the most that it takes", most),
		})
	}
	for name, amount := range req.Counts.All() {
		have := h.FreeCount(f, name)
		if have >= amount {
			continue
		}
		r := resource.Reason{Code: resource.ReasonInsufficient, Resource: name, Want: amount, Have: have}
		switch at := h.counts.position(name); {
		case at < 0:
			r.Detail = "this host has none"
		case f.ClosedCounts&(1<<at) != 0:
			r.Detail = "the node declares the resource otherwise than an earlier node, see its conditions"
		case f.Withheld.Rest.Of(name) > 0:
			r.Detail = f.withheldDetail(name)
		}
		reasons = append(reasons, r)
	}
	slices.SortStableFunc(reasons, func(a, b resource.Reason) int { return cmp.Compare(a.Resource, b.Resource) })
	return reasons
}
