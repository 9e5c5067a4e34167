package quota

import (
	"slices"

	"github.com/musterd/muster/resource"
)

// makeRoom lets seats listed on n give way until s, coming from n's child via,
// fits: the oldest first, and only of lower priority where onlyLower. Below
// the root they are pushed one node up, at the root they are evicted (QUOTA.md
// section 3, slide-up). Where that is not enough it changes nothing.
func (t *tree) makeRoom(n, via, s int32, onlyLower bool) bool {
	evicts := n == 0 || t.nodes[n].hard
	if n != 0 && evicts && !t.opts.EvictAtHard {
		return false
	}
	c := &t.seats[s]
	f := filter{below: c.priority, all: !onlyLower, kind: c.kind, anyKind: !evicts, pinned: !evicts && !t.opts.PinnedWithinQuota}
	freed := t.zero()
	t.freeable(n, &f, freed)
	if !t.wouldFit(n, via, s, freed) {
		return false
	}
	begin, at := t.log.mark(), t.nodes[n].head
	for {
		var v int32
		if v, at = t.nextToYield(n, s, at, &f, evicts); v == none {
			t.rollback(begin)
			return false
		}
		if evicts || t.confined(v, n) {
			t.evict(v)
		} else {
			t.push(v, n)
		}
		if t.fits(n, via, t.request(s)) {
			return true
		}
	}
}

// evictBelow evicts consumers of lower priority than s from the nodes of its
// path, from stop downwards, until s fits on stop (QUOTA.md section 3, phase
// 2). Where that is not enough it changes nothing.
func (t *tree) evictBelow(s, stop int32) bool {
	c := &t.seats[s]
	f := filter{below: c.priority, kind: c.kind}
	freed := t.zero()
	t.path = t.path[:0]
	for n := c.group; ; n = t.nodes[n].parent {
		t.path = append(t.path, n)
		t.freeable(n, &f, freed)
		if n == stop {
			break
		}
	}
	via := t.towards(stop, c.group)
	if !t.wouldFit(stop, via, s, freed) {
		return false
	}
	begin, depth := t.log.mark(), len(t.path)-1
	at := t.nodes[stop].head
	for {
		v := none
		if t.opts.FewestVictims {
			for _, n := range t.path {
				w, _ := t.nextToYield(n, s, none, &f, true)
				v = t.lessWorthy(v, w)
			}
			depth = 0
		} else {
			v, at = t.nextToYield(t.path[depth], s, at, &f, true)
		}
		switch {
		case v != none:
			t.evict(v)
			if t.fits(stop, via, t.request(s)) {
				return true
			}
		case depth == 0:
			t.rollback(begin)
			return false
		default:
			depth--
			at = t.nodes[t.path[depth]].head
		}
	}
}

// nextToYield is the seat of n's list that gives way to s next, or none; a
// search that has to look at the seats one by one begins at from and is to go
// on at the second result.
func (t *tree) nextToYield(n, s, from int32, f *filter, evicts bool) (v, next int32) {
	leastWorthy := evicts && t.opts.FewestVictims
	oneByOne := evicts && t.opts.MinRunTime > 0 || !evicts && t.limits != nil
	switch {
	case !oneByOne && leastWorthy:
		return t.leastWorthy(n, f), none
	case !oneByOne:
		return t.oldest(n, f), none
	case leastWorthy:
		least := none
		for v := t.nodes[n].head; v != none; v = t.seats[v].next {
			if f.seat(&t.seats[v]) && t.mayYield(v, n, s, evicts) {
				least = t.lessWorthy(least, v)
			}
		}
		return least, none
	}
	for v := from; v != none; v = t.seats[v].next {
		if f.seat(&t.seats[v]) && t.mayYield(v, n, s, evicts) {
			return v, t.seats[v].next
		}
	}
	return none, none
}

// mayYield reports what the filter cannot know: whether v may be evicted from
// n yet, or pushed up from it.
func (t *tree) mayYield(v, n, s int32, evicts bool) bool {
	c := &t.seats[v]
	if !evicts {
		if !t.confined(v, n) {
			return true
		}
		if !t.opts.EvictAtHard || c.pinned || c.kind != t.seats[s].kind {
			return false
		}
	}
	if resource.SaturatingSub(t.now, c.since) >= int64(t.opts.MinRunTime) {
		return true
	}
	if end := resource.SaturatingAdd(c.since, int64(t.opts.MinRunTime)); t.log.protected == 0 || end < t.log.protected {
		t.log.protected = end
	}
	return false
}

// push moves a seat from n to its parent, which counts it already.
func (t *tree) push(v, n int32) {
	p := t.nodes[n].parent
	t.take(v)
	t.discharge(v, n)
	t.put(v, p, t.slideVia(v, p))
}

// evict takes a seat off the tree and names it a victim.
func (t *tree) evict(v int32) {
	t.drop(v)
	t.evicted(v)
}

// drop takes a seat off the tree. Nothing moves into the room it leaves.
func (t *tree) drop(v int32) {
	n := t.seats[v].node
	t.take(v)
	for ; n != none; n = t.nodes[n].parent {
		t.discharge(v, n)
	}
	t.leave(v)
}

// zero returns the scratch vector, cleared.
func (t *tree) zero() []int64 {
	clear(t.scratch)
	return t.scratch
}

// wouldFit reports whether s would fit on n, coming from its child via, with
// freed more room. It is exact where every seat that was summed may yield, and
// never false where s could fit.
func (t *tree) wouldFit(n, via, s int32, freed []int64) bool {
	for i, want := range t.request(s) {
		room := resource.SaturatingAdd(t.roomOrDebt(n, via, i), freed[i])
		if room < 0 && t.opts.IgnoreOverdrawn {
			room = 0
		}
		if want > room {
			return false
		}
	}
	return true
}

// spare gives back victims that the seat does not need: it starts over from
// begin with all but one of them evicted beforehand, the last evicted first,
// and keeps those it can do without (QUOTA.md section 8, D11).
func (t *tree) spare(s int32, begin, victims int) {
	chosen := slices.Clone(t.log.victims[victims:])
	spared := false
	for i := len(chosen) - 1; i >= 0; i-- {
		t.rollback(begin)
		if fewer := slices.Concat(chosen[:i], chosen[i+1:]); t.admitWithout(s, fewer, victims) {
			chosen, spared = fewer, true
		}
	}
	t.rollback(begin)
	if !spared || !t.admitWithout(s, chosen, victims) {
		t.rollback(begin)
		t.rounds(s)
	}
}

// admitWithout evicts the chosen seats and allocates s; it fails where that
// takes other victims too.
func (t *tree) admitWithout(s int32, chosen []victim, victims int) bool {
	for _, v := range chosen {
		t.evict(v.seat)
	}
	if _, ok := t.climb(s); !ok {
		return false
	}
	t.enter(s)
	return len(t.log.victims) == victims+len(chosen)
}
