package projector

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/resource"
)

// comparedSlices is how far back slices are compared: those of an older hour have their
// sums already.
const comparedSlices = 6 * time.Hour

// expectedSlices are the slices that the history has of the grants of the store, hour by
// hour, where those of live grants reach up to an instant in milliseconds.
func expectedSlices(grants []history.Grant, upto int64) (all []history.Slice) {
	if upto == 0 {
		return nil // none were made yet
	}
	sliced := time.UnixMilli(upto).UTC()
	from := sliced.Add(-comparedSlices).Truncate(time.Hour)
	for _, g := range grants {
		for _, s := range usage.Slices(g, sliced) {
			if !s.From.Before(from) {
				all = append(all, s)
			}
		}
	}
	return all
}

// hourKey names the use of one slot by one member within an hour.
type hourKey struct {
	tx     resource.TxID
	member int
	slot   resource.Name
	hour   int64
}

func hourOf(s history.Slice) hourKey {
	return hourKey{s.Tx, s.Member, s.Slot, s.From.Truncate(time.Hour).UnixMilli()}
}

func (k hourKey) String() string {
	return fmt.Sprintf("%s member %d %s in the hour %s", k.tx, k.member, k.slot, instant(time.UnixMilli(k.hour)))
}

// joined are the slices of an hour as one: the measured use cuts an hour at marks that the
// store does not tell.
type joined struct {
	history.Slice
	pieces int
	// fault is why the pieces are not one interval of one amount.
	fault string
}

// join joins slices hour by hour. Slices of length 0 count as none.
func join(list []history.Slice) map[hourKey]joined {
	all := map[hourKey]joined{}
	for _, s := range slices.SortedFunc(slices.Values(list), func(a, b history.Slice) int { return a.From.Compare(b.From) }) {
		if !s.To.After(s.From) {
			continue
		}
		j, known := all[hourOf(s)]
		switch {
		case !known:
			j = joined{Slice: s}
		case !j.To.Equal(s.From):
			j.fault = fmt.Sprintf("a slice ends at %s and the next begins at %s", instant(j.To), instant(s.From))
		case j.Allocated != s.Allocated:
			j.fault = fmt.Sprintf("slices of %d and of %d", j.Allocated, s.Allocated)
		}
		if known {
			if j.To.Before(s.To) {
				j.To = s.To
			}
			if s.Counter != nil {
				j.Counter = s.Counter
			}
			if s.Measured != nil && j.Measured != nil {
				sum := resource.SaturatingAdd(*j.Measured, *s.Measured)
				j.Measured = &sum
			} else if s.Measured != nil {
				j.Measured = s.Measured
			}
		}
		j.pieces++
		all[hourOf(s)] = j
	}
	return all
}

// compareSlices compares the intervals and the amounts of each hour, and the whole use of
// members that have ended.
func compareSlices(want, has history.Batch) (found []Difference) {
	in, wanted := join(has.Slices), join(want.Slices)
	differ := func(k hourKey, field, history, store string) {
		if history != store {
			found = append(found, Difference{"slice", k.String(), field, history, store})
		}
	}
	for _, k := range sortedHours(wanted) {
		s := wanted[k]
		there, known := in[k]
		if !known {
			found = append(found, Difference{Kind: "slice", Key: k.String(), Store: "present"})
			continue
		}
		differ(k, "pieces", there.fault, "")
		differ(k, "from", instant(there.From), instant(s.From))
		differ(k, "to", instant(there.To), instant(s.To))
		differ(k, "allocated", fmt.Sprint(there.Allocated), fmt.Sprint(s.Allocated))
		if s.Counter != nil && isLast(wanted, k) && there.Counter != nil && *there.Counter < *s.Counter {
			differ(k, "counter", fmt.Sprint(*there.Counter), fmt.Sprint(*s.Counter))
		}
	}
	for _, k := range sortedHours(in) {
		if _, known := wanted[k]; !known {
			found = append(found, Difference{Kind: "slice", Key: k.String(), History: "present"})
		}
	}
	return found
}

// isLast reports whether an hour is the last one of a member's slot.
func isLast(all map[hourKey]joined, k hourKey) bool {
	k.hour += time.Hour.Milliseconds()
	_, more := all[k]
	return !more
}

func sortedHours(all map[hourKey]joined) []hourKey {
	return slices.SortedFunc(maps.Keys(all), func(a, b hourKey) int {
		return cmp.Or(cmp.Compare(a.tx, b.tx), cmp.Compare(a.member, b.member), cmp.Compare(a.slot, b.slot), cmp.Compare(a.hour, b.hour))
	})
}

// repairedSlices write the hours that differ anew: what was measured within an hour stays
// that of the hour. settled leaves out the last hours of grants that the store has as live:
// a projector writes them.
func repairedSlices(want, has history.Batch, settled bool) (all []history.Slice) {
	in, wanted := join(has.Slices), join(want.Slices)
	differ := map[string]bool{}
	for _, d := range compareSlices(want, has) {
		differ[d.Key] = true
	}
	live := map[resource.TxID]bool{}
	for i := range want.Grants {
		live[want.Grants[i].Tx] = want.Grants[i].Ended.IsZero()
	}
	repairs := func(k hourKey) bool {
		return differ[k.String()] && !(settled && live[k.tx] && isLast(wanted, k))
	}
	newest := map[hourKey]int64{} // counters of a member's slot
	for _, s := range has.Slices {
		if !s.To.After(s.From) {
			continue
		}
		k := hourOf(s)
		if repairs(k) {
			gone := s
			gone.To, gone.Measured, gone.Counter = s.From, nil, nil
			all = append(all, gone)
		}
		if k.hour = 0; s.Counter != nil {
			newest[k] = max(newest[k], *s.Counter)
		}
	}
	for _, k := range sortedHours(wanted) {
		if !repairs(k) {
			continue
		}
		row, there := wanted[k].Slice, in[k]
		track := k
		track.hour = 0
		if count, counted := newest[track]; counted {
			final := row.Counter
			row.Measured, row.Counter = there.Measured, there.Counter
			if final != nil && isLast(wanted, k) && *final > count {
				used := usage.Used(k.slot, *final-count)
				if row.Measured != nil {
					used = resource.SaturatingAdd(used, *row.Measured)
				}
				row.Measured, row.Counter = &used, final
			}
		}
		all = append(all, row)
	}
	return all
}
