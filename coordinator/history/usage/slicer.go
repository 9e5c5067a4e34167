package usage

import (
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// Kept is how long raw slices are kept. An end changes no slice that lies further back.
const Kept = 60 * Day

// Slicer makes the slices of the grants that it follows. A live grant has slices up to
// the last mark (5 minutes) that the batches passed. The last of them begins at the full
// hour, at the commit, or at the last mark at which the measured use per time changed, and
// grows from mark to mark under its key: an hour of a grant in which nothing changes is
// one row for each slot.
//
// Hear brings the counters of members. A slice has the difference of two of them, so a
// counter that is lost costs resolution and never a total: Σ Measured of a member is its
// last counter. A counter that is heard within the last 5 minutes before a mark counts as
// that of the mark.
//
// One goroutine at a time may use a Slicer. It holds the live grants.
type Slicer struct {
	live map[resource.TxID]*held
	upto time.Time // the mark up to which the slices of live grants are made
	// fresh: no batch has come yet, so that each track may have output.
	fresh bool
}

// out is the output of a batch.
type out struct {
	cuts   []history.Cut
	slices []history.Slice
}

// held is a live grant.
type held struct {
	grant   history.Grant
	members map[int]*member
}

// member is what is known of a member that holds resources.
type member struct {
	tracks map[resource.Name]*track
	// heard are counters that are not in slices yet, ascending by instant: at most one for
	// each mark.
	heard []history.Use
	// ended is the end of a member before the grant's, the zero value for a member that holds
	// its part: the grant's end brings the whole use of both.
	ended time.Time
}

// NewSlicer continues at a position: live are the grants without an end, last their last
// slices that have counters (their keys, ends, measured use and counters), and upto is what
// Upto returned there. The zero time makes the
// slices of each grant anew from its commit, or its last counter, on, which changes no sum.
func NewSlicer(live []history.Grant, last []history.Slice, upto time.Time) *Slicer {
	s := &Slicer{live: map[resource.TxID]*held{}, upto: upto.UTC(), fresh: true}
	before := map[trackKey]history.Slice{}
	for _, l := range last {
		before[trackKey{l.Tx, l.Member, l.Slot}] = l
	}
	s.each(live, func(g history.Grant, m history.Member, like history.Slice) *track {
		upto := s.upto
		if !m.Ended.IsZero() {
			upto = millis(m.Ended)
		}
		return goOn(like, before[trackKey{like.Tx, like.Member, like.Slot}], millis(g.Committed), upto)
	})
	return s
}

// NewBlindSlicer is NewSlicer where nobody can say which counters the slices have. It
// leaves the slices up to upto as they are, and makes those behind it without counters. A
// grant that ends meanwhile gets all its slices anew, with its whole use spread evenly.
func NewBlindSlicer(live []history.Grant, upto time.Time) *Slicer {
	s := &Slicer{live: map[resource.TxID]*held{}, upto: upto.UTC()}
	s.each(live, func(g history.Grant, m history.Member, like history.Slice) *track {
		t := newTrack(like, latestOf(millis(g.Committed), earliest(s.upto, millis(m.Ended))))
		t.lost = true
		return t
	})
	return s
}

type trackKey struct {
	tx     resource.TxID
	member int
	slot   resource.Name
}

// each takes live grants, with a track for each slot of their members.
func (s *Slicer) each(live []history.Grant, of func(history.Grant, history.Member, history.Slice) *track) {
	for _, g := range live {
		if !g.Ended.IsZero() || g.Committed.IsZero() {
			continue
		}
		h := &held{g, map[int]*member{}}
		for _, m := range g.Members {
			h.members[m.Index] = membersTracks(g, m, of)
			h.members[m.Index].ended = millis(m.Ended)
		}
		s.live[g.Tx] = h
	}
}

func membersTracks(g history.Grant, m history.Member, of func(history.Grant, history.Member, history.Slice) *track) *member {
	at := &member{tracks: map[resource.Name]*track{}}
	for _, slot := range slots(m) {
		at.tracks[slot] = of(g, m, sliceOf(g, m, slot))
	}
	return at
}

// Upto is the mark up to which live grants have slices.
func (s *Slicer) Upto() time.Time { return s.upto }

// Hear takes counters of members. Those of a grant that no batch has brought yet, and
// counters that lie before the last mark, are left out.
func (s *Slicer) Hear(all []history.Use) {
	for _, u := range all {
		h := s.live[u.Tx]
		if h == nil || h.members[u.Member] == nil || !u.At.After(s.upto) {
			continue
		}
		m := h.members[u.Member]
		if !m.ended.IsZero() {
			continue
		}
		u.At = millis(u.At)
		switch last := len(m.heard) - 1; {
		case last < 0 || markOf(u.At).After(markOf(m.heard[last].At)):
			m.heard = append(m.heard, u)
		case u.At.After(m.heard[last].At):
			m.heard[last] = u
		}
	}
}

// markOf is the first mark that is not before an instant.
func markOf(t time.Time) time.Time { return t.Add(Mark - time.Millisecond).Truncate(Mark) }

// Follow takes the grants of the next batch and returns the cuts and the slices to write
// with it, ascending by transaction, member, slot and instant. A batch without rows moves
// the time alone.
func (s *Slicer) Follow(b history.Batch) ([]history.Cut, []history.Slice) {
	var o out
	mark := b.At.UTC().Truncate(Mark)
	for _, g := range b.Grants {
		s.take(&o, g)
	}
	if passed := mark.After(s.upto); passed || s.fresh {
		for _, h := range s.live {
			for _, m := range h.members {
				if passed && m.ended.IsZero() {
					m.advance(mark)
				}
				m.flush(&o)
			}
		}
		s.upto, s.fresh = latestOf(s.upto, mark), false
	}
	oldest := s.upto.Add(-Kept).Truncate(Hour)
	all := slices.DeleteFunc(latest(o.slices), func(x history.Slice) bool { return x.From.Before(oldest) || !x.To.After(x.From) })
	slices.SortFunc(all, compareSlices)
	slices.SortFunc(o.cuts, compareCuts)
	return earliestCuts(o.cuts), all
}

// flush moves the output of all tracks into that of a batch.
func (m *member) flush(o *out) {
	for _, t := range m.tracks {
		t.flush(o)
	}
}

// advance makes slices up to a mark.
func (m *member) advance(mark time.Time) {
	m.count(mark)
	for _, t := range m.tracks {
		t.extend(mark)
	}
}

// count takes the counters whose marks an instant has passed.
func (m *member) count(upto time.Time) {
	n := 0
	for ; n < len(m.heard) && !markOf(m.heard[n].At).After(upto); n++ {
		for slot, t := range m.tracks {
			if counter, counted := counterOf(m.heard[n], slot); counted {
				t.measure(markOf(m.heard[n].At), counter)
			}
		}
	}
	m.heard = slices.Clone(m.heard[n:])
}

// take follows one grant.
func (s *Slicer) take(o *out, g history.Grant) {
	if g.Committed.IsZero() {
		return
	}
	h := s.live[g.Tx]
	if h == nil {
		h = &held{members: map[int]*member{}}
		s.live[g.Tx] = h
	}
	final := finalUse(g)
	for _, m := range g.Members {
		at := h.members[m.Index]
		end := millis(earliest(farAway, g.Ended, m.Ended))
		switch same, known := h.compare(g, m); {
		case !known:
			at = s.begin(g, m)
		case !same, !at.ended.IsZero() && end.After(at.ended): // a dead node is back, and holds its part
			at = s.beginAgain(o, g, m, at)
		}
		h.members[m.Index] = at
		if use, known := final[m.Index]; end.Before(farAway) && (known || !at.ended.Equal(end)) {
			at.end(millis(g.Committed), end, use, known)
			at.ended = end
		}
		at.flush(o)
	}
	if h.grant = g; !g.Ended.IsZero() {
		delete(s.live, g.Tx)
	}
}

// farAway is behind every end.
var farAway = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// compare reports whether the grant had a member before, and whether its slices are the
// same but for their ends.
func (h *held) compare(now history.Grant, m history.Member) (same, known bool) {
	i := slices.IndexFunc(h.grant.Members, func(x history.Member) bool { return x.Index == m.Index })
	if i < 0 {
		return false, false
	}
	b := h.grant.Members[i]
	return h.grant.Committed.Equal(now.Committed) && b.Node == m.Node && b.GPUModel == m.GPUModel &&
		maps.Equal(b.Requested, m.Requested) && maps.Equal(b.Allocated, m.Allocated) && maps.Equal(b.Limits, m.Limits), true
}

// begin begins the slices of a member that no batch has brought before. An earlier Slicer
// may have followed it, if it is older than the last mark.
func (s *Slicer) begin(g history.Grant, m history.Member) *member {
	return membersTracks(g, m, func(g history.Grant, _ history.Member, like history.Slice) *track {
		committed := millis(g.Committed)
		t := newTrack(like, committed)
		if committed.Before(s.upto) {
			t.cut(committed)
			t.extend(s.upto)
		}
		return t
	})
}

// beginAgain writes the slices of a member anew, whose amounts have changed. The use so far
// is spread evenly over them.
func (s *Slicer) beginAgain(o *out, g history.Grant, m history.Member, before *member) *member {
	at := s.begin(g, m)
	at.heard = before.heard
	for slot, t := range at.tracks {
		if b := before.tracks[slot]; b != nil && b.lost {
			t.lost = true
		} else if b != nil && b.count > 0 {
			t.measure(b.known, b.count)
			t.extend(s.upto)
		}
	}
	for slot, b := range before.tracks {
		if at.tracks[slot] == nil { // it holds none of the slot any more
			b.fresh = nil
			b.cut(millis(g.Committed))
			b.flush(o)
		}
	}
	return at
}

// end makes the last slices of a member. Where nobody knows its whole use, the last
// counter counts.
func (m *member) end(committed, at time.Time, final history.Use, known bool) {
	m.count(at)
	if !known && len(m.heard) > 0 && !m.heard[0].At.After(at) {
		final, known = m.heard[0], true
	}
	for slot, t := range m.tracks {
		var counter *int64
		if c, counted := counterOf(final, slot); known && counted {
			counter = &c
		}
		t.end(committed, at, counter)
	}
}

func latestOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
