package usage

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// Marks divide an hour: the measured use of a member is told apart by no shorter
// interval.
const (
	Mark = 5 * time.Minute
	Hour = time.Hour
	Day  = 24 * time.Hour
)

// Sample is the measured use of a member from its start on: Used are base units times
// milliseconds, which never fall. A name that Used lacks is not measured.
type Sample struct {
	At   time.Time
	Used resource.Vector
}

// Measured are the samples of the members of one grant by their index, each ascending
// by instant. A sample that is lost costs resolution, never a total: a slice has the
// difference between two instants.
type Measured map[int][]Sample

// Slices are the intervals of a grant from its commit up to an instant, or up to its
// end where that is earlier, in base units. An interval ends at every full hour (UTC);
// within the hour it ends at a mark where the measured use changes there, and nowhere
// else. The slices ascend by member, slot and instant. A grant without a commit has
// none.
//
// Instants are whole milliseconds; a finer part is cut off.
func Slices(g history.Grant, measured Measured, upto time.Time) []history.Slice {
	if g.Committed.IsZero() {
		return nil
	}
	var all []history.Slice
	for _, m := range g.Members {
		from := g.Committed.UTC().Truncate(time.Millisecond)
		to := earliest(upto, g.Ended, m.Ended).UTC().Truncate(time.Millisecond)
		for _, slot := range slots(m) {
			all = appendSlices(all, sliceOf(g, m, slot), from, to, seriesOf(measured[m.Index], slot, from))
		}
	}
	return all
}

// earliest is the first of an instant and those others that are set.
func earliest(at time.Time, others ...time.Time) time.Time {
	for _, o := range others {
		if !o.IsZero() && o.Before(at) {
			at = o
		}
	}
	return at
}

// slots are the names of which the member requests or holds an amount, ascending.
func slots(m history.Member) []resource.Name {
	names := map[resource.Name]bool{}
	for _, v := range []resource.Vector{m.Requested, m.Allocated} {
		for name, amount := range v {
			if amount > 0 {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// sliceOf is a slice of the member's slot without its interval.
func sliceOf(g history.Grant, m history.Member, slot resource.Name) history.Slice {
	s := history.Slice{
		Tx: g.Tx, Member: m.Index, Unit: g.Unit, Namespace: g.Namespace, Tenant: g.Tenant, Node: m.Node, Slot: slot,
		Requested: m.Requested[slot], Allocated: m.Allocated[slot], Limit: m.Limits[slot],
	}
	if hasModel(slot) {
		s.GPUModel = m.GPUModel
	}
	return s
}

// hasModel reports whether a slot is of GPUs or their instances: only these have sums
// for each model.
func hasModel(slot resource.Name) bool {
	_, mig, err := slot.MIGProfile()
	return slot == resource.GPU || mig && err == nil
}

// appendSlices cuts from..to and adds a slice for each interval.
func appendSlices(all []history.Slice, like history.Slice, from, to time.Time, use series) []history.Slice {
	for at := from; at.Before(to); {
		next := nextCut(at, to, use)
		s := like
		s.From, s.To, s.Measured = at, next, use.between(at, next)
		all = append(all, s)
		at = next
	}
	return all
}

// nextCut is the end of the interval that begins at the instant.
func nextCut(at, to time.Time, use series) time.Time {
	hour := earliest(to, at.Truncate(Hour).Add(Hour))
	for mark := at.Truncate(Mark).Add(Mark); mark.Before(hour); mark = mark.Add(Mark) {
		if use.changes(windowBegin(at, mark), mark, earliest(hour, mark.Add(Mark))) {
			return mark
		}
	}
	return hour
}

// windowBegin is the beginning of the window that ends at a mark, no earlier than at.
func windowBegin(at, mark time.Time) time.Time {
	if begin := mark.Add(-Mark); begin.After(at) {
		return begin
	}
	return at
}

// series is the cumulative use of one slot, ascending by instant; between two points
// it is a straight line. Empty: not measured.
type series []point

type point struct {
	at   int64 // milliseconds
	used int64
}

// seriesOf are the samples of the slot from an instant on, which itself counts as 0.
// A sample that lies before the one behind it in amount or time is left out.
func seriesOf(samples []Sample, slot resource.Name, from time.Time) series {
	var s series
	for _, sample := range samples {
		used, known := sample.Used[slot]
		if !known {
			continue
		}
		if s == nil {
			s = series{{at: from.UnixMilli()}}
		}
		last := s[len(s)-1]
		if at := sample.At.UnixMilli(); at > last.at && used >= last.used {
			s = append(s, point{at, used})
		}
	}
	if len(s) < 2 {
		return nil
	}
	return s
}

// at is the use up to an instant, rounded down: before the first point 0, behind the last
// that of the last. Differences of it add up without a rest.
func (s series) at(t time.Time) int64 {
	ms := t.UnixMilli()
	i, found := slices.BinarySearchFunc(s, ms, func(p point, ms int64) int { return cmp.Compare(p.at, ms) })
	switch {
	case found:
		return s[i].used
	case i == 0:
		return 0
	case i == len(s):
		return s[i-1].used
	}
	a, b := s[i-1], s[i]
	part := new(big.Int).Mul(big.NewInt(b.used-a.used), big.NewInt(ms-a.at))
	return a.used + part.Quo(part, big.NewInt(b.at-a.at)).Int64()
}

// between is the use of an interval; nil where the series ends before it.
func (s series) between(from, to time.Time) *int64 {
	if len(s) == 0 || s[len(s)-1].at <= from.UnixMilli() {
		return nil
	}
	used := s.at(to) - s.at(from)
	return &used
}

// changes reports whether the use per time differs between from..mark and mark..to, or is
// known of only one of them. A difference that rounding explains is none.
func (s series) changes(from, mark, to time.Time) bool {
	before, after := s.between(from, mark), s.between(mark, to)
	if before == nil || after == nil {
		return (before == nil) != (after == nil)
	}
	one, two := mark.Sub(from).Milliseconds(), to.Sub(mark).Milliseconds()
	difference := new(big.Int).Mul(big.NewInt(*before), big.NewInt(two))
	difference.Sub(difference, new(big.Int).Mul(big.NewInt(*after), big.NewInt(one)))
	return difference.CmpAbs(big.NewInt(one+two)) > 0
}

// sliceKey tells slices apart, as the warehouse does.
type sliceKey struct {
	tx     resource.TxID
	member int
	slot   resource.Name
	from   int64
}

func keyOf(s history.Slice) sliceKey { return sliceKey{s.Tx, s.Member, s.Slot, s.From.UnixMilli()} }

// Change is what has to be written where the slices of a grant were those before and are
// now those after: the slices that differ, and one of length 0 for each that is gone.
func Change(before, after []history.Slice) []history.Slice {
	old := make(map[sliceKey]history.Slice, len(before))
	for _, s := range before {
		old[keyOf(s)] = s
	}
	var changed []history.Slice
	for _, s := range after {
		was, known := old[keyOf(s)]
		delete(old, keyOf(s))
		if !known || !equal(was, s) {
			changed = append(changed, s)
		}
	}
	for _, s := range before {
		if _, gone := old[keyOf(s)]; gone && s.To.After(s.From) {
			s.To, s.Measured = s.From, nil
			changed = append(changed, s)
		}
	}
	return changed
}

// equal reports whether two slices of one key say the same.
func equal(a, b history.Slice) bool {
	sameMeasured := a.Measured == nil && b.Measured == nil || a.Measured != nil && b.Measured != nil && *a.Measured == *b.Measured
	a.Measured, b.Measured = nil, nil
	sameTime := a.To.Equal(b.To)
	a.From, a.To, b.From, b.To = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return sameMeasured && sameTime && a == b
}
