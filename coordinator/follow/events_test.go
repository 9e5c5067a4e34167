package follow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/objects/objectstest"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
)

// startLeader is startCoordinator of a coordinator that leads.
func startLeader(s store.Store) *coordinator {
	o := options(s, slog.New(slog.DiscardHandler))
	o.Leads = func() bool { return true }
	f := New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	return &coordinator{f, func() { cancel(); <-done }}
}

// eventLines are the events that a coordinator lists, as JSON, one a line.
func eventLines(t *testing.T, f *Follower) string {
	t.Helper()
	v, err := f.View()
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for i := range v.After(objects.Events, "", objects.Name{}) {
		lines.Write(objects.Encode(i.Object()))
		lines.WriteByte('\n')
	}
	return lines.String()
}

// essence is what every coordinator has alike of the change of an event: an event that
// a coordinator has counted since it began has another count elsewhere.
func essence(e *objects.Event) string {
	o := e.Object.(*api.Event)
	return fmt.Sprint(o.Metadata.Name, o.InvolvedObject, o.Type, o.Reason, o.Message)
}

// TestEveryCoordinatorHasTheSameEvents: the leader and a follower list the same events
// to the last byte, whatever changes. A coordinator that has begun later, and a
// watch that reads the store's past, give the same events after a place under the
// same ids.
func TestEveryCoordinatorHasTheSameEvents(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { sameEvents(t, seed) })
		})
	}
}

func sameEvents(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 9))
	back := mem.Open(mem.Options{})
	world := objectstest.New(seed, "a", "a-b", "b")
	leader, follower := startLeader(back), startCoordinator(back)
	defer leader.kill()
	defer follower.kill()
	synctest.Wait()
	var young *coordinator
	for round := range 60 {
		for range random.IntN(12) {
			if r, err := back.Txn(t.Context(), record.Txn{Then: world.Change()}); err != nil || !r.Succeeded {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if diff := cmp.Diff(eventLines(t, leader.Follower), eventLines(t, follower.Follower)); diff != "" {
			t.Fatalf("round %d (-leader +follower):\n%s", round, diff)
		}
		if round == 30 {
			young = startCoordinator(back)
			defer young.kill()
		}
		time.Sleep(time.Duration(random.IntN(5)) * time.Minute)
	}
	numbers, reasons := map[objects.ID]string{}, map[string]bool{}
	for who, c := range map[string]*coordinator{"follower": follower, "leader": leader, "young": young} {
		all := c.history(t, objects.Events)
		for _, e := range all {
			reasons[e.Object.(*api.Event).Reason] = true
			if before, known := numbers[e.ID]; known && before != essence(e) {
				t.Errorf("%s: %s is %s, and was %s elsewhere", who, e.ID, essence(e), before)
			}
			numbers[e.ID] = essence(e)
		}
		if len(all) != len(numbers) {
			t.Errorf("%s has %d changes of events, others have %d", who, len(all), len(numbers))
		}
	}
	for _, want := range []string{"Scheduled", "Ready", "Cordoned"} {
		if !reasons[want] {
			t.Errorf("no event says %s: the world is too quiet for this test", want)
		}
	}
}

// TestAWatchOfEventsHasNoSilentGap: a client that goes on at another coordinator gets
// every event after its place; where the store has forgotten the changes, it gets
// 410 and no less.
func TestAWatchOfEventsHasNoSilentGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := mem.Open(mem.Options{})
		world := objectstest.New(3, "a")
		old := startCoordinator(back)
		defer old.kill()
		synctest.Wait()
		for range 200 {
			if _, err := back.Txn(t.Context(), record.Txn{Then: world.Change()}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		all := old.history(t, objects.Events)
		place := all[len(all)/2].ID
		young := startCoordinator(back)
		defer young.kill()
		synctest.Wait()
		w, err := young.Watch(t.Context(), objects.WatchOptions{Kind: objects.Events, After: place})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		var got []*objects.Event
		for _, want := range all[len(all)/2+1:] {
			for len(got) == 0 {
				c, err := w.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got = c.Events
			}
			if next := got[0]; next.ID != want.ID || essence(next) != essence(want) {
				t.Fatalf("after %s comes %s %s, want %s %s", place, next.ID, essence(next), want.ID, essence(want))
			}
			got = got[1:]
		}
		rev, _ := young.At()
		if err := back.Compact(t.Context(), rev); err != nil {
			t.Fatal(err)
		}
		late, err := young.Watch(t.Context(), objects.WatchOptions{Kind: objects.Events, After: place})
		if err == nil {
			defer late.Close()
			_, err = late.Next(t.Context())
		}
		if gone := new(objects.GoneError); !errors.As(err, &gone) {
			t.Errorf("a place that the store has forgotten: %v, want a GoneError", err)
		}
	})
}

// TestEventsOutliveALoad: a coordinator that loads everything anew, because its watch
// was interrupted, keeps its events, and says since when it has had all.
func TestEventsOutliveALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := mem.Open(mem.Options{})
		world := objectstest.New(5, "a")
		c := startCoordinator(back)
		defer c.kill()
		synctest.Wait()
		for range 100 {
			if _, err := back.Txn(t.Context(), record.Txn{Then: world.Change()}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		before := eventLines(t, c.Follower)
		time.Sleep(time.Minute)
		c.mu.Lock()
		restart := c.restart
		c.mu.Unlock()
		restart()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		v, err := c.View()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, eventLines(t, c.Follower)); diff != "" || time.Since(v.EventsSince()) > 15*time.Second {
			t.Errorf("since %s (-before +after the load):\n%s", v.EventsSince(), diff)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := eventLines(t, c.Follower); got != "" {
			t.Errorf("after an hour there is still:\n%s", got)
		}
	})
}
