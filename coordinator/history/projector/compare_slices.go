package projector

import (
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/usage"
)

// comparedSlices is how far back slices are compared: those of an older hour have their
// sums already.
const comparedSlices = 6 * time.Hour

// expectedSlices are the slices that the history has of the grants of the store, where
// those of live grants reach up to an instant in milliseconds.
func expectedSlices(grants []history.Grant, upto int64) (all []history.Slice) {
	if upto == 0 {
		return nil // none were made yet
	}
	sliced := time.UnixMilli(upto).UTC()
	from := sliced.Add(-comparedSlices).Truncate(time.Hour)
	for _, g := range grants {
		end := sliced
		if !g.Ended.IsZero() {
			end = g.Ended
		}
		for _, s := range usage.Slices(g, usage.FinalUse(g), end) {
			if !s.From.Before(from) {
				all = append(all, s)
			}
		}
	}
	return all
}

func sliceKey(s history.Slice) string {
	return fmt.Sprintf("%s member %d %s from %s", s.Tx, s.Member, s.Slot, instant(s.From))
}

func indexSlices(list []history.Slice) map[string]history.Slice {
	all := make(map[string]history.Slice, len(list))
	for _, s := range list {
		all[sliceKey(s)] = s
	}
	return all
}

// compareSlices compares the amounts and the ends of slices. A slice of length 0 counts
// as none.
func compareSlices(want, has history.Batch) (found []Difference) {
	in, wanted := indexSlices(has.Slices), indexSlices(want.Slices)
	for _, s := range want.Slices {
		there, known := in[sliceKey(s)]
		switch {
		case !known && s.To.After(s.From):
			found = append(found, Difference{Kind: "slice", Key: sliceKey(s), Store: "present"})
		case known && !there.To.Equal(s.To):
			found = append(found, Difference{"slice", sliceKey(s), "to", instant(there.To), instant(s.To)})
		case known && there.Allocated != s.Allocated:
			found = append(found, Difference{"slice", sliceKey(s), "allocated", fmt.Sprint(there.Allocated), fmt.Sprint(s.Allocated)})
		}
	}
	for _, s := range has.Slices {
		if _, known := wanted[sliceKey(s)]; !known && s.To.After(s.From) {
			found = append(found, Difference{Kind: "slice", Key: sliceKey(s), History: "present"})
		}
	}
	return found
}

// repairedSlices are the slices that differ as they are to be; one that the store does
// not have gets length 0.
func repairedSlices(want, has history.Batch) (all []history.Slice) {
	in, wanted := indexSlices(has.Slices), indexSlices(want.Slices)
	for _, d := range compareSlices(want, has) {
		if s, known := wanted[d.Key]; known {
			all = append(all, s)
			continue
		}
		s := in[d.Key]
		s.To, s.Measured = s.From, nil
		all = append(all, s)
	}
	return all
}
