package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/level"
)

// OtherClusterError refuses a coordinator of one cluster at the store of another:
// it would become a follower or the leader of a cluster that it does not know.
type OtherClusterError struct{ Owner, Own string }

// Error names both clusters.
func (e *OtherClusterError) Error() string {
	return fmt.Sprintf("%s: this store belongs to cluster %q, and this coordinator is of cluster %q: give %q a store of its own, or start with --cluster %s",
		record.ClusterKey, e.Owner, e.Own, e.Own, e.Owner)
}

// Claim binds the store to a cluster: the first caller writes the cluster's name,
// and every later one of another cluster gets an *OtherClusterError. known is the newest
// feature level of the caller: a higher level is a *level.UnknownError. A store that
// was written before there were claims becomes its first claimant's. fresh reports
// whether this call wrote the name. Claim blocks no longer than ctx; any other error
// is the store's, or of a value that nobody wrote here.
func Claim(ctx context.Context, s KVStore, cluster string, known level.Level) (fresh bool, err error) {
	value, err := record.Encode(record.Cluster{Name: cluster})
	if err != nil {
		return false, err
	}
	for {
		kv, found, _, err := s.Get(ctx, record.ClusterKey)
		if err != nil {
			return false, fmt.Errorf("read the cluster that the store belongs to: %w", err)
		}
		if found {
			owner, err := record.Decode[record.Cluster](kv.Key, kv.Value)
			switch {
			case err != nil:
				return fresh, err
			case owner.Name != cluster:
				return fresh, &OtherClusterError{Owner: owner.Name, Own: cluster}
			case owner.Level > known:
				return fresh, &level.UnknownError{Cluster: owner.Level, Known: known}
			}
			return fresh, nil
		}
		done, err := s.Txn(ctx, record.Txn{If: []record.Compare{record.Absent(record.ClusterKey)}, Then: []record.Op{record.Put(record.ClusterKey, value)}})
		if err != nil && (!errors.Is(err, record.ErrUnknownOutcome) || ctx.Err() != nil) {
			return false, fmt.Errorf("write the cluster that the store belongs to: %w", err)
		}
		fresh = err == nil && done.Succeeded // the next read shows the winner of a race
	}
}
