package era

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// maxWhy bounds a restoration's text, in bytes.
const maxWhy = 512

// Declare writes the restoration r with a new mark, and returns the last restoration in
// the store: r, or the restoration of another witness since the caller's read of before,
// which explains r too. Declare looks up a Txn of unknown outcome.
func Declare(ctx context.Context, s store.KVStore, before record.Restored, r record.Restored) (record.Restored, error) {
	r.Mark, r.Why = rand.Text(), r.Why[:min(len(r.Why), maxWhy)]
	value, err := record.Encode(r)
	if err != nil {
		return r, err
	}
	for {
		kv, found, _, err := s.Get(ctx, record.LastRestoredKey)
		if err != nil {
			return r, fmt.Errorf("declare the store as restored: %w", err)
		}
		if found {
			last, err := record.Decode[record.Restored](kv.Key, kv.Value)
			if err != nil || last.Mark != before.Mark {
				return last, err
			}
		}
		_, err = s.Txn(ctx, record.Txn{
			If:   []record.Compare{record.ModRevIs(record.LastRestoredKey, kv.ModRev)},
			Then: []record.Op{record.Put(record.LastRestoredKey, value), record.Put(record.RestoredKey(r.Has), value)},
		})
		if err != nil && (!errors.Is(err, record.ErrUnknownOutcome) || ctx.Err() != nil) {
			return r, fmt.Errorf("declare the store as restored: %w", err)
		}
	}
}

// witness makes a restoration of a witness' knowledge.
func witness(by, why string, k Known, has resource.Revision) record.Restored {
	return record.Restored{By: by, Why: why, Had: k.Revision, Has: max(has, 1)}
}

// Judge compares an agent's knowledge with the store. Judge returns the last restoration
// in the store, and the agent's loss where no restoration explains the loss. decisive
// declares the loss for the whole cluster: this coordinator has no knowledge of the past.
// Otherwise the loss concerns the agent's node alone, so a single host cannot stop all
// others.
func Judge(ctx context.Context, s store.KVStore, node resource.NodeID, k Known, decisive bool) (restored record.Restored, lost string, err error) {
	why, has, restored, err := Contradiction(ctx, s, k)
	if err != nil || why == "" || !decisive {
		return restored, why, err
	}
	restored, err = Declare(ctx, s, restored, witness("node "+string(node), why, k, has))
	return restored, why, err
}
