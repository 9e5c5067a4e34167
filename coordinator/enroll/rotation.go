package enroll

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// A rotation replaces the gossip keys after a node was banned or replaced, so
// that the host before can neither read nor write the rings. It has three steps,
// each a Txn on the key that holds it; whichever coordinator is first makes it,
// and after a crash another one does:
//
//  1. with the ban: the new key is added. Agents are told at once, over their
//     heartbeat streams, and fetch it.
//  2. rotationPause later: all send with the new key.
//  3. rotationPause later: the old keys go.
//
// A member that missed a step, since it was cut off, is outside the rings until
// its next heartbeat is answered.

// rotationPause is the time that members have for a step. An agent fetches keys
// within renewSpread (agent), 1 s, after it was told.
const rotationPause = 3 * time.Second

// newGossipKey draws a key.
func newGossipKey() []byte {
	key := make([]byte, gossipKeyBytes)
	rand.Read(key) // never fails
	return key
}

// rotateKeys adds the first step of a rotation to a Txn. One that is under way
// begins anew: the host to be kept out may have its key.
func (s *Service) rotateKeys(ctx context.Context, txn *record.Txn, why string) error {
	rec, revision, err := s.readKeys(ctx)
	if err != nil {
		return err
	}
	if revision == 0 {
		return errors.New("the store has no gossip keys: start a coordinator with tls.enabled first")
	}
	txn.If = append(txn.If, record.ModRevIs(record.GossipKeysKey, revision))
	txn.Then = append(txn.Then, record.Put(record.GossipKeysKey, record.MustEncode(begin(rec, newGossipKey(), why, time.Now()))))
	return nil
}

// mostOld bounds the old keys of a rotation. Bans that follow each other between
// the second and the third step add a key each, and a keyring takes 16 keys
// (package gossip). The oldest keys, of members that missed several rotations,
// are at the end and go first.
const mostOld = 8

// begin returns the keys after the first step.
func begin(r record.GossipKeys, fresh []byte, why string, now time.Time) record.GossipKeys {
	old := slices.Clone(r.Keys)
	if t := r.Rotation; t != nil && !t.Used { // nobody sends with its key yet
		old = without(old, t.Key)
	}
	old = old[:min(len(old), mostOld)]
	return record.GossipKeys{
		Keys:     append(slices.Clone(old), fresh),
		Rotation: &record.GossipRotation{Key: fresh, Old: old, Why: why, From: stamp(now)},
	}
}

// next returns the keys after the second or third step.
func next(r record.GossipKeys) record.GossipKeys {
	t := *r.Rotation
	if !t.Used {
		t.Used = true
		return record.GossipKeys{Keys: append([][]byte{t.Key}, without(r.Keys, t.Key)...), Rotation: &t}
	}
	keys := r.Keys
	for _, k := range t.Old {
		keys = without(keys, k)
	}
	return record.GossipKeys{Keys: keys} // the new key, and what `serf keys` has installed meanwhile
}

func without(keys [][]byte, key []byte) [][]byte {
	return slices.DeleteFunc(slices.Clone(keys), func(k []byte) bool { return bytes.Equal(k, key) })
}

// withKeys is a record with keys that `serf keys` has changed. A rotation goes
// on if its key is where the rotation needs it, else the operator has decided.
func withKeys(r record.GossipKeys, keys [][]byte) record.GossipKeys {
	out := record.GossipKeys{Keys: keys, Rotation: r.Rotation}
	if t := r.Rotation; t != nil && (!holds(keys, t.Key) || bytes.Equal(keys[0], t.Key) != t.Used) {
		out.Rotation = nil
	}
	return out
}

// rotating is the step of a rotation that this coordinator has seen last. The
// pause is measured here, from then on: clocks of others do not count.
type rotating struct {
	mu       sync.Mutex
	revision resource.Revision // of the step; 0: no rotation
	due      time.Time         // of the next one
}

// see notes the rotation in the store.
func (r *rotating) see(t *record.GossipRotation, revision resource.Revision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case t == nil:
		r.revision = 0
	case r.revision != revision:
		r.revision, r.due = revision, time.Now().Add(rotationPause)
	}
}

// wait is the time until the next step; long without a rotation.
func (r *rotating) wait() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.revision == 0 {
		return time.Hour
	}
	return max(0, time.Until(r.due))
}

// advance makes the next step of a rotation that has waited long enough. That
// another coordinator was faster is no error.
func (s *Service) advance(ctx context.Context) error {
	if s.rotating.wait() > 0 {
		return nil
	}
	rec, revision, err := s.readKeys(ctx)
	if err != nil {
		return err
	}
	s.rotating.see(rec.Rotation, revision)
	if rec.Rotation == nil || s.rotating.wait() > 0 {
		return nil
	}
	done, err := s.writeKeys(ctx, next(rec), revision)
	if err != nil && !errors.Is(err, record.ErrUnknownOutcome) {
		return err
	}
	if done {
		s.log.Info("gossip_rotation_step", "why", rec.Rotation.Why, "all_send_with_the_new_key", true, "old_keys_removed", rec.Rotation.Used)
	}
	return nil
}
