package service

import (
	"context"

	"github.com/musterd/muster/coordinator/objects"
)

// Watches follow the objects of a kind. Every coordinator serves them by itself.
type Watches interface {
	// Watch opens a watch, which the caller closes. It is refused with 410 where
	// the changes after the place to go on from are kept no more, and with 503
	// where this coordinator has not caught up with the store.
	Watch(ctx context.Context, o objects.WatchOptions) (Watch, error)
}

// Watch is the changes of one kind from a place in the history on: none is
// missed and none comes twice. One goroutine uses it.
type Watch interface {
	// Next waits for the next changes. After an error the watch is over; the error
	// is an *api.Status, with 410 where the reader has to begin anew, or the
	// context's.
	Next(ctx context.Context) (objects.Changes, error)
	Close()
}
