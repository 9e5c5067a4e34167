package quota

// admit allocates the seat on its tree, evicting where that is allowed. It
// changes nothing where it refuses, and says why in t.why. The caller has checked that the seat is
// not allocated and that its group exists.
func (t *tree) admit(s int32) bool {
	if home := t.seats[s].home; !t.nodes[home].leaf {
		t.why = Refusal{Code: NotALeaf, Tree: t.name, Node: t.nodes[home].name}
		return false
	}
	t.settleIn(s)
	if t.limits != nil && t.overLimit(s) {
		return false
	}
	begin, victims := t.log.mark(), len(t.log.victims)
	if !t.rounds(s) {
		return false
	}
	if t.opts.FewestVictims && len(t.log.victims) > victims {
		t.spare(s, begin, victims)
	}
	return true
}

// rounds climbs, evicts below the node that refused, and climbs again, until
// the seat is allocated or nobody is left to evict.
func (t *tree) rounds(s int32) bool {
	begin := t.log.mark()
	for {
		stop, ok := t.climb(s)
		if ok {
			t.enter(s)
			return true
		}
		t.shortage(s, stop)
		if t.seats[s].priority <= 0 || !t.evictBelow(s, stop) {
			t.rollback(begin)
			return false
		}
	}
}

// settleIn prepares the seat for a new allocation. While the seat is not
// allocated its stay means nothing, so only a checkpoint has to keep the stay
// before: the seat may have been allocated when the checkpoint began.
func (t *tree) settleIn(s int32) {
	c := &t.seats[s]
	if len(t.log.marks) > 0 {
		t.log.settled = append(t.log.settled, c.stay)
		t.log.add(record{op: opSettle, slot: t.slot, seat: s})
	}
	c.stay = stay{groupName: t.nodes[c.home].name, group: c.home, since: t.now}
}

// climb goes from the seat's group to the root, bottom up: QUOTA.md section 3,
// phase 1. Until the seat has a node it may push away lower priorities alone;
// above its node it claims what is its own from anybody. It returns the node
// at which it gave up, with everything it did taken back.
func (t *tree) climb(s int32) (stop int32, ok bool) {
	begin := t.log.mark()
	request := t.request(s)
	placed, confined := false, false
	via := none
	for n := t.seats[s].group; n != none; via, n = n, t.nodes[n].parent {
		stop = n
		here := t.confined(s, n)
		confined = confined || here
		switch fits := t.fits(n, via, request) || t.makeRoom(n, via, s, !placed); {
		case fits && placed:
			t.charge(s, n)
		case fits:
			t.put(s, n, via)
			t.charge(s, n)
			placed = true
		case placed:
			t.rollback(begin)
			placed = false
			if confined {
				return stop, false
			}
		case here:
			return stop, false
		}
	}
	return stop, placed
}

// shortage says why the seat did not get beyond node stop.
func (t *tree) shortage(s, stop int32) {
	via := t.towards(stop, t.seats[s].group)
	request := t.request(s)
	if t.limits != nil && !t.nodes[stop].hard && stop != 0 {
		for i, want := range request {
			if have := t.limits.mayBorrow(t, stop, i); want > 0 && want > have {
				t.refuse(OverBorrow, stop, i, want, have)
				return
			}
		}
	}
	for i, want := range request {
		if have := t.room(stop, via, i); want > have {
			t.refuse(OverQuota, stop, i, want, have)
			return
		}
	}
}

// refuse says that want of resource i on n is more than have.
func (t *tree) refuse(code RefusalCode, n int32, i int, want, have int64) {
	t.why = Refusal{Code: code, Tree: t.name, Node: t.nodes[n].name, Resource: t.resources[i], Want: want, Have: have}
}
