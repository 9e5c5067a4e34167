package mem

import (
	"context"
	"fmt"
	"strings"

	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// Watch delivers every revision that touches the prefix.
func (s *Store) Watch(ctx context.Context, prefix string, o store.WatchOptions) <-chan store.Batch {
	out := make(chan store.Batch)
	go func() {
		defer close(out)
		next := o.From
		for {
			batch, seen, more := s.next(prefix, next, o.Prev)
			if more == nil {
				select {
				case out <- batch:
				case <-s.closed:
					return
				case <-ctx.Done():
					return
				}
				if batch.Err != nil {
					return
				}
				next = batch.Revision + 1
				continue
			}
			next = max(next, seen+1)
			select {
			case <-more:
			case <-s.closed:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// next finds the first revision from `from` on that touches the prefix. If none
// does, it returns the last revision it has seen and a channel that closes at
// the next change.
func (s *Store) next(prefix string, from resource.Revision, prev bool) (b store.Batch, seen resource.Revision, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case from < 1:
		return store.Batch{Err: fmt.Errorf("watch %s from revision %d: want at least 1", prefix, from)}, 0, nil
	case from < s.floor:
		return store.Batch{Err: &store.CompactedError{Asked: from, Floor: s.floor}}, 0, nil
	}
	if len(s.changes) > 0 {
		for _, c := range s.changes[min(max(0, int(from-s.changes[0].rev)), len(s.changes)):] {
			if events := selectEvents(c.events, prefix, prev); len(events) > 0 {
				return store.Batch{Revision: c.rev, Events: events}, c.rev, nil
			}
		}
	}
	if s.waiting == nil {
		s.waiting = make(chan struct{})
	}
	return store.Batch{}, s.rev, s.waiting
}

func selectEvents(events []store.Event, prefix string, prev bool) []store.Event {
	var out []store.Event
	for _, e := range events {
		if strings.HasPrefix(e.KV.Key, prefix) {
			if !prev {
				e.Prev = nil
			}
			out = append(out, e)
		}
	}
	return out
}
