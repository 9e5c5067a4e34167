package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/level"
)

// doubtful answers its first Txn with an unknown outcome, after the Txn has
// landed or without it.
type doubtful struct {
	store.Store
	lands bool
	once  sync.Once
}

func (d *doubtful) Txn(ctx context.Context, t record.Txn) (r record.TxnResult, err error) {
	d.once.Do(func() {
		if d.lands {
			_, err = d.Store.Txn(ctx, t)
		}
		err = errors.Join(err, fmt.Errorf("connection lost: %w", record.ErrUnknownOutcome))
	})
	if err != nil {
		return record.TxnResult{}, err
	}
	return d.Store.Txn(ctx, t)
}

func TestAStoreBelongsToOneCluster(t *testing.T) {
	put := func(t *testing.T, s store.Store, key, value string) {
		t.Helper()
		if _, err := s.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(key, []byte(value))}}); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		before  func(*testing.T, store.Store)
		through func(store.Store) store.Store
		refused string // the cluster that owns the store, "" for no refusal
		broken  bool
	}{
		"an empty store becomes the caller's": {},
		"the owner comes back":                {before: func(t *testing.T, s store.Store) { put(t, s, record.ClusterKey, `{"v":1,"name":"beta"}`) }},
		"a store from before the claims becomes the caller's": {before: func(t *testing.T, s store.Store) {
			put(t, s, record.NodeLeaseKey("n1"), `{"v":1,"coordinator":"c1"}`)
		}},
		"another cluster's store is refused": {
			before:  func(t *testing.T, s store.Store) { put(t, s, record.ClusterKey, `{"v":1,"name":"alpha"}`) },
			refused: "alpha",
		},
		"a value of another program is an error": {
			before: func(t *testing.T, s store.Store) { put(t, s, record.ClusterKey, "alpha") }, broken: true,
		},
		"an answer is lost and the write has landed": {through: func(s store.Store) store.Store { return &doubtful{Store: s, lands: true} }},
		"an answer is lost with the write":           {through: func(s store.Store) store.Store { return &doubtful{Store: s} }},
	} {
		t.Run(name, func(t *testing.T) {
			var s store.Store = mem.Open(mem.Options{})
			if c.before != nil {
				c.before(t, s)
			}
			if c.through != nil {
				s = c.through(s)
			}
			_, err := store.Claim(t.Context(), s, "beta", level.Newest)
			var other *store.OtherClusterError
			switch {
			case c.refused != "":
				if !errors.As(err, &other) || other.Owner != c.refused || other.Own != "beta" {
					t.Errorf("got %v, want a refusal that names %s and beta", err, c.refused)
				}
			case c.broken:
				if err == nil || errors.As(err, &other) {
					t.Errorf("got %v, want an error about the value", err)
				}
			default:
				if err != nil {
					t.Fatal(err)
				}
				if fresh, err := store.Claim(t.Context(), s, "beta", level.Newest); fresh || err != nil {
					t.Errorf("the owner's second claim: fresh %t, %v", fresh, err)
				}
				if _, err := store.Claim(t.Context(), s, "gamma", level.Newest); !errors.As(err, &other) || other.Owner != "beta" {
					t.Errorf("a third party: %v, want a refusal that names beta", err)
				}
			}
		})
	}
}

func TestAClaimNeedsTheLevelOfTheCluster(t *testing.T) {
	s := mem.Open(mem.Options{})
	if _, err := s.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(record.ClusterKey, []byte(`{"v":1,"name":"beta","level":2}`))}}); err != nil {
		t.Fatal(err)
	}
	for known, want := range map[level.Level]bool{0: false, 1: false, 2: true, 3: true} {
		_, err := store.Claim(t.Context(), s, "beta", known)
		var refused *level.UnknownError
		if is := errors.As(err, &refused); is == want || is && *refused != (level.UnknownError{Cluster: 2, Known: known}) || want && err != nil {
			t.Errorf("a coordinator that knows level %d: %v, want let in: %t", known, err, want)
		}
	}
	var other *store.OtherClusterError
	if _, err := store.Claim(t.Context(), s, "gamma", 0); !errors.As(err, &other) {
		t.Errorf("a coordinator of another cluster: %v, want a refusal by the name", err)
	}
}

// Of many that claim a store at once, the members of one cluster win, and all
// others are refused by its name.
func TestARaceForAStoreHasOneWinner(t *testing.T) {
	s := mem.Open(mem.Options{})
	var claims sync.WaitGroup
	won, lost := make(chan string, 40), make(chan string, 40)
	for i := range 40 {
		cluster := fmt.Sprint("cluster-", i%4)
		claims.Go(func() {
			_, err := store.Claim(t.Context(), s, cluster, level.Newest)
			var other *store.OtherClusterError
			switch {
			case err == nil:
				won <- cluster
			case errors.As(err, &other):
				lost <- other.Owner
			default:
				t.Error(err)
			}
		})
	}
	claims.Wait()
	close(won)
	close(lost)
	winner := <-won
	for other := range won {
		if other != winner {
			t.Errorf("both %s and %s have the store", winner, other)
		}
	}
	for owner := range lost {
		if owner != winner {
			t.Errorf("a loser was refused for %s, the store belongs to %s", owner, winner)
		}
	}
}
