package follow

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
)

const (
	// BookmarkEvery is the longest time between two bookmarks of a watch.
	BookmarkEvery = 10 * time.Second
	// mostChanges bounds the changes that a watch takes at a time.
	mostChanges = 64
	// mostInitial bounds the objects that a watch takes at a time at its beginning,
	// in bytes: unlike changes, their texts are the watch's own. One object more may
	// be taken.
	mostInitial = 64 << 10
)

// Watch is the changes of one kind from a place in the history on: none is
// missed or comes twice. One goroutine uses it.
type Watch struct {
	f         *Follower
	kind      objects.Kind
	namespace string
	wake      chan struct{} // of capacity 1: a change that is there already needs no second signal

	// The follower's lock guards ended; generation, cursor and placed are the
	// reader's own.
	ended error

	at         objects.ID // all that is before was given
	bookmarked time.Time
	// Exactly one of these is set: the objects that are still to be given, the
	// store's past, or a place in the history.
	initial    func() (objects.Item, bool)
	stop       func()
	past       *replay
	placed     bool
	cursor     objects.Cursor
	generation uint64
}

func (w *Watch) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Watch opens a watch; the caller closes it. Errors are ErrBehind,
// *objects.GoneError where the changes after the place are not kept any more, or
// the reason why the store's content cannot be shown.
func (f *Follower) Watch(ctx context.Context, o objects.WatchOptions) (*Watch, error) {
	if !o.Cached {
		if err := f.catchUpTo(ctx, o.After); err != nil {
			return nil, err
		}
	}
	w := &Watch{f: f, kind: o.Kind, namespace: o.Namespace, wake: make(chan struct{}, 1), at: o.After, bookmarked: time.Now(), stop: func() {}}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.record(); err != nil {
		return nil, err
	}
	if o.After == (objects.ID{}) {
		view := f.cache.View(f.revision, time.Now())
		w.at = objects.AllOf(f.revision)
		w.place()
		w.initial, w.stop = iter.Pull(view.After(o.Kind, o.Namespace, objects.Name{}))
	} else {
		w.place()
	}
	f.feeds.add(w)
	return w, nil
}

// catchUpTo waits until the cache has everything that was acknowledged before
// the call. A place that the store has not reached is of another store.
func (f *Follower) catchUpTo(ctx context.Context, place objects.ID) error {
	view, err := f.Fresh(ctx)
	if err == nil && view.Revision() < place.Revision {
		return &objects.GoneError{Reason: fmt.Sprintf("the store is at revision %d and not yet at %d: it was restored from a backup, or the number is not of this cluster", view.Revision(), place.Revision)}
	}
	return err
}

// record has the cache keep its changes. f.mu is held.
func (f *Follower) record() error {
	if f.revision == 0 {
		return fmt.Errorf("%w: it has loaded nothing yet", ErrBehind)
	}
	f.refresh()
	if f.broken != nil {
		return f.broken
	}
	f.keepChanges()
	return nil
}

// keepChanges begins a history, unless there is one. f.mu is held.
func (f *Follower) keepChanges() {
	f.cache.Record(f.revision, objects.Limits{Events: mostEvents, Bytes: mostEventBytes})
	f.feeds.records = true
}

// place finds the watch's place in the history; not placed where the history
// begins later. f.mu is held.
func (w *Watch) place() {
	w.cursor, w.placed = w.f.cache.History().Since(w.kind, w.namespace, w.at)
	w.generation = w.f.feeds.generation
}

// Close ends the watch.
func (w *Watch) Close() {
	w.stop()
	if w.past != nil {
		w.past.close()
	}
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	w.f.feeds.remove(w, time.Now())
}

// Next waits for the next changes. After an error the watch is over: ctx has
// ended, or a *objects.GoneError where the reader was too slow, the store was
// compacted or restored, or the reason why the store's content cannot be shown.
func (w *Watch) Next(ctx context.Context) (objects.Changes, error) {
	bookmark := time.NewTimer(time.Until(w.bookmarked.Add(BookmarkEvery)))
	defer bookmark.Stop()
	for {
		c, err := w.take(ctx)
		if err != nil || len(c.Events) > 0 || c.Bookmark.Revision > 0 {
			return c, err
		}
		select {
		case <-w.wake:
		case <-bookmark.C:
		case <-ctx.Done():
			return objects.Changes{}, ctx.Err()
		}
	}
}

// take returns the changes that are there already.
func (w *Watch) take(ctx context.Context) (objects.Changes, error) {
	if w.initial != nil {
		return w.takeInitial(), nil
	}
	for {
		if w.past != nil {
			return w.takePast(ctx)
		}
		c, placed, err := w.takeKept()
		if placed || err != nil {
			return c, err
		}
		if w.past, err = w.f.replay(ctx, w.at, w.kind); err != nil {
			return objects.Changes{}, err
		}
	}
}

// takeInitial returns the next objects that were there when the watch began; a
// bookmark says that these are all.
func (w *Watch) takeInitial() (c objects.Changes) {
	for bytes := 0; len(c.Events) < mostChanges && bytes < mostInitial; {
		item, more := w.initial()
		if !more {
			w.initial = nil
			w.bookmarked, c.Bookmark = time.Now(), w.at
			return c
		}
		object := item.Object()
		text := objects.Encode(object)
		c.Events = append(c.Events, &objects.Event{Name: item.Name, Type: objects.Added, Object: object, JSON: text})
		bytes += len(text)
	}
	return c
}

// takeKept returns the next changes of the history; placed is false where the
// watch has no place in it.
func (w *Watch) takeKept() (c objects.Changes, placed bool, err error) {
	f := w.f
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case w.ended != nil:
		return c, false, w.ended
	case f.revision == 0:
		return c, true, nil // it is loaded soon, which wakes the watch
	}
	if err := f.record(); err != nil {
		return c, false, err
	}
	if !w.placed || w.generation != f.feeds.generation {
		if w.place(); !w.placed {
			return c, false, nil
		}
	}
	events, cursor, behind, kept := f.cache.History().Next(w.cursor, mostChanges, f.cache.View(f.revision, time.Now()))
	if !kept {
		return c, false, &objects.GoneError{Reason: fmt.Sprintf("the watch was too slow: changes after %s are kept no more", w.at)}
	}
	w.cursor, w.at, c.Events = cursor, behind, events
	if behind == objects.AllOf(f.revision) {
		if time.Since(w.bookmarked) >= BookmarkEvery {
			w.bookmarked, c.Bookmark = time.Now(), w.at
		}
	} else if len(events) == 0 {
		w.signal() // all of these changes were invisible
	}
	return c, true, nil
}

// takePast returns the next changes of the store's past, and goes over to the
// history where that begins.
func (w *Watch) takePast(ctx context.Context) (c objects.Changes, err error) {
	events, at, err := w.past.next(ctx, w.f)
	if err != nil {
		return objects.Changes{}, err
	}
	for _, e := range events {
		if e.Type != "" && e.Kind == w.kind && (w.namespace == "" || e.Namespace == w.namespace) && e.ID.Compare(w.at) > 0 {
			c.Events = append(c.Events, e)
		}
	}
	w.at = objects.AllOf(at)
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	if w.f.revision > 0 && w.f.record() == nil {
		if w.place(); w.placed {
			w.past.close()
			w.past = nil
			w.signal() // for what the history has
		}
	}
	if len(c.Events) == 0 && w.past != nil {
		w.signal()
	}
	return c, nil
}

// gone words the store's refusal to show its past.
func gone(err error, at objects.ID) error {
	var compacted *record.CompactedError
	var back *record.WentBackError
	switch {
	case errors.As(err, &compacted):
		return &objects.GoneError{Reason: fmt.Sprintf("the store keeps changes from revision %d on, and %s is older", int64(compacted.Floor), at)}
	case errors.As(err, &back):
		return &objects.GoneError{Reason: "the store was restored from a backup"}
	}
	return err
}
