package quota

import "fmt"

// Restore allocates a consumer that was allocated before, without evicting or
// moving anybody: on the lowest node of its path that it may borrow up to and
// on which it fits, as it must on all above. Where there is none it is counted
// on the highest node it may stand on, which goes over quota (Forced): up
// there it is the first to be claimed back. Any node may be its group, as in
// Maintenance mode. Consumers restored in the order of their commits
// stand in that order. The errors are Allocate's.
func (m *Manager) Restore(tree, id string) (Result, error) {
	t, at, s, err := m.find(tree, id)
	if err != nil {
		return Result{}, err
	}
	if n := t.seats[s].node; n != none {
		return Result{}, fmt.Errorf("restore %s: %w on tree %s, node %s", id, ErrAllocated, tree, t.nodes[n].name)
	}
	m.begin()
	forced, ok := m.restore(t, s)
	if !ok {
		return Result{Refusal: t.why}, nil
	}
	r := Result{Forced: forced}
	m.tell(&r, at, nil, t)
	return r, nil
}

// RestoreForest is Restore on the trees of a forest that the consumer asks
// something of: on all of them or on none.
func (m *Manager) RestoreForest(forest, id string) (Result, error) {
	f, at, err := m.findForest(forest, id)
	if err != nil {
		return Result{}, err
	}
	if _, missing := m.held(f, at); missing == 0 {
		return Result{}, fmt.Errorf("restore %s: %w on forest %s", id, ErrAllocated, forest)
	}
	m.begin()
	anyForced := false
	for _, t := range f.trees {
		s := m.seatOf(t, at)
		if s == none || t.seats[s].node != none {
			continue
		}
		forced, ok := m.restore(t, s)
		if !ok {
			m.rollback(m.log.call)
			return Result{Refusal: t.why}, nil
		}
		anyForced = anyForced || forced
	}
	r := Result{Forced: anyForced}
	m.tell(&r, at, f, nil)
	return r, nil
}

// restore allocates one seat; it is refused where its group is gone or the
// amounts cannot be summed.
func (m *Manager) restore(t *tree, s int32) (forced, ok bool) {
	if t.seats[s].home == none {
		return false, m.unknownGroup(t, s)
	}
	if t.overflows(s) {
		return false, false
	}
	t.settleIn(s)
	at, via, fits := t.lowest(s)
	t.seize(s, at, via)
	return !fits, true
}

// lowest is the lowest node on which the seat fits, as on all above, or the
// highest that it may stand on where it fits nowhere; and the node's child on
// the way.
func (t *tree) lowest(s int32) (at, via int32, fits bool) {
	below, allowed := none, true
	at, via = none, none
	top, topVia := none, none
	for n := t.seats[s].group; n != none; below, n = n, t.nodes[n].parent {
		if allowed {
			top, topVia = n, below
		}
		switch {
		case !t.fits(n, below, t.request(s)):
			at = none
		case at == none && allowed:
			at, via = n, below
		}
		allowed = allowed && !t.confined(s, n)
	}
	if at == none {
		return top, topVia, false
	}
	return at, via, true
}
