package objects

import "github.com/musterd/muster/api"

// mostRendered bounds the allocations that a Cache keeps in the form in which events
// are derived from them: a few KiB each.
const mostRendered = 256

// rendered are the allocations that were rendered last for the events of a change. The
// state after a change is the state before the next one, and most changes of an
// allocation follow each other closely. The zero value is empty.
//
// Invariant: order has the keys of by, the oldest first, at most mostRendered.
type rendered struct {
	by    map[entry]*api.Allocation
	order []entry
}

// allocation is an allocation without its figures, nil for no entry. Nobody may change
// it.
func (r *rendered) allocation(e entry) *api.Allocation {
	if e == nil {
		return nil
	}
	if a := r.by[e]; a != nil {
		return a
	}
	a := baseOf[api.Allocation](e)
	if r.by == nil {
		r.by = map[entry]*api.Allocation{}
	}
	if len(r.order) >= mostRendered {
		delete(r.by, r.order[0])
		r.order = append(r.order[:0], r.order[1:]...)
	}
	r.by[e], r.order = a, append(r.order, e)
	return a
}
