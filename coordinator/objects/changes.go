package objects

// WatchOptions select the objects of a watch, and the place where the watch begins.
type WatchOptions struct {
	Kind      Kind
	Namespace string // "" being all
	// After is the place to go on from; the zero value begins with ADDED of all
	// objects.
	After ID
	// Cached begins with the objects that the cache has, however old they are.
	// Else the watch has everything that was acknowledged before the call.
	Cached bool
}

// Changes are the next changes of a watch.
type Changes struct {
	// Events in their order. Those of the objects that were there when the watch
	// began have no ID, since no watch can go on between them.
	Events []*Event
	// Bookmark is a place behind all that was watched up to now; the zero value
	// where there is none this time.
	Bookmark ID
}
