package store

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/level"
	"github.com/musterd/muster/resource"
)

// ErrLevelChanged ends a term: each term has a single feature level.
var ErrLevelChanged = errors.New("the feature level of the cluster has changed: the next term begins with the new level")

// Guarded is a store without writes by a process that does not know the cluster's feature
// level. Reads, watches and revocations go on: the keys of a lost term have to end.
type Guarded struct {
	Store
	log      *slog.Logger
	known    level.Level
	seen     atomic.Pointer[seenLevel]          // nil: level 0
	withdraw atomic.Pointer[context.CancelFunc] // ends the last campaign of Stand; nil before the first
}

// seenLevel is the level of the cluster. refusal is nil where the process knows the level.
type seenLevel struct {
	level   level.Level
	refusal *level.UnknownError
}

// Guard returns s with a guard for a process with the newest level known.
func Guard(s Store, known level.Level, log *slog.Logger) *Guarded {
	return &Guarded{Store: s, known: known, log: log}
}

// Saw takes the key record.ClusterKey, ignores other keys, and reports whether the level has
// changed. An undecodable value is of a later version. Saw does not block.
func (g *Guarded) Saw(kv *record.KV) (changed bool) {
	if kv.Key != record.ClusterKey {
		return false
	}
	c, err := record.Decode[record.Cluster](kv.Key, kv.Value)
	seen, before := &seenLevel{level: c.Level}, g.seen.Load()
	if err != nil || c.Level > g.known {
		seen.refusal = &level.UnknownError{Cluster: c.Level, Known: g.known, Cause: err}
	}
	g.seen.Store(seen)
	if before == nil {
		before = &seenLevel{}
	}
	if seen.refusal != nil && before.refusal == nil {
		g.log.Error("feature_level_unknown", "error", seen.refusal)
		if withdraw := g.withdraw.Load(); withdraw != nil {
			(*withdraw)()
		}
	}
	return seen.level != before.level || (seen.refusal == nil) != (before.refusal == nil)
}

// Read reads the level from a store or a snapshot. After an election no raise but the
// term's own can follow. The error is Refusal's or the store's.
func (g *Guarded) Read(ctx context.Context, from interface {
	Range(ctx context.Context, prefix string, o RangeOptions) ([]record.KV, resource.Revision, error)
},
) error {
	kvs, _, err := from.Range(ctx, record.ClusterKey, RangeOptions{})
	if err != nil {
		return err
	}
	for i := range kvs {
		g.Saw(&kvs[i])
	}
	return g.Refusal()
}

// Stand is the campaign of a candidate of this process, and ends with the process' knowledge
// of the level.
func (g *Guarded) Stand(ctx context.Context, c *Candidate) (*Leadership, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.withdraw.Store(&cancel)
	if err := g.Refusal(); err != nil {
		return nil, err
	}
	return c.Campaign(ctx)
}

// Level is the seen level of the cluster.
func (g *Guarded) Level() level.Level {
	if seen := g.seen.Load(); seen != nil {
		return seen.level
	}
	return 0
}

// Known is the newest level of this process.
func (g *Guarded) Known() level.Level { return g.known }

// Refusal is a *level.UnknownError where this process does not know the level of the
// cluster, else nil.
func (g *Guarded) Refusal() error {
	if seen := g.seen.Load(); seen != nil && seen.refusal != nil {
		return seen.refusal
	}
	return nil
}

// Txn is Store's. A *level.UnknownError is definite.
func (g *Guarded) Txn(ctx context.Context, t record.Txn) (record.TxnResult, error) {
	if err := g.Refusal(); err != nil {
		return record.TxnResult{}, err
	}
	return g.Store.Txn(ctx, t)
}

// Grant is Store's: without a lease there is no candidacy.
func (g *Guarded) Grant(ctx context.Context, ttl time.Duration) (Lease, error) {
	if err := g.Refusal(); err != nil {
		return Lease{}, err
	}
	return g.Store.Grant(ctx, ttl)
}
