package quota

// A node lists its seats oldest first; that order is the order in which they
// give way. Every seat of a list carries a place (order) that ascends along
// it, so that a seat can be put back exactly where it was.

// link lists the seat on node n, behind prev in the list and behind bandPrev
// in the band (none: at the head).
func (t *tree) link(s, n, via int32, order int64, prev, band, bandPrev int32) {
	c, at := &t.seats[s], &t.nodes[n]
	c.node, c.via, c.order = n, via, order
	c.prev, c.next = prev, at.head
	if prev != none {
		c.next = t.seats[prev].next
		t.seats[prev].next = s
	} else {
		at.head = s
	}
	if c.next != none {
		t.seats[c.next].prev = s
	} else {
		at.tail = s
	}
	at.count++
	t.allocated++
	request := t.request(s)
	addTo(t.amount(n, ownOf), request)
	t.joinBand(s, band, bandPrev)
	if via != none {
		t.wait(via, s)
	}
	t.noteMoved(s)
}

// unlink takes the seat off its list.
func (t *tree) unlink(s int32) {
	c := &t.seats[s]
	at := &t.nodes[c.node]
	if c.prev != none {
		t.seats[c.prev].next = c.next
	} else {
		at.head = c.next
	}
	if c.next != none {
		t.seats[c.next].prev = c.prev
	} else {
		at.tail = c.prev
	}
	at.count--
	t.allocated--
	subFrom(t.amount(c.node, ownOf), t.request(s))
	t.leaveBand(s)
	if c.via != none {
		t.unwait(c.via, s)
	}
	c.node, c.via = none, none
}

// put lists the seat at the end of n's list; the amounts are the caller's.
func (t *tree) put(s, n, via int32) {
	band := t.bandOf(n, s)
	t.link(s, n, via, t.order, t.nodes[n].tail, band, t.bands.band[band].tail)
	t.order++
	t.log.add(record{op: opPut, slot: t.slot, seat: s, node: n})
}

// take takes the seat off its list; the amounts are the caller's.
func (t *tree) take(s int32) {
	c := &t.seats[s]
	t.log.add(record{op: opTake, slot: t.slot, seat: s, node: c.node, via: c.via, order: c.order, prev: c.prev, bandPrev: c.bandPrev})
	t.unlink(s)
}

// charge counts the seat's request on one node.
func (t *tree) charge(s, n int32) {
	t.addAllocated(s, n)
	t.log.addStep(opCharge, t, s, n)
}

// discharge stops counting the seat's request on one node.
func (t *tree) discharge(s, n int32) {
	t.subAllocated(s, n)
	t.log.addStep(opDischarge, t, s, n)
}

// enter counts the seat as use of its group and everything above.
func (t *tree) enter(s int32) {
	t.addUse(s)
	t.log.add(record{op: opEnter, slot: t.slot, seat: s})
}

// leave undoes enter.
func (t *tree) leave(s int32) {
	t.subUse(s)
	t.log.add(record{op: opLeave, slot: t.slot, seat: s})
}

func (t *tree) addAllocated(s, n int32) {
	held := t.amount(n, allocatedOf)
	if t.limits != nil {
		t.limits.unkeep(t, n, held)
	}
	addTo(held, t.request(s))
	if t.limits != nil {
		t.limits.keep(t, n, held)
	}
}

func (t *tree) subAllocated(s, n int32) {
	held := t.amount(n, allocatedOf)
	if t.limits != nil {
		t.limits.unkeep(t, n, held)
	}
	subFrom(held, t.request(s))
	if t.limits != nil {
		t.limits.keep(t, n, held)
	}
}

// useFrom is the node at which the seat's use begins.
func (t *tree) useFrom(s int32) int32 { return max(t.seats[s].group, 0) }

func (t *tree) addUse(s int32) {
	request := t.request(s)
	for n := t.useFrom(s); n != none; n = t.nodes[n].parent {
		addTo(t.amount(n, useOf), request)
		if t.limits != nil {
			t.limits.addOwner(t, n, s)
		}
	}
}

func (t *tree) subUse(s int32) {
	request := t.request(s)
	for n := t.useFrom(s); n != none; n = t.nodes[n].parent {
		subFrom(t.amount(n, useOf), request)
		if t.limits != nil {
			t.limits.subOwner(t, n, s)
		}
	}
}
