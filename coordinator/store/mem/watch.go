package mem

import (
	"context"
	"fmt"
	"strings"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// watcher is one Watch. As in etcd, what happens is queued for it at once and
// without bound, so a slow receiver does not fall behind the floor.
type watcher struct {
	store   *Store
	prefix  string
	from    resource.Revision
	prev    bool
	pending []record.Batch // under Store.mu
	wake    chan struct{}  // capacity 1: something is pending
}

// Watch delivers every revision that touches the prefix.
func (s *Store) Watch(ctx context.Context, prefix string, o store.WatchOptions) <-chan record.Batch {
	out := make(chan record.Batch)
	w := &watcher{store: s, prefix: prefix, from: o.From, prev: o.Prev, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() {
		close(out)
		return out
	}
	switch {
	case s.wentBack != nil:
		w.push(record.Batch{Err: s.wentBack})
	case prefix == "" || o.From < 1:
		w.push(record.Batch{Err: fmt.Errorf("watch %q from revision %d: want a prefix and at least 1", prefix, o.From)})
	case o.From < s.floor:
		w.push(record.Batch{Err: &record.CompactedError{Asked: o.From, Floor: s.floor}})
	default:
		for _, c := range s.changes {
			w.see(c)
		}
	}
	s.watchers[w] = struct{}{}
	go s.deliver(ctx, w, out)
	return out
}

// see queues what a revision did below the prefix.
func (w *watcher) see(c change) {
	if c.rev < w.from {
		return
	}
	var events []record.Event
	for _, e := range c.events {
		if strings.HasPrefix(e.KV.Key, w.prefix) {
			if !w.prev {
				e.Prev = nil
			}
			events = append(events, e)
		}
	}
	if len(events) > 0 {
		w.push(record.Batch{Revision: c.rev, Events: events})
	}
}

func (w *watcher) push(b record.Batch) {
	w.pending = append(w.pending, b)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// deliver hands over what is pending until the watch ends.
func (s *Store) deliver(ctx context.Context, w *watcher, out chan<- record.Batch) {
	defer close(out)
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, w)
	}()
	for {
		select {
		case <-w.wake:
		case <-s.closed:
			return
		case <-ctx.Done():
			return
		}
		for {
			b, ok := s.take(w)
			if !ok {
				break
			}
			select {
			case out <- b:
			case <-s.closed:
				return
			case <-ctx.Done():
				return
			}
			if b.Err != nil {
				return
			}
		}
	}
}

// take returns the next batch of a watcher; its client learns of the revision.
func (s *Store) take(w *watcher) (record.Batch, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(w.pending) == 0 {
		return record.Batch{}, false
	}
	b := w.pending[0]
	w.pending = w.pending[1:]
	s.seen = max(s.seen, b.Revision)
	return b, true
}
