package enroll_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/gossip"
)

func TestGossipKeysAreChangedInTheStoreAndThenEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		defer s.Close()
		a, b := open(t, s, "c1"), open(t, s, "c2")
		run(t, a, b)
		old, fresh := a.Keyring().Keys()[0], bytes.Repeat([]byte{7}, 32)
		change := func(how func(keys [][]byte, key []byte) ([][]byte, error), key []byte) error {
			return a.ChangeKeys(t.Context(), func(keys [][]byte) ([][]byte, error) { return how(keys, key) })
		}
		before := a.Fingerprint()
		for _, step := range []struct {
			how  func(keys [][]byte, key []byte) ([][]byte, error)
			key  []byte
			want [][]byte
		}{{gossip.InstallKey, fresh, [][]byte{old, fresh}}, {gossip.UseKey, fresh, [][]byte{fresh, old}}, {gossip.RemoveKey, old, [][]byte{fresh}}} {
			if err := change(step.how, step.key); err != nil {
				t.Fatal(err)
			}
			if got := a.Keyring().Keys(); !slices.EqualFunc(got, step.want, bytes.Equal) { // at once
				t.Errorf("the coordinator that was asked has %d keys, want %d, or in another order", len(got), len(step.want))
			}
			time.Sleep(time.Second)
			if got := b.Keyring().Keys(); !slices.EqualFunc(got, step.want, bytes.Equal) {
				t.Errorf("the other has %d keys, want %d, or in another order", len(got), len(step.want))
			}
		}
		if a.Fingerprint() == before || a.Fingerprint() != b.Fingerprint() {
			t.Error("agents are not told that there is something new")
		}
		if err := change(gossip.RemoveKey, fresh); err == nil {
			t.Error("the key that encrypts is removed")
		}
		refused := errors.New("no")
		if err := a.ChangeKeys(t.Context(), func([][]byte) ([][]byte, error) { return nil, refused }); !errors.Is(err, refused) {
			t.Errorf("a change that is refused: %v", err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.ChangeKeys(ended, func(keys [][]byte) ([][]byte, error) { return keys, nil }); err == nil {
			t.Error("a store that does not answer is no error")
		}
		kv, _, _, err := s.Get(t.Context(), record.GossipKeysKey)
		if err != nil {
			t.Fatal(err)
		}
		if rec, err := record.Decode[record.GossipKeys](kv.Key, kv.Value); err != nil || len(rec.Keys) != 1 || !bytes.Equal(rec.Keys[0], fresh) {
			t.Errorf("the store has %d keys, or another, %v", len(rec.Keys), err)
		}
	})
}

// Two operators at two coordinators at once: no change is lost.
func TestChangesOfGossipKeysAtOnceAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		defer s.Close()
		a, b := open(t, s, "c1"), open(t, s, "c2")
		run(t, a, b)
		one, two := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
		meanwhile := true
		err := a.ChangeKeys(t.Context(), func(keys [][]byte) ([][]byte, error) {
			if meanwhile {
				meanwhile = false
				if err := b.ChangeKeys(t.Context(), func(keys [][]byte) ([][]byte, error) { return gossip.InstallKey(keys, two) }); err != nil {
					return nil, err
				}
			}
			return gossip.InstallKey(keys, one)
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if n, m := len(a.Keyring().Keys()), len(b.Keyring().Keys()); n != 3 || m != 3 {
			t.Errorf("there are %d and %d keys, want 3", n, m)
		}
	})
}
