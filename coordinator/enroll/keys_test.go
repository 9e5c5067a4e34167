package enroll_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/pki/folder"
	"github.com/musterd/muster/resource"
)

// storeKeys replaces the store's gossip keys, as another coordinator does.
func storeKeys(t *testing.T, s store.Store, keys ...[]byte) {
	t.Helper()
	if _, err := s.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(record.GossipKeysKey, record.MustEncode(record.GossipKeys{Keys: keys}))}}); err != nil {
		t.Fatal(err)
	}
}

// storedKeys returns the store's gossip keys.
func storedKeys(t *testing.T, s store.Store) [][]byte {
	t.Helper()
	kv, _, _, err := s.Get(t.Context(), record.GossipKeysKey)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := record.Decode[record.GossipKeys](kv.Key, kv.Value)
	if err != nil {
		t.Fatal(err)
	}
	return rec.Keys
}

func wantKeys(t *testing.T, when string, got [][]byte, want ...[]byte) {
	t.Helper()
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("%s: %d keys, want %d, or others, or in another order", when, len(got), len(want))
	}
}

func TestCoordinatorsFollowTheGossipKeysOfTheStore(t *testing.T) {
	one, two := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	for name, c := range map[string]struct {
		change func(t *testing.T, s *mem.Store)
		want   [][]byte // nil: the keys of before
	}{
		"a key is added":                     {func(t *testing.T, s *mem.Store) { storeKeys(t, s, one, two) }, [][]byte{one, two}},
		"another key is the first":           {func(t *testing.T, s *mem.Store) { storeKeys(t, s, one, two); storeKeys(t, s, two, one) }, [][]byte{two, one}},
		"the store is restored":              {func(t *testing.T, s *mem.Store) { b := backup(t, s, two); s.Restore(b) }, [][]byte{two}},
		"the keys are deleted: written back": {func(t *testing.T, s *mem.Store) { deleteKeys(t, s) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := mem.Open(mem.Options{})
				defer s.Close()
				a, b := open(t, s, "c1"), open(t, s, "c2")
				run(t, a, b)
				synctest.Wait()
				before, fingerprint := a.Keyring().Keys(), a.Fingerprint()
				changed := a.Changed()
				c.change(t, s)
				acknowledge(t, s)
				time.Sleep(5 * time.Second)
				want := c.want
				if want == nil {
					want = before
				}
				wantKeys(t, "one coordinator", a.Keyring().Keys(), want...)
				wantKeys(t, "the other", b.Keyring().Keys(), want...)
				wantKeys(t, "the store", storedKeys(t, s), want...)
				if a.Fingerprint() != b.Fingerprint() || (a.Fingerprint() == fingerprint) != (c.want == nil) {
					t.Error("agents are not told that the keys changed, or are although they have not")
				}
				select {
				case <-changed:
				default:
					if c.want != nil {
						t.Error("heartbeat streams are not woken")
					}
				}
			})
		})
	}
}

// backup returns a backup of the store with other keys; the store itself keeps
// its own.
func backup(t *testing.T, s *mem.Store, keys ...[]byte) mem.Backup {
	t.Helper()
	now := storedKeys(t, s)
	storeKeys(t, s, keys...)
	b := s.Backup()
	storeKeys(t, s, now...)
	return b
}

func deleteKeys(t *testing.T, s store.Store) {
	t.Helper()
	if _, err := s.Txn(t.Context(), record.Txn{Then: []record.Op{record.Delete(record.GossipKeysKey)}}); err != nil {
		t.Fatal(err)
	}
}

// A coordinator that dies between the write to the store and the change of its
// keyring has the new keys when it is back. The files in which older
// versions kept keys, whole or damaged, count for nothing.
func TestACoordinatorThatStartsHasTheKeysOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		defer s.Close()
		dir := filepath.Join(t.TempDir(), "private")
		f, err := folder.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		kept := func(c *enroll.Config) { c.Folder = f }
		first := open(t, s, "c1", kept)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); first.Run(ctx) }()
		synctest.Wait()
		cancel()
		<-ended
		fresh := bytes.Repeat([]byte{7}, 32)
		storeKeys(t, s, fresh) // its last act
		for name, text := range map[string]string{"keyring.json": `["AQEBAQEBAQEBAQEBAQEBAQ=="]`, "agreed.json": "half a fi"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		again := open(t, s, "c1", kept)
		wantKeys(t, "at once", again.Keyring().Keys(), fresh)
		run(t, again)
		time.Sleep(5 * time.Second)
		wantKeys(t, "the coordinator", again.Keyring().Keys(), fresh)
		wantKeys(t, "the store", storedKeys(t, s), fresh)
	})
}

// Bans 4 s apart, each before the old keys of the last one have gone: the keys
// stay few enough for a keyring.
func TestBansOneAfterTheOtherFitIntoAKeyring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		defer s.Close()
		a := open(t, s, "c1")
		run(t, a)
		for i := range 30 {
			if _, err := a.Ban(t.Context(), resource.NodeID(fmt.Sprintf("n%d", i)), "", "ann"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(4 * time.Second)
			if _, err := gossip.NewKeyring(storedKeys(t, s)); err != nil {
				t.Fatalf("after %d bans: %v", i+1, err)
			}
		}
		time.Sleep(10 * time.Second)
		if keys := a.Keyring().Keys(); len(keys) != 1 {
			t.Errorf("%d keys in the end, want the last one alone", len(keys))
		}
	})
}
