package quota

// A seat that borrows is listed on a node above its group and waits there to
// slide down to the child on its way. The seats of one parent that wait for
// one child form a treap by their place in the parent's list; each knows a
// lower bound of the requests in its subtree, so that a departure finds the
// oldest seat that fits, or that none does, without a walk over the rest.
//
// Invariant: least(s) <= request and least of the children, per resource. It
// may be lower: what leaves does not raise it; a search that comes by does.

// wait enters the seat into the treap of child k, by its place.
func (t *tree) wait(k, s int32) {
	at := &t.nodes[k]
	c := &t.seats[s]
	c.heap = scatter(c.order)
	c.up, c.left, c.right = none, none, none
	if at.lastWaiting == none || t.seats[at.lastWaiting].order < c.order {
		t.waitLast(at, s)
		return
	}
	up, x := none, at.waiting
	for x != none && t.seats[x].heap >= c.heap {
		t.lower(x, t.request(s))
		up = x
		if c.order < t.seats[x].order {
			x = t.seats[x].left
		} else {
			x = t.seats[x].right
		}
	}
	left, right := t.split(x, c.order)
	t.adopt(s, left, right)
	c.up = up
	switch {
	case up == none:
		at.waiting = s
	case c.order < t.seats[up].order:
		t.seats[up].left = s
	default:
		t.seats[up].right = s
	}
}

// waitLast enters the seat behind all others, in constant time on average.
func (t *tree) waitLast(at *node, s int32) {
	c := &t.seats[s]
	under, x := none, at.lastWaiting
	for x != none && t.seats[x].heap < c.heap {
		under, x = x, t.seats[x].up
	}
	t.adopt(s, under, none)
	c.up = x
	if x == none {
		at.waiting = s
	} else {
		t.seats[x].right = s
	}
	at.lastWaiting = s
	for request := t.request(s); x != none && t.lower(x, request); {
		x = t.seats[x].up
	}
}

// unwait takes the seat out of the treap of child k. The bounds above it stay.
func (t *tree) unwait(k, s int32) {
	at, c := &t.nodes[k], &t.seats[s]
	by := t.merge(c.left, c.right)
	if by != none {
		t.seats[by].up = c.up
	}
	switch {
	case c.up == none:
		at.waiting = by
	case t.seats[c.up].left == s:
		t.seats[c.up].left = by
	default:
		t.seats[c.up].right = by
	}
	if at.lastWaiting != s {
		return
	}
	if by == none {
		at.lastWaiting = c.up
		return
	}
	for t.seats[by].right != none {
		by = t.seats[by].right
	}
	at.lastWaiting = by
}

// adopt makes two treaps the children of s and computes its bound.
func (t *tree) adopt(s, left, right int32) {
	c := &t.seats[s]
	c.left, c.right = left, right
	least := t.least(s)
	copy(least, t.request(s))
	if left != none {
		t.seats[left].up = s
		lowerTo(least, t.least(left))
	}
	if right != none {
		t.seats[right].up = s
		lowerTo(least, t.least(right))
	}
}

// merge joins two treaps, all of a older than all of b.
func (t *tree) merge(a, b int32) int32 {
	switch {
	case a == none:
		return b
	case b == none:
		return a
	case t.seats[a].heap >= t.seats[b].heap:
		t.adopt(a, t.seats[a].left, t.merge(t.seats[a].right, b))
		return a
	default:
		t.adopt(b, t.merge(a, t.seats[b].left), t.seats[b].right)
		return b
	}
}

// split parts a treap into what is older than a place and what is newer.
func (t *tree) split(x int32, order int64) (older, newer int32) {
	if x == none {
		return none, none
	}
	if t.seats[x].order < order {
		between, newer := t.split(t.seats[x].right, order)
		t.adopt(x, t.seats[x].left, between)
		return x, newer
	}
	older, between := t.split(t.seats[x].left, order)
	t.adopt(x, between, t.seats[x].right)
	return older, x
}

// lower lowers the seat's bound to a request and reports whether it changed.
func (t *tree) lower(s int32, request []int64) bool { return lowerTo(t.least(s), request) }

func lowerTo(v, w []int64) bool {
	changed := false
	for i, a := range w {
		if a < v[i] {
			v[i], changed = a, true
		}
	}
	return changed
}

// within reports whether a request is at most room, per resource.
func within(request, room []int64) bool {
	for i, a := range request {
		if a > room[i] {
			return false
		}
	}
	return true
}

// oldestWithin is the oldest seat of the treap x that is newer than a place
// and whose request is within room, or none.
func (t *tree) oldestWithin(x int32, newerThan int64, room []int64) int32 {
	if x == none || !within(t.least(x), room) {
		return none
	}
	c := &t.seats[x]
	if c.order > newerThan {
		if found := t.oldestWithin(c.left, newerThan, room); found != none {
			return found
		}
		if within(t.request(x), room) {
			return x
		}
	}
	if found := t.oldestWithin(c.right, newerThan, room); found != none {
		return found
	}
	t.adopt(x, c.left, c.right) // nothing fits: tighten the bound
	return none
}
