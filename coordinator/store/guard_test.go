package store_test

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/level"
)

// guarded is a store for a process of level 1, and a function with which the process sees a
// value of the key of the cluster.
func guarded() (g *store.Guarded, sees func(value string) bool) {
	g = store.Guard(mem.Open(mem.Options{}), 1, slog.New(slog.DiscardHandler))
	return g, func(value string) bool {
		return g.Saw(&record.KV{Key: record.ClusterKey, Value: []byte(value)})
	}
}

func TestAProcessWritesOnlyAtALevelThatItKnows(t *testing.T) {
	g, sees := guarded()
	put := record.Txn{Then: []record.Op{record.Put(record.JobKey("ml", "a"), []byte("{}"))}}
	for _, c := range []struct {
		value            string
		level            level.Level
		changes, refused bool
	}{
		{value: `{"v":1,"name":"c"}`},
		{value: `{"v":1,"name":"c","level":1}`, level: 1, changes: true},
		{value: `{"v":1,"name":"c","level":2}`, level: 2, changes: true, refused: true},
		{value: `{"v":1,"name":"c","level":2}`, level: 2, refused: true},
		{value: `{"v":1,"name":"c","level":1}`, level: 1, changes: true}, // a restored store
		{value: `{"v":2}`, changes: true, refused: true},
		{value: `{"v":1,"name":"c"}`, changes: true},
		{value: `{"v":1,"name":"c","later":1}`, changes: true, refused: true},
	} {
		changes := sees(c.value)
		_, txn := g.Txn(t.Context(), put)
		_, grant := g.Grant(t.Context(), time.Minute)
		_, _, _, get := g.Get(t.Context(), record.ClusterKey)
		var a, b *level.UnknownError
		if changes != c.changes || g.Level() != c.level || (g.Refusal() != nil) != c.refused || errors.As(txn, &a) != c.refused || errors.As(grant, &b) != c.refused || get != nil {
			t.Errorf("%s: changes %t, level %d, refusal %v, Txn %v, Grant %v, Get %v; want %+v", c.value, changes, g.Level(), g.Refusal(), txn, grant, get, c)
		}
	}
	if g.Saw(&record.KV{Key: record.JobKey("ml", "a"), Value: []byte("{")}) || g.Refusal() == nil {
		t.Error("another key changes the level")
	}
}

func TestACandidacyEndsWithTheKnowledgeOfTheLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, sees := guarded()
		first := lead(t, g, "first")
		ended := make(chan error, 1)
		go func() {
			_, err := g.Stand(t.Context(), store.NewCandidate(g, record.LeaderAddress{ID: "second"}, time.Minute).Knowing(1))
			ended <- err
		}()
		synctest.Wait()
		candidates := func() int {
			kvs, _, err := g.Range(t.Context(), record.LeaderPrefix, store.RangeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return len(kvs)
		}
		if candidates() != 2 {
			t.Fatal("the second is no candidate: this test shows nothing")
		}
		sees(`{"v":1,"name":"c","level":2}`)
		synctest.Wait()
		select {
		case err := <-ended:
			if err == nil || candidates() != 1 {
				t.Errorf("the second campaign: %v, %d candidates, want an end, and 1", err, candidates())
			}
		default:
			t.Error("the second goes on as a candidate")
		}
		if _, err := g.Stand(t.Context(), store.NewCandidate(g, record.LeaderAddress{ID: "third"}, time.Minute)); err == nil || candidates() != 1 {
			t.Errorf("a third campaign: %v, %d candidates", err, candidates())
		}
		if err := first.Resign(t.Context()); err != nil || candidates() != 0 {
			t.Errorf("the end of the first term: %v, %d candidates", err, candidates())
		}
	})
}
