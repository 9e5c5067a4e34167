package resttest

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/service"
)

// PageOf cuts a page out of the objects at some positions, always of the newest
// state; more is the position to go on after, "" at the end.
func PageOf[T any](p service.Page[T], positions iter.Seq[string], render func(string) *T) (items []T, more string) {
	compare := func(a, b string) int {
		an, am, _ := strings.Cut(a, "/")
		bn, bm, _ := strings.Cut(b, "/")
		return cmp.Or(cmp.Compare(an, bn), cmp.Compare(am, bm))
	}
	items = []T{}
	last := ""
	for _, at := range slices.SortedFunc(positions, compare) {
		if p.After != "" && compare(at, p.After) <= 0 {
			continue
		}
		if p.Limit > 0 && len(items) == p.Limit {
			return items, last
		}
		if last = at; p.Match == nil || p.Match(render(at)) {
			items = append(items, *render(at))
		}
	}
	return items, ""
}
