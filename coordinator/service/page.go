package service

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// VisitScan bounds the objects that one visit of the coordinator's state looks at,
// where a page selects some of them: other requests come between two visits.
const VisitScan = 250

// Page selects objects of a list. The zero value is all of them.
type Page[T any] struct {
	// After is the position, NAMESPACE/NAME, of the last object of the page
	// before; "" begins the list.
	After string
	// Limit is the greatest number of objects; 0 = no limit.
	Limit int
	// Match selects objects; nil = all.
	Match func(*T) bool
}

// Of cuts the page out of all objects of a kind. keys are their positions in
// any order, render makes the object of a position. The page is in the order of
// namespace and name; more is the position to go on after, "" at the end.
func (p Page[T]) Of(keys iter.Seq[string], render func(key string) *T) (items []T, more string) {
	scan := 0
	if p.Limit > 0 {
		scan = max(VisitScan, p.Limit)
	}
	first, left := smallest(keys, p.After, scan)
	items = make([]T, 0, len(first))
	for i, key := range first {
		v := render(key)
		if p.Match != nil && !p.Match(v) {
			continue
		}
		items = append(items, *v)
		if p.Limit > 0 && len(items) == p.Limit && (left || i < len(first)-1) {
			return items, key
		}
	}
	if left {
		return items, first[len(first)-1]
	}
	return items, ""
}

// smallest returns at most most keys beyond after, ascending, and whether there
// are further ones; 0 = all. It takes O(n) where most is small against n.
func smallest(keys iter.Seq[string], after string, most int) (found []string, left bool) {
	for key := range keys {
		if after != "" && comparePositions(key, after) <= 0 {
			continue
		}
		if left && comparePositions(key, found[most-1]) > 0 {
			continue // found is sorted up to most whenever left is set
		}
		found = append(found, key)
		if most > 0 && len(found) >= 2*most {
			slices.SortFunc(found, comparePositions)
			found, left = found[:most], true
		}
	}
	slices.SortFunc(found, comparePositions)
	if most > 0 && len(found) > most {
		found, left = found[:most], true
	}
	return found, left
}

// comparePositions orders by namespace, then by name.
func comparePositions(a, b string) int {
	an, am, _ := strings.Cut(a, "/")
	bn, bm, _ := strings.Cut(b, "/")
	return cmp.Or(cmp.Compare(an, bn), cmp.Compare(am, bm))
}
