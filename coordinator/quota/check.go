package quota

import (
	"fmt"
	"maps"
	"slices"
)

// Check recomputes every sum and every index from the lists and names the
// first invariant that does not hold. It takes as long as everything that
// lives.
func (m *Manager) Check() error {
	for _, name := range slices.Sorted(maps.Keys(m.trees)) {
		t := m.trees[name]
		if err := t.checkLists(); err != nil {
			return fmt.Errorf("quota: tree %s: %w", name, err)
		}
		if err := t.checkSums(); err != nil {
			return fmt.Errorf("quota: tree %s: %w", name, err)
		}
		for n := range t.nodes {
			if err := t.checkBands(int32(n)); err != nil {
				return fmt.Errorf("quota: tree %s: node %s: bands: %w", name, t.nodes[n].name, err)
			}
			if err := t.checkWaiting(int32(n)); err != nil {
				return fmt.Errorf("quota: tree %s: node %s: waiting: %w", name, t.nodes[n].name, err)
			}
		}
	}
	return nil
}

// checkLists verifies the lists' links and order, and where seats may stand.
func (t *tree) checkLists() error {
	listed := 0
	for n := range t.nodes {
		at := &t.nodes[n]
		prev, count := none, int32(0)
		for s := at.head; s != none; prev, s = s, t.seats[s].next {
			c := &t.seats[s]
			switch {
			case c.node != int32(n) || c.prev != prev:
				return fmt.Errorf("seat %d is listed on %s behind %d, it says node %d behind %d", s, at.name, prev, c.node, c.prev)
			case prev != none && t.seats[prev].order >= c.order || c.order >= t.order:
				return fmt.Errorf("seat %d stands at %d behind %d, the next place is %d", s, c.order, prev, t.order)
			case c.group != none && !t.below(c.group, int32(n)) || c.group == none && n != 0:
				return fmt.Errorf("seat %d of group %d is listed on %d, which is not above", s, c.group, n)
			case c.via != t.slideVia(s, int32(n)):
				return fmt.Errorf("seat %d waits for %d, want %d", s, c.via, t.slideVia(s, int32(n)))
			}
			count++
		}
		if count != at.count || at.tail != prev {
			return fmt.Errorf("node %s lists %d up to %d, it says %d up to %d", at.name, count, prev, at.count, at.tail)
		}
		listed += int(count)
	}
	if listed != t.allocated {
		return fmt.Errorf("%d seats are listed, %d counted", listed, t.allocated)
	}
	return nil
}

// checkSums verifies every node's amounts against the lists.
func (t *tree) checkSums() error {
	sums := make([]int64, len(t.amounts))
	owners := map[ownerOn][]int64{}
	sum := func(n int32, kind int) []int64 { return sums[(int(n)*amountKinds+kind)*t.width:][:t.width] }
	for n := range t.nodes {
		for s := t.nodes[n].head; s != none; s = t.seats[s].next {
			request := t.request(s)
			addTo(sum(int32(n), ownOf), request)
			for a := int32(n); a != none; a = t.nodes[a].parent {
				addTo(sum(a, allocatedOf), request)
			}
			for a := t.useFrom(s); a != none; a = t.nodes[a].parent {
				addTo(sum(a, useOf), request)
				if key := (ownerOn{a, t.seats[s].owner}); t.limits != nil && t.limits.counted[a] && key.owner != "" {
					if owners[key] == nil {
						owners[key] = make([]int64, t.width)
					}
					addTo(owners[key], request)
				}
			}
		}
	}
	for n := range t.nodes {
		for _, kind := range []int{allocatedOf, useOf, ownOf} {
			if want, got := sum(int32(n), kind), t.amount(int32(n), kind); !slices.Equal(want, got) {
				return fmt.Errorf("node %s: amount %d is %v, the lists make %v", t.nodes[n].name, kind, got, want)
			}
		}
		for i, a := range t.amount(int32(n), allocatedOf) {
			if a < 0 {
				return fmt.Errorf("node %s holds %d of %s", t.nodes[n].name, a, t.resources[i])
			}
		}
	}
	if t.limits != nil {
		return t.checkLimits(owners)
	}
	return nil
}

func (t *tree) checkLimits(owners map[ownerOn][]int64) error {
	kept := make([]int64, len(t.limits.kept))
	for n := 1; n < len(t.nodes); n++ {
		for i, held := range t.amount(int32(n), allocatedOf) {
			kept[int(t.nodes[n].parent)*t.width+i] += max(0, t.limits.base[n*t.width+i]-held)
		}
	}
	if !slices.Equal(kept, t.limits.kept) {
		return fmt.Errorf("kept from lending is %v, the nodes make %v", t.limits.kept, kept)
	}
	for key, use := range owners {
		if slices.Max(use) == 0 {
			delete(owners, key)
		}
	}
	if !maps.EqualFunc(owners, t.limits.owners, slices.Equal) {
		return fmt.Errorf("owners use %v, the lists make %v", t.limits.owners, owners)
	}
	return nil
}

// checkBands verifies that the bands of node n hold its list, in its order.
func (t *tree) checkBands(n int32) error {
	count := int32(0)
	a := &t.bands
	for k := t.nodes[n].classes; k != none; k = a.class[k].next {
		if a.class[k].root == none || a.class[k].node != n {
			return fmt.Errorf("class %d is empty or of node %d", k, a.class[k].node)
		}
		if _, _, err := t.checkBand(a.class[k].root, none, k, &count); err != nil {
			return err
		}
	}
	if count != t.nodes[n].count {
		return fmt.Errorf("they hold %d seats, the list %d", count, t.nodes[n].count)
	}
	return nil
}

// checkBand verifies the treap below band b and returns its sum and its oldest
// seat.
func (t *tree) checkBand(b, up, k int32, count *int32) (sum []int64, oldest int32, err error) {
	sum = make([]int64, t.width)
	if b == none {
		return sum, none, nil
	}
	x := t.bands.band[b]
	if x.head == none || x.up != up || x.class != k {
		return nil, none, fmt.Errorf("band %d is empty or hangs below %d of class %d", b, x.up, x.class)
	}
	prev := none
	for s := x.head; s != none; prev, s = s, t.seats[s].bandNext {
		c := &t.seats[s]
		if c.band != b || c.bandPrev != prev || c.priority != x.priority || c.kind != t.bands.class[k].kind || c.pinned != t.bands.class[k].pinned {
			return nil, none, fmt.Errorf("seat %d stands in band %d behind %d", s, c.band, c.bandPrev)
		}
		if prev != none && t.seats[prev].order >= c.order {
			return nil, none, fmt.Errorf("seat %d stands behind a newer one", s)
		}
		addTo(sum, t.request(s))
		*count++
	}
	if !slices.Equal(sum, t.ownSum(b)) {
		return nil, none, fmt.Errorf("band %d sums to %v, it says %v", b, sum, t.ownSum(b))
	}
	oldest = x.head
	for i, child := range [2]int32{x.left, x.right} {
		if child != none && (t.bands.band[child].priority < x.priority) != (i == 0) {
			return nil, none, fmt.Errorf("band %d is on the wrong side of %d", child, b)
		}
		below, old, err := t.checkBand(child, b, k, count)
		if err != nil {
			return nil, none, err
		}
		addTo(sum, below)
		oldest = t.older(oldest, old)
	}
	if !slices.Equal(sum, t.treapSum(b)) || oldest != x.oldest {
		return nil, none, fmt.Errorf("below band %d are %v, oldest %d; it says %v, oldest %d", b, sum, oldest, t.treapSum(b), x.oldest)
	}
	return sum, oldest, nil
}

// checkWaiting verifies that n's treap holds what waits for n on its parent.
func (t *tree) checkWaiting(n int32) error {
	var want, got []int32
	if p := t.nodes[n].parent; p != none {
		for s := t.nodes[p].head; s != none; s = t.seats[s].next {
			if t.seats[s].via == n {
				want = append(want, s)
			}
		}
	}
	if err := t.inOrder(t.nodes[n].waiting, none, &got); err != nil {
		return err
	}
	last := none
	if len(got) > 0 {
		last = got[len(got)-1]
	}
	if !slices.Equal(want, got) || t.nodes[n].lastWaiting != last {
		return fmt.Errorf("%v wait up to %d, the list has %v", got, t.nodes[n].lastWaiting, want)
	}
	return nil
}

// inOrder collects a treap and verifies its links and bounds.
func (t *tree) inOrder(s, up int32, all *[]int32) error {
	if s == none {
		return nil
	}
	c := &t.seats[s]
	if c.up != up || !within(t.least(s), t.request(s)) {
		return fmt.Errorf("seat %d hangs below %d, bound %v, request %v", s, c.up, t.least(s), t.request(s))
	}
	for i, child := range [2]int32{c.left, c.right} {
		if child != none && !within(t.least(s), t.least(child)) {
			return fmt.Errorf("seat %d bounds %v, its child %v", s, t.least(s), t.least(child))
		}
		if i == 1 {
			*all = append(*all, s)
		}
		if err := t.inOrder(child, s, all); err != nil {
			return err
		}
	}
	return nil
}
