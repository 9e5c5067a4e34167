package edit

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// Kept is an object as the store has it: its metadata has the server's part, its
// status is empty.
type Kept[T any] struct {
	Object T
	Rev    resource.Revision
}

// Copy is the object for a caller. The values that it points to never change.
func (k *Kept[T]) Copy() *T {
	object := k.Object
	return &object
}

// At returns metadata with the revision of its key.
func At(m api.ObjectMeta, rev resource.Revision) api.ObjectMeta {
	m.ResourceVersion = strconv.FormatInt(int64(rev), 10)
	return m
}

// Encode writes the operator's part of a document. m is the metadata of object, whose
// status is empty already.
func Encode[T any](object *T, m *api.ObjectMeta) json.RawMessage {
	*m = api.ObjectMeta{Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: m.Annotations}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // documents are kept as they were written
	if err := e.Encode(object); err != nil {
		panic("edit: encode an object: " + err.Error()) // it was decoded
	}
	return bytes.TrimSpace(b.Bytes())
}
