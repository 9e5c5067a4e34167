package objects

// Selected is an event for a reader that selects objects, as objects come into
// the selection and leave it: its type, "" where the reader gets nothing, and its
// object. An object that leaves the selection is DELETED, with the last object
// that was in it and the revision of the change.
func Selected(e *Event, selects func(any) bool) (EventType, any) {
	was := e.Before != nil && selects(e.Before)
	is := e.Type != Deleted && selects(e.Object)
	switch {
	case is && was:
		return Modified, e.Object
	case is:
		return Added, e.Object
	case was && e.Type == Deleted:
		return Deleted, e.Object
	case was:
		return Deleted, WithVersion(e.Before, e.ID.Revision)
	}
	return "", nil
}
