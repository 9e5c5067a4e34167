package rest

import (
	"bytes"
	"encoding/json"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// Bounds of one page of a list.
const (
	// maxPageBytes bounds the JSON of a page's objects: a page ends early with
	// the object that goes beyond. A page has at least one object.
	maxPageBytes = 1 << 20
)

// listAnswer encodes a list, at most maxPageBytes of it. more is the position that
// the page ends before, "" at the end of the list.
func listAnswer[T any](l service.Listed[T], kind string, meta api.ListMeta, items []T, more string) (a answer, err error) {
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
			more = service.Position(l.Meta(&items[i-1]))
			break
		}
		if i > 0 {
			_, _ = body.Write([]byte{','})
		}
		_, _ = body.Write(object)
	}
	if more != "" {
		meta.Continue = service.EncodeContinue(more, meta.ResourceVersion)
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
