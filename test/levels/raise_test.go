package levels_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/raise"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/level"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

var reservations = level.Feature{Level: newer, Name: "reservations"}

func door(s store.Store) *raise.Door {
	return &raise.Door{Cluster: "rig", Store: s, Known: newer, Features: []level.Feature{reservations}}
}

// registers writes the keys of a registration by an agent of a level. A coordinator of an
// older version writes no level.
func registers(t *testing.T, s store.KVStore, node resource.NodeID, at string, knows level.Level) {
	t.Helper()
	spec := record.NodeSpec{Capacity: resource.Vector{resource.CPU: 1000}, Registrations: []string{"2026-01-01T00:00:00Z", at}}
	ops := []record.Op{record.Put(record.NodeSpecKey(node), record.MustEncode(spec))}
	if knows > 0 {
		ops = append(ops, record.Put(record.NodeLevelKey(node), record.MustEncode(record.KnownLevel{Level: knows, Registered: at})))
	}
	if _, err := s.Txn(t.Context(), record.Txn{Then: ops}); err != nil {
		t.Fatal(err)
	}
}

// raised asks for a raise, and returns the code and the text of a refusal.
func raised(t *testing.T, d *raise.Door, to level.Level) (code int, text string) {
	t.Helper()
	l, err := d.RaiseFeatureLevel(t.Context(), api.FeatureLevelPatch{Level: int(to)}, "admin")
	var status *api.Status
	switch {
	case err == nil && l.Level == int(to):
		return 200, ""
	case errors.As(err, &status):
		return status.Code, status.Message
	}
	t.Fatalf("raise to %d: %+v, %v", to, l, err)
	return 0, ""
}

// TestAnUpgradeAroundARaise: before the raise the older version comes back, afterwards it
// does not.
func TestAnUpgradeAroundARaise(t *testing.T) {
	newest := map[string]level.Level{"old": older, "new": newer, "again": older, "third": newer}
	bubble(t, knowing(newest), func(t *testing.T, c *rig.Cluster) {
		d := door(c.Store)
		leads := func(name string) *rig.Coordinator {
			t.Helper()
			k := c.StartCoordinator(name)
			c.Eventually(name+" leads", k.Leading)
			return k
		}
		leads("old").Stop()
		leads("new").Stop()
		again := leads("again") // the way back is open
		k := c.StartCoordinator("new")
		c.Eventually("both are candidates", func() bool {
			l, err := d.GetFeatureLevel(t.Context())
			return err == nil && len(l.Behind) == 1 && l.Behind[0] == api.BehindLevel{Kind: "Coordinator", Name: "again", Level: int(older)}
		})
		if code, text := raised(t, d, newer); code != 409 || !strings.Contains(text, fmt.Sprintf("coordinator again knows %d", older)) || strings.Contains(text, "new") {
			t.Errorf("with an older coordinator: %d %s", code, text)
		}
		again.Stop()
		c.Eventually("the newer one leads", k.Leading)
		if code, text := raised(t, d, newer); code != 200 {
			t.Fatalf("all know the level: %d %s", code, text)
		}
		c.Eventually("a term of the new level", k.Leading)
		if l, err := d.GetFeatureLevel(t.Context()); err != nil || l.Level != int(newer) || len(l.Behind) > 0 || !level.Level(l.Level).On(reservations) {
			t.Errorf("after the raise: %+v, %v", l, err)
		}
		back := c.StartCoordinator("old")
		third := c.StartCoordinator("third")
		c.Eventually("the older one refuses", func() bool { return back.Ready(t.Context()) != nil && third.Ready(t.Context()) == nil })
		k.Stop()
		c.Eventually("the other newer one leads", third.Leading)
		if back.Leading() || back.Err() != nil {
			t.Errorf("the older one leads %t, ended with %v", back.Leading(), back.Err())
		}
		for to, want := range map[level.Level]int{newer: 200, older: 409, newer + 1: 409, 0: 422} {
			if code, text := raised(t, d, to); code != want {
				t.Errorf("a raise to %d: %d %s, want %d", to, code, text, want)
			}
		}
	})
}

// TestTheAgentOfEachNodeHasToKnowTheLevel: a level counts for the registration that has
// told it.
func TestTheAgentOfEachNodeHasToKnowTheLevel(t *testing.T) {
	const before, now = "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"
	for name, c := range map[string]struct {
		registers func(t *testing.T, s store.KVStore)
		behind    []api.BehindLevel
	}{
		"no node": {registers: func(*testing.T, store.KVStore) {}},
		"each agent knows": {registers: func(t *testing.T, s store.KVStore) {
			registers(t, s, "n1", now, newer)
			registers(t, s, "n2", now, newer+1)
		}},
		"an agent of an older version": {registers: func(t *testing.T, s store.KVStore) {
			registers(t, s, "n1", now, 0)
			registers(t, s, "n2", now, older)
		}, behind: []api.BehindLevel{{Kind: "Node", Name: "n1"}, {Kind: "Node", Name: "n2", Level: int(older)}}},
		"the agent before knew": {registers: func(t *testing.T, s store.KVStore) {
			registers(t, s, "n1", before, newer)
			registers(t, s, "n1", now, 0)
		}, behind: []api.BehindLevel{{Kind: "Node", Name: "n1"}}},
		"a created node that has no agent yet": {registers: func(t *testing.T, s store.KVStore) {
			if _, err := s.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(record.NodeSpecKey("n1"), record.MustEncode(record.NodeSpec{Created: now}))}}); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := mem.Open(mem.Options{})
			candidate(t, s)
			c.registers(t, s)
			d := door(s)
			l, err := d.GetFeatureLevel(t.Context())
			if diff := cmp.Diff(c.behind, l.Behind); err != nil || diff != "" {
				t.Errorf("%v, behind (-want +got):\n%s", err, diff)
			}
			code, text := raised(t, d, newer)
			if want := map[bool]int{true: 200, false: 409}[len(c.behind) == 0]; code != want {
				t.Errorf("raise: %d %s, want %d", code, text, want)
			}
			for _, b := range c.behind {
				if !strings.Contains(text, "node "+b.Name) {
					t.Errorf("the refusal does not name %s: %s", b.Name, text)
				}
			}
			if kvs, _, err := s.Range(t.Context(), record.RaiseKey, store.RangeOptions{}); err != nil || len(kvs) > 0 {
				t.Errorf("the raise has left %v, %v: no agent registers", kvs, err)
			}
		})
	}
}

// candidate is the leader, of the newer level.
func candidate(t *testing.T, s store.Store) {
	t.Helper()
	lease, err := s.Grant(t.Context(), 3600e9)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Txn(t.Context(), record.Txn{Then: []record.Op{
		record.PutLeased(record.LeaderKey(lease.ID), record.MustEncode(record.LeaderAddress{ID: "c1"}), lease.ID),
		record.PutLeased(record.CandidateLevelKey(lease.ID), record.MustEncode(record.KnownLevel{Level: newer}), lease.ID),
	}}); err != nil {
		t.Fatal(err)
	}
}

// between is a store with other writes before the last Txn of a raise.
type between struct {
	store.Store
	write func()
	lost  bool // the answer of the last Txn
}

func (b *between) Txn(ctx context.Context, x record.Txn) (record.TxnResult, error) {
	if x.Then[0].Key != record.ClusterKey {
		return b.Store.Txn(ctx, x)
	}
	b.write()
	done, err := b.Store.Txn(ctx, x)
	if b.lost {
		return record.TxnResult{}, record.ErrUnknownOutcome
	}
	return done, err
}

func TestARaiseMeetsOtherWrites(t *testing.T) {
	for name, c := range map[string]struct {
		keys []string // deleted in between
		put  string
		lost bool
		want int
	}{
		"nothing":                   {want: 200},
		"the answer is lost":        {lost: true, want: 200},
		"the leader's key goes":     {keys: []string{"leader"}, want: 409},
		"the lease of it ends":      {keys: []string{record.RaiseKey}, want: 409},
		"another raise was faster":  {put: atLevel(older), want: 409},
		"another has raised as far": {put: atLevel(newer), want: 200},
	} {
		t.Run(name, func(t *testing.T) {
			s := mem.Open(mem.Options{})
			candidate(t, s)
			write := func() {
				x := record.Txn{}
				for _, key := range c.keys {
					if key == "leader" {
						kvs, _, err := s.Range(t.Context(), record.LeaderPrefix, store.RangeOptions{})
						if err != nil {
							t.Fatal(err)
						}
						key = kvs[0].Key
					}
					x.Then = append(x.Then, record.Delete(key))
				}
				if c.put != "" {
					x.Then = append(x.Then, record.Put(record.ClusterKey, []byte(c.put)))
				}
				if len(x.Then) > 0 {
					if _, err := s.Txn(t.Context(), x); err != nil {
						t.Fatal(err)
					}
				}
			}
			if code, text := raised(t, door(&between{s, write, c.lost}), newer); code != c.want {
				t.Errorf("%d %s, want %d", code, text, c.want)
			}
		})
	}
}

func TestWithoutALeaderThereIsNoRaise(t *testing.T) {
	s := mem.Open(mem.Options{})
	if code, text := raised(t, door(s), newer); code != 503 {
		t.Errorf("%d %s, want 503", code, text)
	}
	candidate(t, s)
	if _, err := s.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(record.RaiseKey, record.MustEncode(record.Raise{To: newer}))}}); err != nil {
		t.Fatal(err)
	}
	if code, text := raised(t, door(s), newer); code != 409 || !strings.Contains(text, "another raise") {
		t.Errorf("during another raise: %d %s, want 409", code, text)
	}
}
