package service

import "github.com/musterd/muster/resource"

// Page selects objects of a list. The zero value is all of them as they are now.
type Page[T any] struct {
	// After is the position, NAMESPACE/NAME, of the last object of the page
	// before; "" begins the list.
	After string
	// At is the revision of the list that the page goes on with, 0 for the newest
	// one.
	At resource.Revision
	// AsOf is the state of a list that begins.
	AsOf AsOf
	// Limit is the greatest number of objects; 0 = no limit.
	Limit int
	// Prefix selects objects whose names begin with it; "" = all. Within a namespace it
	// saves the look at the others.
	Prefix string
	// Match selects objects; nil = all.
	Match func(*T) bool
}
