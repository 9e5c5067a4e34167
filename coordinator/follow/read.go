package follow

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// At is the cache's revision, and a channel that closes when it changes.
func (f *Follower) At() (resource.Revision, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.revision, f.changed
}

// Reach waits until the cache is at a revision or beyond.
func (f *Follower) Reach(ctx context.Context, rev resource.Revision) error {
	for {
		at, changed := f.At()
		if at >= rev && at > 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: it is at revision %d and %d is needed", ErrBehind, at, rev)
		}
	}
}

// catchUp waits until the cache has everything that was acknowledged to anybody
// before the call, so that reads here are as good as the leader's.
func (f *Follower) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, CatchUp)
	defer cancel()
	known, _ := f.At()
	rev, err := f.index.read(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBehind, err)
	}
	if rev < known { // restored from a backup: the cached state never existed
		f.mu.Lock()
		restart := f.restart
		f.mu.Unlock()
		restart()
		return fmt.Errorf("%w: the store went back from revision %d to %d", ErrBehind, known, rev)
	}
	return f.Reach(ctx, rev)
}

// Fresh is everything that was acknowledged to anybody before the call.
func (f *Follower) Fresh(ctx context.Context) (*objects.View, error) {
	if err := f.catchUp(ctx); err != nil {
		return nil, err
	}
	return f.View()
}

// View is the cache as it is. It waits for nobody, and fails where nothing was
// loaded yet.
func (f *Follower) View() (*objects.View, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.revision == 0 {
		return nil, fmt.Errorf("%w: it has loaded nothing yet", ErrBehind)
	}
	f.refresh()
	if f.broken != nil {
		return nil, f.broken
	}
	return f.cache.View(f.revision, time.Now()), nil
}

// Candidates are those for leadership, the leader first, as the cache has them,
// and a channel that closes when the cache changes.
func (f *Follower) Candidates() ([]store.Leader, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found, err := store.Candidates(slices.Collect(maps.Values(f.leaders)))
	if err != nil {
		f.log.Error("candidates_unreadable", "error", err)
	}
	return found, f.changed
}

// Snapshot is everything at one revision that is not older than rev; false if
// the cache does not get that far in time.
func (f *Follower) Snapshot(ctx context.Context, rev resource.Revision) (Snapshot, bool) {
	ctx, cancel := context.WithTimeout(ctx, CatchUp)
	defer cancel()
	if f.Reach(ctx, rev) != nil {
		return Snapshot{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.revision < rev { // it was loaded anew in between, from a backup
		return Snapshot{}, false
	}
	s := Snapshot{kvs: make([]record.KV, 0, len(f.kvs)), Requests: maps.Clone(f.requests), Revision: f.revision}
	for _, kv := range f.kvs {
		s.kvs = append(s.kvs, kv)
	}
	slices.SortFunc(s.kvs, func(a, b record.KV) int { return strings.Compare(a.Key, b.Key) })
	return s, true
}

// Snapshot is the store's content at a revision, read before.
type Snapshot struct {
	kvs      []record.KV                                // ascending by key
	Requests map[record.RequestDigest]record.Remembered // not among kvs
	Revision resource.Revision
}

// Range returns the keys of a prefix, as a store does.
func (s Snapshot) Range(_ context.Context, prefix string, _ store.RangeOptions) ([]record.KV, resource.Revision, error) {
	from, _ := slices.BinarySearchFunc(s.kvs, prefix, func(kv record.KV, prefix string) int { return strings.Compare(kv.Key, prefix) })
	to := from
	for to < len(s.kvs) && strings.HasPrefix(s.kvs[to].Key, prefix) {
		to++
	}
	return s.kvs[from:to:to], s.Revision, nil
}

// Facts is the cache's view of a node: its lease counts as alive where the
// cache knows nothing.
func (f *Follower) Facts(id resource.NodeID) lead.NodeFacts {
	f.mu.Lock()
	defer f.mu.Unlock()
	lease, leased := f.kvs[record.NodeLeaseKey(id)]
	identity := f.kvs[record.NodeIdentityKey(id)]
	return lead.NodeFacts{
		Node: id, Leased: leased || f.revision == 0, Ban: record.BanOf(f.kvs[record.BanKey(id)]), Identity: identity.ModRev, Outdated: f.isOutdated(identity),
		Status: f.kvs[record.NodeStatusKey(id)], Lease: lease.Lease, Observed: f.kvs[record.NodeObservedKey(id)].ModRev,
		Lost: f.kvs[record.NodeLostKey(id)].ModRev,
	}
}

// Ban returns a node's ban as far as this coordinator has followed the store,
// nil for none.
func (f *Follower) Ban(id resource.NodeID) *record.Ban {
	f.mu.Lock()
	defer f.mu.Unlock()
	return record.BanOf(f.kvs[record.BanKey(id)])
}
