package enroll

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// gossipKeyBytes is the length of the first key: AES-256.
const gossipKeyBytes = 32

// loadKeys reads the rings' keys, and makes the first one of a new cluster.
func (s *Service) loadKeys(ctx context.Context) ([][]byte, error) {
	for range attempts {
		record, revision, err := s.readKeys(ctx)
		if err != nil || revision != 0 {
			return record.Keys, err
		}
		if _, err := s.writeKeys(ctx, store.GossipKeys{Keys: [][]byte{newGossipKey()}}, 0); err != nil && !errors.Is(err, store.ErrUnknownOutcome) {
			return nil, fmt.Errorf("write the first gossip key: %w", err)
		}
	}
	return nil, errors.New("the gossip keys kept changing; try again")
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

// syncKeys brings store and keyring together: what `serf keys` has changed here
// since they agreed last goes into the store, everything else comes from it.
func (s *Service) syncKeys(ctx context.Context) error {
	changed, err := s.mergeKeys(ctx)
	if changed {
		s.announce()
	}
	return err
}

// mergeKeys reports whether the keyring has changed.
func (s *Service) mergeKeys(ctx context.Context) (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range attempts {
		record, revision, err := s.readKeys(ctx)
		if err != nil {
			return changed, err
		}
		here := s.keyring.Keys()
		if revision == 0 {
			record.Keys = s.base // somebody deleted the key
		}
		want := merge(s.base, here, record.Keys)
		s.rotating.see(record.Rotation, revision)
		if revision == 0 || !sameKeys(want, record.Keys) {
			done, err := s.writeKeys(ctx, withKeys(record, want), revision)
			if err != nil {
				return changed, err
			}
			if !done {
				continue
			}
			s.log.Info("gossip_keys_stored", "keys", len(want))
		}
		if !sameKeys(want, here) {
			if err := s.keyring.Replace(want); err != nil {
				return changed, err
			}
			s.log.Info("gossip_keys_changed", "keys", len(want))
			changed = true
		}
		changed = changed || !sameKeys(want, s.base) // `serf keys` changed them here
		s.base = want
		return changed, s.keepKeys(want)
	}
	return changed, errors.New("the gossip keys kept changing; try again")
}

// keepKeys writes what has been agreed on. `serf keys` writes the keyring itself,
// before it is acknowledged.
func (s *Service) keepKeys(keys [][]byte) error {
	if s.config.Folder == nil {
		return nil
	}
	text, err := json.Marshal(keys) // base64 in a list: serf's format
	if err != nil {
		return err
	}
	if err := s.config.Folder.SaveKeyring(text); err != nil {
		return err
	}
	return s.config.Folder.SaveAgreed(text)
}

// keptKeys returns the keyring of the process before and what had been agreed
// on then. Damaged files count as none: the store has the keys.
func (s *Service) keptKeys() (here, agreed [][]byte, ok bool) {
	if s.config.Folder == nil {
		return nil, nil, false
	}
	load := func(read func() ([]byte, error)) (keys [][]byte, ok bool) {
		text, err := read()
		if err == nil {
			err = json.Unmarshal(text, &keys)
		}
		if err == nil {
			_, err = store.Encode(store.GossipKeys{Keys: keys}) // the rules of the record are those of keys
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("gossip_keys_unreadable", "error", err)
		}
		return keys, err == nil
	}
	here, ok = load(s.config.Folder.LoadKeyring)
	agreed, also := load(s.config.Folder.LoadAgreed)
	return here, agreed, ok && also
}

// merge applies to stored what changed from base to here: keys that came and
// went, and another first one. The first key of the result is the one to send
// with; it is never empty as long as none of the three is.
func merge(base, here, stored [][]byte) [][]byte {
	keys := slices.Clone(stored)
	for _, k := range here {
		if !holds(base, k) && !holds(keys, k) {
			keys = append(keys, k)
		}
	}
	first := stored[0]
	if !bytes.Equal(here[0], base[0]) {
		first = here[0]
	}
	keys = slices.DeleteFunc(keys, func(k []byte) bool {
		return bytes.Equal(k, first) || holds(base, k) && !holds(here, k)
	})
	return append([][]byte{first}, keys...)
}

func holds(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
}

// sameKeys compares the first key and the set of the others.
func sameKeys(a, b [][]byte) bool {
	if len(a) != len(b) || len(a) == 0 || !bytes.Equal(a[0], b[0]) {
		return false
	}
	return !slices.ContainsFunc(a, func(k []byte) bool { return !holds(b, k) })
}
