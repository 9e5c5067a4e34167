package warehouse

import (
	"time"

	"github.com/musterd/muster/resource"
)

// latestOf keeps one row of each key: that of the greatest revision, the first of
// equal ones. The order is that of the first row of each key.
func latestOf[R any, K comparable](all []R, key func(R) K, revision func(R) resource.Revision) []R {
	return pick(all, key, func(kept, row R) bool { return revision(row) > revision(kept) })
}

// lastOf keeps the last row of each key.
func lastOf[R any, K comparable](all []R, key func(R) K) []R {
	return pick(all, key, func(R, R) bool { return true })
}

func pick[R any, K comparable](all []R, key func(R) K, better func(kept, row R) bool) []R {
	place := make(map[K]int, len(all))
	kept := make([]R, 0, len(all))
	for _, row := range all {
		k := key(row)
		i, known := place[k]
		switch {
		case !known:
			place[k] = len(kept)
			kept = append(kept, row)
		case better(kept[i], row):
			kept[i] = row
		}
	}
	return kept
}

// first is the earlier of two instants; the zero Time is none.
func first(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
