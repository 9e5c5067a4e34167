package enroll

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// gossipKeyBytes is the length of the first key: AES-256.
const gossipKeyBytes = 32

// The store is the only owner of the gossip keys: changes are written there first
// (ChangeKeys, rotateKeys, advance), and every coordinator's keyring follows. So
// a crash between the two loses nothing, and neither does a restart.

// loadKeys returns the rings' keys, and makes the first one of a new cluster.
func (s *Service) loadKeys(ctx context.Context) ([][]byte, error) {
	rec, _, err := s.readKeysOr(ctx, [][]byte{newGossipKey()})
	return rec.Keys, err
}

// readKeysOr returns the store's keys and their revision. Where the store has
// none, since the cluster is new or an operator has deleted them, it writes
// fallback first.
func (s *Service) readKeysOr(ctx context.Context, fallback [][]byte) (record.GossipKeys, resource.Revision, error) {
	for range attempts {
		rec, revision, err := s.readKeys(ctx)
		if err != nil {
			return record.GossipKeys{}, 0, fmt.Errorf("read the gossip keys: %w", err)
		}
		if revision != 0 {
			return rec, revision, nil
		}
		done, err := s.writeKeys(ctx, record.GossipKeys{Keys: fallback}, 0)
		if err != nil && !errors.Is(err, record.ErrUnknownOutcome) {
			return record.GossipKeys{}, 0, fmt.Errorf("write gossip keys where the store has none: %w", err)
		}
		if done {
			s.log.Info("gossip_keys_stored", "keys", len(fallback))
		}
	}
	return record.GossipKeys{}, 0, fmt.Errorf("read the gossip keys: they changed %d times meanwhile; try again", attempts)
}

// readKeys returns the store's keys and their revision, 0 if there are none.
func (s *Service) readKeys(ctx context.Context) (record.GossipKeys, resource.Revision, error) {
	kv, found, _, err := s.config.Store.Get(ctx, record.GossipKeysKey)
	if err != nil || !found {
		return record.GossipKeys{}, 0, err
	}
	rec, err := record.Decode[record.GossipKeys](kv.Key, kv.Value)
	return rec, kv.ModRev, err
}

func (s *Service) writeKeys(ctx context.Context, rec record.GossipKeys, before resource.Revision) (bool, error) {
	result, err := s.config.Store.Txn(ctx, record.Txn{
		If:   []record.Compare{record.ModRevIs(record.GossipKeysKey, before)},
		Then: []record.Op{record.Put(record.GossipKeysKey, record.MustEncode(rec))},
	})
	return result.Succeeded, err
}

// syncKeys brings the keyring to the store's keys, and tells agents of a change.
func (s *Service) syncKeys(ctx context.Context) error {
	changed, err := s.takeKeys(ctx)
	if changed {
		s.announce()
	}
	return err
}

// takeKeys reports whether the keyring has changed.
func (s *Service) takeKeys(ctx context.Context) (changed bool, err error) {
	s.replacing.Lock()
	defer s.replacing.Unlock()
	here := s.keyring.Keys()
	rec, revision, err := s.readKeysOr(ctx, here)
	if err != nil {
		return false, err
	}
	s.rotating.see(rec.Rotation, revision)
	if sameKeys(rec.Keys, here) {
		return false, nil
	}
	if err := s.keyring.Replace(rec.Keys); err != nil {
		return false, err
	}
	s.log.Info("gossip_keys_changed", "keys", len(rec.Keys))
	return true, nil
}

func holds(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
}

// sameKeys reports whether both have the same keys in the same order.
func sameKeys(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }
