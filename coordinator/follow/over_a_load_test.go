package follow

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/objects"
)

// TestAWatchGoesOnOverALoad: an open watch gets each change in the gap of a load once,
// though the cache begins another history.
func TestAWatchGoesOnOverALoad(t *testing.T) {
	for name, c := range map[string]struct{ before, skipped int }{
		"no change is skipped":                 {3, 0},
		"one change is skipped":                {3, 1},
		"as many as there were before":         {3, 3},
		"as many as a watch takes at a time":   {1, mostChanges},
		"one more than a watch takes":          {1, mostChanges + 1},
		"the watch has had no change yet":      {0, 2},
		"fewer are skipped than were followed": {9, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := startFollowing(t)
				defer f.end()
				putUnit(t, f.back, "first")
				synctest.Wait()
				w, err := f.Watch(t.Context(), objects.WatchOptions{Kind: objects.Allocations})
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				var got []string
				until := func(name string) {
					t.Helper()
					for range 1000 {
						changes, err := w.Next(t.Context())
						if err != nil {
							t.Fatalf("after %v: %v", got, err)
						}
						for _, e := range changes.Events {
							if got = append(got, e.Name.Name); e.Name.Name == name {
								return
							}
						}
					}
					t.Fatalf("the watch has not brought %s, only %v", name, got)
				}
				want := []string{"first"}
				put := func(kind string, n int) {
					for i := range n {
						want = append(want, fmt.Sprint(kind, i))
						putUnit(t, f.back, want[len(want)-1])
					}
					synctest.Wait()
				}
				put("before", c.before)
				until(want[len(want)-1])
				f.with(func() { f.held = true })
				put("skipped", c.skipped)
				f.errs <- errors.New("the watch is cut")
				f.with(func() { f.held = false })
				<-time.After(2 * firstReload)
				put("after", 2)
				until("after1")
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("changes (-want +got):\n%s", d)
				}
			})
		})
	}
}
