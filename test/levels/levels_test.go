// Package levels tests coordinators and agents of different feature levels on a single
// store: rolling upgrades and downgrades around a raise.
package levels_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/level"
	"github.com/musterd/muster/test/rig"
)

// bubble runs a test in fake time.
func bubble(t *testing.T, o rig.Options, test func(*testing.T, *rig.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, rig.New(t, o)) })
}

// knowing configures the coordinators of a cluster with their newest levels, by name.
func knowing(newest map[string]level.Level) rig.Options {
	return rig.Options{Configure: func(c *coordinator.Config) { c.NewestLevel = newest[c.ID] }}
}

func atLevel(l level.Level) string { return fmt.Sprintf(`{"v":1,"name":"rig","level":%d}`, l) }

func setLevel(t *testing.T, c *rig.Cluster, value string) {
	t.Helper()
	if _, err := c.Store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(record.ClusterKey, []byte(value))}}); err != nil {
		t.Fatal(err)
	}
}

const (
	older = level.Newest + 1
	newer = level.Newest + 2
)

func TestACoordinatorThatDoesNotKnowTheLevelDoesNothing(t *testing.T) {
	for name, value := range map[string]string{
		"a later level":   atLevel(newer),
		"a later version": `{"v":1,"name":"rig","later":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, knowing(map[string]level.Level{"old": older, "new": newer}), func(t *testing.T, c *rig.Cluster) {
				setLevel(t, c, value)
				k := c.StartCoordinator("old")
				c.Eventually("the coordinator has seen the level", func() bool {
					return k.Ready(t.Context()) != nil && strings.Contains(k.Ready(t.Context()).Error(), "feature level")
				})
				written := 0
				k.Gate.OnTxn(func(record.Txn) rig.Fault { written++; return rig.None })
				<-time.NewTimer(time.Minute).C
				kvs, _, err := c.Store.Range(t.Context(), record.LeaderPrefix, store.RangeOptions{})
				if err != nil || k.Leading() || k.Err() != nil || written > 0 || len(kvs) > 0 {
					t.Errorf("leads %t, %d Txns, %d candidates, ended with %v, %v; want a coordinator that goes on and writes nothing", k.Leading(), written, len(kvs), k.Err(), err)
				}
				_, _, err = k.Allocate(t.Context(), rig.Submission{Name: "a", GPUs: 1})
				if rig.Code(err) != 503 {
					t.Errorf("an allocation there: %v, want 503", err)
				}
				if name == "a later level" {
					c.StartCoordinator("new")
					c.Eventually("the newer one leads", func() bool { return c.Leader().ID == "new" })
					if k.Ready(t.Context()) == nil {
						t.Error("the older coordinator says that it is ready")
					}
				}
			})
		})
	}
}

func TestATermEndsWithItsLevel(t *testing.T) {
	bubble(t, knowing(map[string]level.Level{"old": older, "new": newer}), func(t *testing.T, c *rig.Cluster) {
		k := c.StartCoordinator("old")
		c.Eventually("the first leads", k.Leading)
		f := c.StartCoordinator("new")
		setLevel(t, c, atLevel(older))
		setLevel(t, c, atLevel(newer)) // the verb would refuse
		c.Eventually("the newer coordinator leads", f.Leading)
		<-time.NewTimer(time.Minute).C
		if !f.Leading() || k.Leading() || k.Ready(t.Context()) == nil || f.Ready(t.Context()) != nil {
			t.Errorf("new leads %t and is ready: %v; old leads %t and is ready: %v", f.Leading(), f.Ready(t.Context()), k.Leading(), k.Ready(t.Context()))
		}
	})
}

func TestACandidateThatDoesNotKnowTheLevelWithdraws(t *testing.T) {
	bubble(t, knowing(map[string]level.Level{"old": older, "new": newer}), func(t *testing.T, c *rig.Cluster) {
		k := c.StartCoordinator("new")
		c.Eventually("the first leads", k.Leading)
		f := c.StartCoordinator("old")
		candidates := func() int {
			kvs, _, err := c.Store.Range(t.Context(), record.LeaderPrefix, store.RangeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return len(kvs)
		}
		c.Eventually("both are candidates", func() bool { return candidates() == 2 })
		setLevel(t, c, atLevel(newer))
		c.Eventually("the newer coordinator alone is a candidate", func() bool { return candidates() == 1 && k.Leading() })
		k.Stop()
		<-time.NewTimer(time.Minute).C
		if f.Leading() || candidates() > 0 || f.Err() != nil {
			t.Errorf("the older one leads %t, %d candidates, ended with %v", f.Leading(), candidates(), f.Err())
		}
	})
}

// TestEachCandidateTellsItsLevel: beside the candidacy, and never where an older version
// would have to read it.
func TestEachCandidateTellsItsLevel(t *testing.T) {
	bubble(t, knowing(map[string]level.Level{"new": newer}), func(t *testing.T, c *rig.Cluster) {
		k := c.StartCoordinator("new")
		c.Eventually("it leads", k.Leading)
		levels := func() (found []record.KV) {
			kvs, _, err := c.Store.Range(t.Context(), record.LevelsPrefix, store.RangeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return kvs
		}
		leaders, _, err := c.Store.Range(t.Context(), record.LeaderPrefix, store.RangeOptions{})
		if kvs := levels(); err != nil || len(kvs) != 1 || len(leaders) != 1 || kvs[0].Key != record.LevelOfCandidate(leaders[0].Key) || kvs[0].Lease != leaders[0].Lease || string(kvs[0].Value) != fmt.Sprintf(`{"v":1,"level":%d}`, newer) {
			t.Errorf("candidates %v, levels %v, %v", leaders, kvs, err)
		}
		k.Stop()
		if kvs := levels(); len(kvs) > 0 {
			t.Errorf("after the end of the coordinator: %v", kvs)
		}
	})
}
