package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/narrate"
	"github.com/musterd/muster/coordinator/history/projector"
	"github.com/musterd/muster/coordinator/history/sound"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/long"
	"github.com/musterd/muster/test/postgres"
)

// TestTheHistoryAfterKills kills coordinators, the projector among them, and the database
// under load. Afterwards each row is what a narrator makes that has followed every change
// of the store; there is no gap, since no outage was longer than the store remembers.
func TestTheHistoryAfterKills(t *testing.T) {
	server := postgres.Start(t)
	historyAfterKills(t, server.Database(t), 9, func(pause time.Duration) {
		server.Kill()
		hold(pause)
		server.Restart(t)
	})
}

// TestTheHistoryInAFileAfterKills is the same with SQLite, which has no process.
func TestTheHistoryInAFileAfterKills(t *testing.T) {
	long.Only(t, "TestTheHistoryAfterKills runs a short round with PostgreSQL")
	historyAfterKills(t, "sqlite:"+filepath.Join(t.TempDir(), "history.db"), 10, nil)
}

// historyAfterKills kills coordinators, and the database where killDatabase is not nil.
func historyAfterKills(t *testing.T, dsn string, which uint64, killDatabase func(pause time.Duration)) {
	lot := dice(t, which)
	c := cluster.Start(t, cluster.Options{
		Etcd: 1, Coordinators: 2, Agents: 2, CoordinatorSettings: cluster.Settings{"history": cluster.Settings{"dsn": dsn}},
	})
	told := narrate.New(cluster.Name)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes := c.Store.Watch(ctx, record.Root, store.WatchOptions{From: 1})
	w, err := warehouse.Open(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	awaitHistory(t, c, w, 0) // it has begun
	l := c.StartLoad(cluster.LoadOptions{Prefix: "h-", Seed: *seed, Namespaces: []string{"default"}, Pace: long.Size(60*time.Millisecond, 20*time.Millisecond)})
	killed := map[string]int{}
	for range *kills {
		if lot.IntN(3) == 0 && killDatabase != nil {
			killed["database"]++
			killDatabase(time.Duration(lot.IntN(2000)) * time.Millisecond)
		} else {
			killed["coordinator"]++
			victim := c.Coordinators[lot.IntN(len(c.Coordinators))]
			victim.Kill()
			hold(time.Duration(lot.IntN(1500)) * time.Millisecond)
			victim.Start()
		}
		l.AwaitProgress(1, "after a kill")
	}
	l.Stop()
	c.Clear()
	last := resource.Revision(0) // of the changes that make rows
	for {
		select {
		case b := <-changes:
			if b.Err != nil {
				t.Fatal(b.Err)
			}
			told.Follow(b)
			if !strings.HasPrefix(b.Events[0].KV.Key, record.HistoryPrefix) {
				last = b.Revision
			}
			continue
		case <-time.After(2 * time.Second): // that was all
		}
		break
	}
	want, all := told.Take(), awaitHistory(t, c, w, last)
	faults, err := sound.Check(t.Context(), w, time.Unix(0, 0))
	if err != nil || len(faults) > 0 {
		t.Errorf("error %v, contradictions %v", err, faults)
	}
	differences := projector.Compare(want, all)
	for i, d := range differences {
		if i == 20 {
			t.Errorf("and %d more", len(differences)-i)
			break
		}
		t.Error(d)
	}
	if len(all.Gaps) > 0 || len(want.Grants) == 0 {
		t.Errorf("gaps %+v, %d grants", all.Gaps, len(want.Grants))
	}
	t.Logf("kills %v; %d allocations, %d grants, %d waits are as the store had them", killed, len(want.Units), len(want.Grants), len(want.Waits))
}

// awaitHistory waits until the history has the changes of the store up to a revision, and
// returns its rows.
func awaitHistory(t *testing.T, c *cluster.Cluster, w *warehouse.Warehouse, upto resource.Revision) history.Batch {
	t.Helper()
	// A write that hangs with its connection ends after WriteTimeout.
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Patience+warehouse.WriteTimeout)
	defer cancel()
	before := "no look has ended"
	for {
		r, err := projector.Verify(ctx, c.Store, w, cluster.Name, 0)
		text := fmt.Sprintf("error %v; %d rows at revision %d of %d, differences %v", err, r.Rows, r.Revision, upto, r.Differences)
		if err == nil && r.Revision >= upto && len(r.Differences) == 0 {
			all, err := w.All(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		if ctx.Err() != nil {
			t.Fatalf("%s; and before that: %s", text, before)
		}
		before = text
		hold(500 * time.Millisecond)
	}
}
