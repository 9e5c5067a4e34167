package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
)

// Bounds of one page of a list.
const (
	// MaxPage is the default and the greatest number of objects of a page.
	MaxPage = 500
	// maxPageBytes bounds the JSON of a page's objects: a page ends early with
	// the object that goes beyond. A page has at least one object.
	maxPageBytes = 1 << 20
	// maxScan bounds the objects that are looked at for a page. A page may then
	// have fewer objects than its limit, or none, and still say that there are
	// more.
	maxScan = 4000
	// visitObjects and visitScan bound the objects that one visit of the
	// coordinator's state renders and looks at: other requests come between two
	// visits, so that a list delays none of them for long.
	visitObjects = 50
	visitScan    = 250
)

// gather makes a page in several visits, each of which returns objects and the
// position to go on after. An object that was made or removed between two visits
// shows or not by its position, as between two pages. The resourceVersion is that
// of the first visit.
func gather[T any](p Page[T], visit func(Page[T]) ([]T, api.ListMeta, error)) (all []T, meta api.ListMeta, err error) {
	limit, step := p.Limit, visitObjects
	if p.Match != nil {
		step = visitScan
	}
	for scanned := 0; scanned < maxScan; scanned += step {
		p.Limit = min(visitObjects, limit-len(all))
		items, now, err := visit(p)
		if err != nil {
			return nil, meta, err
		}
		if scanned == 0 {
			meta = now
		}
		all, meta.Continue = append(all, items...), now.Continue
		if now.Continue == "" || len(all) >= limit {
			break
		}
		p.After = now.Continue
	}
	return all, meta, nil
}

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
		scan = max(visitScan, p.Limit)
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

// pageOf are the parameters of a list as a page.
func (l listed[T]) pageOf(q *query) Page[T] {
	p := Page[T]{Limit: q.pageLimit()}
	if q.continues {
		p.After = q.after
	}
	if len(q.labels) > 0 || len(q.fields) > 0 {
		p.Match = func(v *T) bool { return q.labels.matches(l.meta(v).Labels) && l.matches(v, q.fields) }
	}
	return p
}

// pageLimit is the number of objects of a page: as many as were asked for, and
// no more than there may be.
func (q *query) pageLimit() int {
	if q.limit == 0 {
		return MaxPage
	}
	return min(q.limit, MaxPage)
}

// answer encodes a list, at most maxPageBytes of it. more is the position that
// the page ends before, "" at the end of the list.
func (l listed[T]) answer(kind string, meta api.ListMeta, items []T, more string) (a answer, err error) {
	body := new(pieces)
	defer func() {
		if a.list == nil { // after an error or a panic
			body.drop()
		}
	}()
	var one bytes.Buffer // of one object, used again for the next
	encode := json.NewEncoder(&one)
	for i := range items {
		one.Reset()
		if err := encode.Encode(&items[i]); err != nil {
			return answer{}, err
		}
		object := one.Bytes()[:one.Len()-1] // without the encoder's line end
		if i > 0 && body.size+1+len(object) > maxPageBytes {
			more = position(l.meta(&items[i-1]))
			break
		}
		if i > 0 {
			_, _ = body.Write([]byte{','})
		}
		_, _ = body.Write(object)
	}
	if more != "" {
		meta.Continue = encodeContinue(more)
	}
	head, err := json.Marshal(struct {
		Kind     string       `json:"kind"`
		Metadata api.ListMeta `json:"metadata"`
	}{kind, meta})
	if err != nil {
		return answer{}, err
	}
	_, _ = body.Write([]byte("]}"))
	a = ok(nil)
	// By hand: encoding/json would check and copy each object once more.
	a.head = append(head[:len(head)-1], `,"items":[`...)
	a.list = body
	return a, nil
}
