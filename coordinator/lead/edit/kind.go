package edit

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

// Kind is the rules of one kind of objects. The functions below Typed may be nil.
type Kind[T any] struct {
	// Noun begins messages, and its first word the UIDs: "quota forest".
	Noun string
	// Prefix is the part of the keys before the name.
	Prefix string
	Decode func([]byte) (*T, *api.Status)
	Meta   func(*T) *api.ObjectMeta
	Codec  Codec
	// Typed is an object with the kind and the specification of another, and no
	// metadata.
	Typed func(*T) T
	// Judge refuses an object, or completes the write of one. before is nil for a new
	// object.
	Judge func(v View, before *Kept[T], object *T, w *Write) *api.Status
	// Used refuses to delete an object in use, or completes the write.
	Used func(v View, object *T, w *Write) *api.Status
	// Missing is the answer where there is no such object; nil = "NOUN NAME not found".
	Missing func(name string) *api.Status
	// Undeletable, where not nil, is asked about the deletion of an object that nobody
	// wrote, and answers nil where there is no such object either.
	Undeletable func(v View, name string) *api.Status
	// WakesNobody: no change of such an object lets a unit run that waits.
	WakesNobody bool
}

// NotFound is the answer where there is no object of the name.
func (k *Kind[T]) NotFound(name string) *api.Status {
	if k.Missing != nil {
		return k.Missing(name)
	}
	return api.Errorf(404, "%s %s not found", k.Noun, name)
}

// Key is the key of an object.
func (k *Kind[T]) Key(name string) string { return record.NamedKey(k.Prefix, name) }

// NameIn is the name in the key of an object.
func (k *Kind[T]) NameIn(key string) (string, error) {
	return record.ParseNamedKey(k.Noun, key, k.Prefix)
}
