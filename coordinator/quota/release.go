package quota

// release takes the seat off the tree and lets sharers slide down into the
// room it leaves: QUOTA.md section 3, DeAllocate.
func (t *tree) release(s int32) {
	n := t.seats[s].node
	t.take(s)
	t.leave(s)
	for ; n != none; n = t.nodes[n].parent {
		t.discharge(s, n)
		t.slideDown(n)
	}
}

// slideDown moves seats that are listed on n's parent and whose leaf groups
// are n or below it down to n, the oldest first, where they fit.
func (t *tree) slideDown(n int32) {
	if t.nodes[n].waiting == none {
		return
	}
	passed := int64(-1)
	for {
		room := t.scratch
		for i := range room {
			room[i] = t.amount(n, quotaOf)[i] - t.amount(n, allocatedOf)[i]
			if t.opts.IgnoreOverdrawn {
				room[i] = max(room[i], 0)
			}
		}
		s := t.oldestWithin(t.nodes[n].waiting, passed, room)
		if s == none {
			return
		}
		passed = t.seats[s].order
		for at := n; at != none; at = t.seats[s].via {
			if !t.fits(at, t.towards(at, t.seats[s].group), t.request(s)) {
				break
			}
			t.sink(s, at)
			if !t.opts.Settle {
				break
			}
		}
	}
}

// sink moves a seat from its node to the child n, whose parent counts it
// already.
func (t *tree) sink(s, n int32) {
	t.take(s)
	t.put(s, n, t.slideVia(s, n))
	t.charge(s, n)
}
