package follow

import (
	"context"
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/events"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// mostReplays bounds the readings of the store's past under way: each of them
// holds all keys once more.
const mostReplays = 2

// replay is the objects of the store's past, brought forward change by change:
// for watches that go on from a place before this coordinator's history, and
// for lists of a revision that it has kept no view of.
type replay struct {
	kvs     map[string]record.KV
	cache   *objects.Cache
	batches <-chan record.Batch
	end     func()
	// allocations is Options.NamespaceAllocations.
	allocations int
}

// replay begins behind a place, for a kind. The store keeps its past until it is
// compacted.
func (f *Follower) replay(ctx context.Context, after objects.ID, kind objects.Kind) (*replay, error) {
	from := after.Revision
	if after != objects.AllOf(from) {
		from-- // some events of the revision are wanted
	}
	select {
	case f.replays <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	watching, cancel := context.WithCancel(ctx)
	r := &replay{end: func() { cancel(); <-f.replays }, allocations: f.allocations}
	if err := r.load(ctx, f.store, from); err != nil {
		r.end()
		return nil, gone(err, after)
	}
	if kind == objects.Events {
		now := time.Now()
		r.cache.KeepEvents(events.New(events.Default, now), f.name, from, now)
	}
	r.batches = f.store.Watch(watching, record.Root, store.WatchOptions{From: from + 1})
	return r, nil
}

// load takes all keys as they were at a revision.
func (r *replay) load(ctx context.Context, from store.KVStore, at resource.Revision) error {
	kvs, _, err := from.Range(ctx, record.Root, store.RangeOptions{AtRevision: at})
	if err != nil {
		return err
	}
	r.kvs, r.cache = make(map[string]record.KV, len(kvs)), objects.New()
	r.cache.BoundAllocations(r.allocations)
	for _, kv := range kvs {
		if !isApart(kv.Key) {
			r.kvs[kv.Key] = kv
			r.cache.Touch(kv.Key)
		}
	}
	if err := r.cache.Refresh(r.kvs, at, time.Now()); err != nil {
		return fmt.Errorf("the store's state at revision %d cannot be shown: %w", at, err)
	}
	return nil
}

// next returns the events of the next revision.
func (r *replay) next(ctx context.Context, f *Follower) ([]*objects.Event, resource.Revision, error) {
	var b record.Batch
	select {
	case next, open := <-r.batches:
		if !open {
			return nil, 0, fmt.Errorf("%w: its watch has ended", ErrBehind)
		}
		b = next
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	if b.Err != nil {
		return nil, 0, gone(b.Err, objects.AllOf(b.Revision))
	}
	r.cache.Forget()
	r.cache.Record(b.Revision-1, objects.Limits{Events: mostEvents, Bytes: mostEventBytes})
	for _, e := range b.Events {
		if e.Type == record.EventDelete {
			delete(r.kvs, e.KV.Key)
		} else if !isApart(e.KV.Key) {
			r.kvs[e.KV.Key] = e.KV
		}
		r.cache.Touch(e.KV.Key)
	}
	if err := r.cache.Refresh(r.kvs, b.Revision, time.Now()); err != nil {
		return nil, 0, fmt.Errorf("the store's state at revision %d cannot be shown: %w", b.Revision, err)
	}
	changes := r.cache.History().Newest(b.Revision)
	objects.Render(changes, r.cache.View(b.Revision, time.Now()))
	return changes, b.Revision, nil
}

// close ends the reading of the store's past.
func (r *replay) close() { r.end() }
