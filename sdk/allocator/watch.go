package allocator

import (
	"context"
	"sync/atomic"

	"github.com/musterd/muster/sdk"
)

// WatchOptions select the objects of a watch.
type WatchOptions struct {
	LabelSelector string
	FieldSelector string
	// ResourceVersion is the place to go on from: that of a list. "" begins with
	// ADDED for each allocation that is there.
	ResourceVersion string
}

// Event is one change.
type Event struct {
	Type   string // ADDED, MODIFIED or DELETED
	Object any    // *Allocation; for DELETED the last one
}

// Watcher is a watch as a channel.
type Watcher struct {
	events chan Event // of capacity 0: the reader sets the pace
	cancel context.CancelFunc
	err    atomic.Pointer[error]
}

// Watch begins a watch. It goes on at another server where one does not answer.
// A goroutine follows it until ctx ends, Stop is called or the watch has failed:
// the channel is closed then, and Err says why.
func (a Allocations) Watch(ctx context.Context, o WatchOptions) (*Watcher, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &Watcher{events: make(chan Event), cancel: cancel}
	changes := a.all.Watch(ctx, sdk.WatchOptions{LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector, After: o.ResourceVersion})
	go func() {
		defer cancel()
		defer close(w.events)
		for change, err := range changes {
			if err != nil {
				w.err.Store(&err)
				return
			}
			select {
			case w.events <- Event{Type: change.Type, Object: allocationOf(change.Object)}:
			case <-ctx.Done():
			}
		}
	}()
	return w, nil
}

// ResultChan returns the channel of the changes.
func (w *Watcher) ResultChan() <-chan Event { return w.events }

// Stop ends the watch. It may be called more than once.
func (w *Watcher) Stop() { w.cancel() }

// Err returns the reason why the channel was closed: an *api.Status where a
// server has refused the watch, context.Canceled after Stop; nil before.
func (w *Watcher) Err() error {
	if err := w.err.Load(); err != nil {
		return *err
	}
	return nil
}
