package usage

import (
	"math/big"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// track writes the slices of one slot of one member, as time goes on.
//
// The interval from known to reach is written as if nothing measured it: slices that
// begin at known and at each full hour. A counter that comes for a later instant divides
// the use evenly over the whole interval, under the same keys.
type track struct {
	like  history.Slice
	known time.Time     // up to which the use is counted; the commit at first
	count int64         // the counter there
	last  history.Slice // the last slice that has a counter; without Counter: none
	reach time.Time     // up to which there are slices
	// lost: the counter at known is not known, so that only the whole use of the member can
	// be counted, at its end.
	lost bool

	// cutAt and fresh are the output since the last flush. Cuts come before slices.
	cutAt time.Time // zero: no cut
	fresh []history.Slice
}

// newTrack is a track without slices. from is the commit, or a later instant where the
// slices before it are left as they are.
func newTrack(like history.Slice, from time.Time) *track {
	return &track{like: like, known: from, reach: from}
}

// goOn is a track whose slices an earlier Slicer has written. last is the last of them that
// has a counter, the zero value for none; committed is the instant of the commit, and upto
// that up to which there should be slices. The slices behind some instant are cut and
// written anew: the earlier Slicer may have known less.
func goOn(like, last history.Slice, committed, upto time.Time) *track {
	t := newTrack(like, committed)
	if last.Counter != nil {
		t.known, t.count, t.reach = last.To, *last.Counter, last.To
		t.last = like
		t.last.From, t.last.To, t.last.Measured, t.last.Counter = last.From, last.To, last.Measured, last.Counter
	} else {
		t.reach = latestOf(committed, lastHour(upto))
	}
	t.cut(t.reach)
	t.extend(upto)
	return t
}

// lastHour is the full hour at which the hour begins that an instant ends or lies in.
func lastHour(t time.Time) time.Time { return t.Add(-time.Millisecond).Truncate(Hour) }

// cut takes back the slices behind an instant.
func (t *track) cut(at time.Time) {
	if t.cutAt.IsZero() || at.Before(t.cutAt) {
		t.cutAt = at
	}
	t.fresh = slices.DeleteFunc(t.fresh, func(s history.Slice) bool { return !s.From.Before(at) })
	for i := range t.fresh {
		t.fresh[i].To = earliest(t.fresh[i].To, at)
	}
}

// flush moves the output into that of a batch.
func (t *track) flush(o *out) {
	if !t.cutAt.IsZero() {
		o.cuts = append(o.cuts, history.Cut{Tx: t.like.Tx, Member: t.like.Member, Slot: t.like.Slot, At: t.cutAt})
	}
	o.slices = append(o.slices, t.fresh...)
	t.cutAt, t.fresh = time.Time{}, nil
}

// extend makes slices up to an instant at which nobody knows the use.
func (t *track) extend(to time.Time) {
	for _, s := range hoursOf(t.like, t.known, to) {
		if s.To.After(t.reach) {
			t.fresh = append(t.fresh, s)
		}
	}
	t.reach = latestOf(t.reach, to)
}

// measure makes slices up to an instant, which is not before reach, at which the counter
// is as it is. A counter that has fallen says nothing.
func (t *track) measure(to time.Time, counter int64) {
	if t.lost || counter < t.count || !to.After(t.known) {
		t.extend(to)
		return
	}
	pieces := hoursOf(t.like, t.known, to)
	spread(pieces, t.count, counter)
	if t.reach.After(t.known) {
		t.cut(t.known)
	}
	if t.continues(pieces[0]) {
		used := resource.SaturatingAdd(*t.last.Measured, *pieces[0].Measured)
		pieces[0].From, pieces[0].Measured = t.last.From, &used
	}
	t.fresh = append(t.fresh, pieces...)
	t.known, t.count, t.last, t.reach = to, counter, pieces[len(pieces)-1], to
}

// continues reports whether a slice has the hour and the use per time of the last one, so
// that both are one. A difference that rounding explains is none.
func (t *track) continues(s history.Slice) bool {
	if t.last.Counter == nil || !t.last.To.Equal(s.From) || !t.last.From.Truncate(Hour).Equal(s.From.Truncate(Hour)) {
		return false
	}
	one, two := t.last.To.Sub(t.last.From).Milliseconds(), s.To.Sub(s.From).Milliseconds()
	difference := new(big.Int).Mul(big.NewInt(*t.last.Measured), big.NewInt(two))
	difference.Sub(difference, new(big.Int).Mul(big.NewInt(*s.Measured), big.NewInt(one)))
	return difference.CmpAbs(new(big.Int).Mul(big.NewInt(perCount(s.Slot)), big.NewInt(one+two))) <= 0
}

// end makes the last slices. final is the counter at the end, nil where nobody knows it.
func (t *track) end(committed, at time.Time, final *int64) {
	if at.Before(t.reach) {
		from := at
		if at.After(t.known) { // the hour is written anew: a blind Slicer may have cut it
			from = latestOf(t.known, lastHour(at))
		}
		t.cut(from)
		t.reach = latestOf(t.known, from)
	}
	switch {
	case final == nil:
		t.extend(at)
	case t.lost, !at.After(t.known) && (t.last.Counter == nil || !at.After(t.last.From)):
		t.whole(committed, at, *final)
	case !at.After(t.known): // within the last slice that has a counter
		piece := []history.Slice{t.last}
		piece[0].To = at
		before := t.count - *t.last.Measured/perCount(t.like.Slot)
		spread(piece, before, max(before, *final))
		t.fresh = append(t.fresh, piece...)
	default:
		t.measure(at, max(t.count, *final))
	}
}

// whole writes all slices of the member anew, with the use spread evenly.
func (t *track) whole(committed, at time.Time, final int64) {
	if t.lost || t.known.After(committed) {
		t.cut(committed)
	}
	pieces := hoursOf(t.like, committed, at)
	spread(pieces, 0, final)
	t.fresh = append(t.fresh, pieces...)
}
