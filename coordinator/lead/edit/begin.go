package edit

import (
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// Begin begins to write an object in place of the one that is kept, nil for none: it
// judges the version that the update was made from, and gives the object its metadata.
func Begin[T any](v View, before *Kept[T], what string, given api.ObjectMeta, create bool, meta func(*T) *api.ObjectMeta, object *T) (Write, *api.Status) {
	var w Write
	kind, _, _ := strings.Cut(what, " ")
	switch {
	case before == nil && !create && given.ResourceVersion != "":
		return w, api.Errorf(409, "%s does not exist any more, the update was made from resourceVersion %s", what, given.ResourceVersion)
	case before == nil && !create && given.UID != "":
		return w, api.Errorf(409, "%s does not exist any more, the update is for the uid %.128s", what, given.UID)
	case before == nil:
		*meta(object) = Own(v, kind, given, nil)
	case create:
		return w, api.Errorf(409, "%s already exists", what).Because(api.AlreadyExists)
	default:
		if status := CheckVersion(what, given, *meta(&before.Object), before.Rev); status != nil {
			return w, status
		}
		*meta(object), w.Rev = Own(v, kind, given, meta(&before.Object)), before.Rev
	}
	w.UID = meta(object).UID
	return w, nil
}

// CheckVersion refuses an update that was made from another version than the object's,
// or for another object of the name.
func CheckVersion(what string, given, kept api.ObjectMeta, rev resource.Revision) *api.Status {
	return api.Preconditions{UID: given.UID, ResourceVersion: given.ResourceVersion}.Check(what, At(kept, rev))
}

// Own is the operator's part of an object's metadata, with a new identity or that of
// the object which it replaces. A new UID begins with kind.
func Own(v View, kind string, m api.ObjectMeta, before *api.ObjectMeta) api.ObjectMeta {
	o := api.ObjectMeta{Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: m.Annotations, UID: v.UID(kind), CreationTimestamp: v.Stamp}
	if before != nil {
		o.UID, o.CreationTimestamp = before.UID, before.CreationTimestamp
	}
	return o
}
