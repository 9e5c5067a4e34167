package enroll

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// gossipKeyBytes is the length of the first key: AES-256.
const gossipKeyBytes = 32

// The store is the only owner of the gossip keys: changes are written there first
// (ChangeKeys, rotateKeys, advance), and every coordinator's keyring follows. So
// a crash between the two loses nothing, and neither does a restart.

// loadKeys returns the rings' keys, and makes the first one of a new cluster.
func (s *Service) loadKeys(ctx context.Context) ([][]byte, error) {
	record, _, err := s.readKeysOr(ctx, [][]byte{newGossipKey()})
	return record.Keys, err
}

// readKeysOr returns the store's keys and their revision. Where the store has
// none, since the cluster is new or an operator has deleted them, it writes
// fallback first.
func (s *Service) readKeysOr(ctx context.Context, fallback [][]byte) (store.GossipKeys, resource.Revision, error) {
	for range attempts {
		record, revision, err := s.readKeys(ctx)
		if err != nil {
			return store.GossipKeys{}, 0, fmt.Errorf("read the gossip keys: %w", err)
		}
		if revision != 0 {
			return record, revision, nil
		}
		done, err := s.writeKeys(ctx, store.GossipKeys{Keys: fallback}, 0)
		if err != nil && !errors.Is(err, store.ErrUnknownOutcome) {
			return store.GossipKeys{}, 0, fmt.Errorf("write gossip keys where the store has none: %w", err)
		}
		if done {
			s.log.Info("gossip_keys_stored", "keys", len(fallback))
		}
	}
	return store.GossipKeys{}, 0, fmt.Errorf("read the gossip keys: they changed %d times meanwhile; try again", attempts)
}

// readKeys returns the store's keys and their revision, 0 if there are none.
func (s *Service) readKeys(ctx context.Context) (store.GossipKeys, resource.Revision, error) {
	kv, found, _, err := s.config.Store.Get(ctx, store.GossipKeysKey)
	if err != nil || !found {
		return store.GossipKeys{}, 0, err
	}
	record, err := store.Decode[store.GossipKeys](kv.Key, kv.Value)
	return record, kv.ModRev, err
}

func (s *Service) writeKeys(ctx context.Context, record store.GossipKeys, before resource.Revision) (bool, error) {
	result, err := s.config.Store.Txn(ctx, store.Txn{
		If:   []store.Compare{store.ModRevIs(store.GossipKeysKey, before)},
		Then: []store.Op{store.Put(store.GossipKeysKey, store.MustEncode(record))},
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
	record, revision, err := s.readKeysOr(ctx, here)
	if err != nil {
		return false, err
	}
	s.rotating.see(record.Rotation, revision)
	if sameKeys(record.Keys, here) {
		return false, nil
	}
	if err := s.keyring.Replace(record.Keys); err != nil {
		return false, err
	}
	s.log.Info("gossip_keys_changed", "keys", len(record.Keys))
	return true, nil
}

func holds(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
}

// sameKeys reports whether both have the same keys in the same order.
func sameKeys(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }
