package rest

import (
	"bytes"
	"encoding/json"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
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
	// visitObjects bounds the objects that one visit of the coordinator's state
	// renders, as service.VisitScan those that it looks at.
	visitObjects = 50
)

// gather makes a page in several visits, each of which returns objects and the
// position to go on after. An object that was made or removed between two visits
// shows or not by its position, as between two pages. The resourceVersion is that
// of the first visit.
func gather[T any](p service.Page[T], visit func(service.Page[T]) ([]T, api.ListMeta, error)) (all []T, meta api.ListMeta, err error) {
	limit, step := p.Limit, visitObjects
	if p.Match != nil {
		step = service.VisitScan
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

// pageOf are the parameters of a list as a page.
func (l listed[T]) pageOf(q *query) service.Page[T] {
	p := service.Page[T]{Limit: q.pageLimit()}
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
