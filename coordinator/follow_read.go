package coordinator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// at is the cache's revision, and a channel that closes when it changes.
func (f *follower) at() (resource.Revision, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.revision, f.changed
}

// reach waits until the cache is at a revision or beyond.
func (f *follower) reach(ctx context.Context, rev resource.Revision) error {
	for {
		at, changed := f.at()
		if at >= rev && at > 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: it is at revision %d and %d is needed", errBehind, at, rev)
		}
	}
}

// fresh waits until the cache has everything that was acknowledged to anybody
// before the call, so that reads here are as good as the leader's.
func (f *follower) fresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	known, _ := f.at()
	rev, err := f.index.read(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errBehind, err)
	}
	if rev < known { // restored from a backup: the cached state never existed
		f.mu.Lock()
		restart := f.restart
		f.mu.Unlock()
		restart()
		return fmt.Errorf("%w: the store went back from revision %d to %d", errBehind, known, rev)
	}
	return f.reach(ctx, rev)
}

// read shows something that is not older than the call. show runs under the
// cache's lock and returns copies.
func read[T any](ctx context.Context, f *follower, show func(i shown.Index) (T, *api.Status)) (T, error) {
	var none T
	if err := f.fresh(ctx); err != nil {
		return none, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	if f.broken != nil {
		return none, f.broken
	}
	got, status := show(cached{&f.cache, time.Now()})
	if status != nil {
		return none, status
	}
	return got, nil
}

// candidates are those for leadership, the leader first, as the cache has them,
// and a channel that closes when the cache changes.
func (f *follower) candidates() ([]store.Leader, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found, err := store.Candidates(slices.Collect(maps.Values(f.leaders)))
	if err != nil {
		f.log.Error("candidates_unreadable", "error", err)
	}
	return found, f.changed
}

// snapshot is everything at one revision that is not older than rev; false if
// the cache does not get that far in time.
func (f *follower) snapshot(ctx context.Context, rev resource.Revision) (snapshot, bool) {
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	if f.reach(ctx, rev) != nil {
		return snapshot{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.revision < rev { // it was loaded anew in between, from a backup
		return snapshot{}, false
	}
	s := snapshot{kvs: make([]record.KV, 0, len(f.kvs)), requests: maps.Clone(f.requests), revision: f.revision}
	for _, kv := range f.kvs {
		s.kvs = append(s.kvs, kv)
	}
	slices.SortFunc(s.kvs, func(a, b record.KV) int { return strings.Compare(a.Key, b.Key) })
	return s, true
}

// snapshot is the store's content at a revision, read before.
type snapshot struct {
	kvs      []record.KV                         // ascending by key
	requests map[lead.RequestKey]lead.Remembered // not among kvs
	revision resource.Revision
}

// Range implements ranger.
func (s snapshot) Range(_ context.Context, prefix string, _ store.RangeOptions) ([]record.KV, resource.Revision, error) {
	from, _ := slices.BinarySearchFunc(s.kvs, prefix, func(kv record.KV, prefix string) int { return strings.Compare(kv.Key, prefix) })
	to := from
	for to < len(s.kvs) && strings.HasPrefix(s.kvs[to].Key, prefix) {
		to++
	}
	return s.kvs[from:to:to], s.revision, nil
}

// follows is the cache's view of a node: its lease counts as alive where the
// cache knows nothing.
func (f *follower) follows(id resource.NodeID) lead.NodeFacts {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, leased := f.kvs[record.NodeLeaseKey(id)]
	return lead.NodeFacts{
		Node: id, Leased: leased || f.revision == 0, Ban: lead.BanOf(f.kvs[record.BanKey(id)]), Identity: f.kvs[record.NodeIdentityKey(id)].ModRev,
		Status: f.kvs[record.NodeStatusKey(id)],
	}
}
