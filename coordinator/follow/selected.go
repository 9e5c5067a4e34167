package follow

import "github.com/musterd/muster/coordinator/objects"

// Selected is an event for a reader that selects objects, as objects come into
// the selection and leave it: its type, "" where the reader gets nothing, and its
// object. An object that leaves the selection is DELETED, with the last object
// that was in it and the revision of the change.
func Selected(e *objects.Event, selects func(any) bool) (objects.EventType, any) {
	was := e.Before != nil && selects(e.Before)
	is := e.Type != objects.Deleted && selects(e.Object)
	switch {
	case is && was:
		return objects.Modified, e.Object
	case is:
		return objects.Added, e.Object
	case was && e.Type == objects.Deleted:
		return objects.Deleted, e.Object
	case was:
		return objects.Deleted, objects.WithVersion(e.Before, e.ID.Revision)
	}
	return "", nil
}
