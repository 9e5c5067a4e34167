package quota

import "github.com/musterd/muster/resource"

// limits are what the nodes of a tree restrict besides their quota, width
// amounts per node.
//
// Invariant: kept[n] is, per resource, the sum over n's children of what they
// do not lend: max(0, base - allocated) of the child.
type limits struct {
	borrowing []int64 // Unlimited where there is none
	cap       []int64
	perOwner  []int64
	base      []int64 // of a node's quota, what it does not lend
	kept      []int64
	owners    map[ownerOn][]int64 // use per owner on nodes that limit it
	counted   []bool              // the nodes that do
}

type ownerOn struct {
	node  int32
	owner string
}

// limitsOf collects the limits of the nodes, nil where none has any.
func (t *tree) limitsOf(specs map[string]NodeSpec) *limits {
	limited := false
	for i := range t.nodes {
		s := specs[t.nodes[i].name]
		limited = limited || s.Borrowing != nil || s.Lending != nil || s.Cap != nil || s.PerOwner != nil
	}
	if !limited {
		return nil
	}
	size := len(t.nodes) * t.width
	l := &limits{
		borrowing: make([]int64, size), cap: make([]int64, size), perOwner: make([]int64, size), base: make([]int64, size),
		kept: make([]int64, size), owners: map[ownerOn][]int64{}, counted: make([]bool, len(t.nodes)),
	}
	for i := range t.nodes {
		s := specs[t.nodes[i].name]
		l.counted[i] = s.PerOwner != nil
		for r, name := range t.resources {
			at := i*t.width + r
			l.borrowing[at], l.cap[at], l.perOwner[at] = limitOn(s.Borrowing, name), limitOn(s.Cap, name), limitOn(s.PerOwner, name)
			parent := t.nodes[i].parent
			if parent == none {
				continue
			}
			// The sum per parent stays in the range of int64.
			keeps := max(0, s.Quota[name]-limitOn(s.Lending, name))
			sum := &l.kept[int(parent)*t.width+r]
			l.base[at] = min(keeps, resource.Unlimited-*sum)
			*sum += l.base[at]
		}
	}
	return l
}

func limitOn(v resource.Vector, name resource.Name) int64 {
	if limit, named := v[name]; named {
		return limit
	}
	return Unlimited
}

// keep counts what n does not lend and does not use at its parent, given what
// is allocated on n; unkeep takes it off.
func (l *limits) keep(t *tree, n int32, allocated []int64) { l.addKept(t, n, allocated, 1) }

func (l *limits) unkeep(t *tree, n int32, allocated []int64) { l.addKept(t, n, allocated, -1) }

func (l *limits) addKept(t *tree, n int32, allocated []int64, sign int64) {
	p := t.nodes[n].parent
	if p == none {
		return
	}
	for i, held := range allocated {
		l.kept[int(p)*t.width+i] += sign * max(0, l.base[int(n)*t.width+i]-held)
	}
}

// keptFrom is how much of resource i on n is kept for n's children other than
// via.
func (l *limits) keptFrom(t *tree, n, via int32, i int) int64 {
	kept := l.kept[int(n)*t.width+i]
	if via != none {
		kept -= max(0, l.base[int(via)*t.width+i]-t.amount(via, allocatedOf)[i])
	}
	return kept
}

// fitsLimited is fits on a tree with limits.
func (t *tree) fitsLimited(n, via int32, request []int64) bool {
	for i, want := range request {
		if want > t.room(n, via, i) {
			return false
		}
	}
	return true
}

// mayBorrow is how much more of resource i the groups at or below n may
// borrow.
func (l *limits) mayBorrow(t *tree, n int32, i int) int64 {
	borrowed := t.amount(n, useOf)[i] - t.amount(n, allocatedOf)[i]
	return resource.SaturatingSub(l.borrowing[int(n)*t.width+i], borrowed)
}

// confined reports whether the seat, not counted on n, must not be listed
// above it.
func (t *tree) confined(s, n int32) bool {
	if t.nodes[n].hard {
		return true
	}
	if t.opts.PinnedWithinQuota && t.seats[s].pinned {
		return true
	}
	if t.limits == nil {
		return false
	}
	for i, want := range t.request(s) {
		if want > 0 && want > t.limits.mayBorrow(t, n, i) {
			return true
		}
	}
	return false
}

// overLimit finds a cap or an owner's limit on the way from the group to the
// root that the seat would exceed, on a tree that has limits.
func (t *tree) overLimit(s int32) bool {
	l := t.limits
	for n := t.seats[s].group; n != none; n = t.nodes[n].parent {
		var owned []int64
		if l.counted[n] && t.seats[s].owner != "" {
			owned = l.owners[ownerOn{n, t.seats[s].owner}]
		}
		for i, want := range t.request(s) {
			at := int(n)*t.width + i
			if have := resource.SaturatingSub(l.cap[at], t.amount(n, useOf)[i]); want > 0 && want > have {
				t.refuse(OverCap, n, i, want, have)
				return true
			}
			if t.seats[s].owner == "" {
				continue
			}
			have := l.perOwner[at]
			if owned != nil {
				have = resource.SaturatingSub(have, owned[i])
			}
			if want > 0 && want > have {
				t.refuse(OverOwner, n, i, want, have)
				return true
			}
		}
	}
	return false
}

// addOwner counts the seat to its owner on a node that limits owners;
// subOwner stops it. An owner without use has no entry.
func (l *limits) addOwner(t *tree, n, s int32) { l.changeOwner(t, n, s, addTo) }

func (l *limits) subOwner(t *tree, n, s int32) { l.changeOwner(t, n, s, subFrom) }

func (l *limits) changeOwner(t *tree, n, s int32, change func(v, w []int64)) {
	owner := t.seats[s].owner
	if !l.counted[n] || owner == "" {
		return
	}
	key := ownerOn{n, owner}
	use := l.owners[key]
	if use == nil {
		use = make([]int64, t.width)
		l.owners[key] = use
	}
	change(use, t.request(s))
	for _, a := range use {
		if a != 0 {
			return
		}
	}
	delete(l.owners, key)
}
