package projector_test

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/coordinator/history/projector"
)

var errAway = errors.New("the database is away")

func logger(t *testing.T, name string) *slog.Logger {
	var to io.Writer = io.Discard
	if os.Getenv("MUSTER_TEST_VERBOSE") != "" {
		to = os.Stderr
	}
	return slog.New(slog.NewTextHandler(to, nil)).With("test", t.Name(), "projector", name)
}

func bubble(t *testing.T, test func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t, 1)) })
}

func TestRowsFollowTheStore(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.start("c1")
		w.pass(time.Minute)
		w.rest(12 * time.Second)
		w.judge()
		at, err := w.history.Position(t.Context())
		if s := p.Status(); err != nil || s.Phase != projector.Projecting || s.Position != at.Revision || s.SpoolBatches != 0 {
			t.Errorf("status %+v, the history stands at %d, error %v", s, at.Revision, err)
		}
		if got := w.position(); got.Revision != at.Revision || got.SpoolOwner != "" {
			t.Errorf("the store says %+v, the history stands at %d", got, at.Revision)
		}
		before := w.history.Batches()
		w.rest(time.Hour)
		if n := w.history.Batches() - before; n > 2 {
			t.Errorf("an hour in which nothing happens makes %d batches", n)
		}
	})
}

// TestTheDatabaseIsAwayForHours: rows go to the spool, and the store's position with them.
func TestTheDatabaseIsAwayForHours(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.start("c1")
		w.pass(10 * time.Second)
		w.history.SetAway(errAway)
		w.pass(2 * time.Minute)
		for range 6 {
			w.rest(30 * time.Minute)
			w.pass(5 * time.Second)
		}
		w.rest(5 * time.Second)
		at, _ := w.history.Position(t.Context())
		if got := w.position(); got.SpoolOwner != "c1" || got.Revision <= at.Revision || got.SpoolAfter != at.Revision {
			t.Errorf("the store says %+v, the history stands at %d", got, at.Revision)
		}
		if s := p.Status(); s.SpoolBytes == 0 || s.Away == "" || time.Since(s.AwaySince) < 3*time.Hour {
			t.Errorf("status %+v", s)
		}
		w.compact() // the spool has it all
		w.history.SetAway(nil)
		w.pass(time.Minute)
		w.rest(15 * time.Second)
		w.judge()
		if got := w.position(); got.SpoolOwner != "" {
			t.Errorf("the store says %+v after the spool was drained", got)
		}
		if s := p.Status(); s.SpoolBytes != 0 || s.Away != "" {
			t.Errorf("status %+v", s)
		}
	})
}

// TestAnotherGoesOn: the next projector needs no spool while the store has the changes.
func TestAnotherGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start("c1")
		w.start("c2")
		w.pass(10 * time.Second)
		w.history.SetAway(errAway)
		w.pass(20 * time.Second)
		w.kill("c1")
		w.pass(20 * time.Second)
		w.history.SetAway(nil)
		w.pass(time.Minute)
		w.start("c1") // with a spool that nobody needs any more
		w.pass(time.Minute)
		w.kill("c2")
		w.pass(time.Minute)
		w.rest(15 * time.Second)
		w.judge()
		if gaps := w.history.Rows().Gaps; len(gaps) > 0 {
			t.Errorf("gaps %+v", gaps)
		}
		if s := w.running["c1"].p.Status(); s.SpoolBytes != 0 {
			t.Errorf("status %+v", s)
		}
	})
}

// TestATermBeginsWithoutTheDatabase: it goes on by the store's position, its rows go to
// the spool, and these are drained once the database is back.
func TestATermBeginsWithoutTheDatabase(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start("c1")
		w.pass(time.Minute)
		w.rest(12 * time.Second)
		w.history.SetAway(errAway)
		w.kill("c1")
		p := w.start("c2")
		w.pass(2 * time.Minute)
		if s := p.Status(); s.Phase != projector.Projecting || s.SpoolBatches == 0 {
			t.Errorf("without the database: status %+v", s)
		}
		w.history.SetAway(nil)
		w.pass(time.Minute)
		w.rest(time.Minute)
		w.judge()
		if s := p.Status(); s.SpoolBatches != 0 || s.Away != "" {
			t.Errorf("with the database: status %+v", s)
		}
	})
}

// TestAFullSpoolIsDrained: a coordinator that starts with a spool without room, while the
// database is away, brings it to the database once that is back.
func TestAFullSpoolIsDrained(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.spoolBytes = 16 << 10
		w.start("c1")
		w.pass(10 * time.Second)
		w.history.SetAway(errAway)
		w.pass(2 * time.Minute)
		w.kill("c1")
		p := w.start("c1")
		w.rest(time.Minute)
		if s := p.Status(); s.Phase != projector.Starting || s.SpoolBytes <= w.spoolBytes/2 {
			t.Fatalf("without the database: status %+v", s)
		}
		w.history.SetAway(nil)
		w.pass(time.Minute)
		w.rest(15 * time.Second)
		if s := p.Status(); s.Phase != projector.Projecting || s.SpoolBytes != 0 {
			t.Errorf("with the database: status %+v", s)
		}
		w.judge()
	})
}

// TestAPositionThatIsNone: a revision that only a hand has written into the database stops
// the projector and nothing else.
func TestAPositionThatIsNone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.start("c1")
		w.pass(10 * time.Second)
		w.history.SetAway(errAway)
		w.pass(10 * time.Second)
		before := w.position()
		if before.SpoolOwner != "c1" {
			t.Fatalf("the store says %+v", before)
		}
		w.history.SetAway(nil)
		if err := w.history.Revert(t.Context(), -1); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		if s := p.Status(); s.Phase != projector.Starting || !strings.Contains(s.Reason, "revision -1") {
			t.Errorf("status %+v", s)
		}
		if got := w.position(); got.Revision < before.Revision {
			t.Errorf("the store says %+v, and said %+v", got, before)
		}
		if err := w.history.Revert(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		w.pass(10 * time.Second)
		if s := p.Status(); s.Phase != projector.Projecting {
			t.Errorf("after the repair: status %+v", s)
		}
	})
}

// TestTheSpoolOfAnother: where the store has forgotten what the spool of another has, a
// projector waits for that, and goes on with a gap if it does not come.
func TestTheSpoolOfAnother(t *testing.T) {
	for name, returns := range map[string]bool{"comes back": true, "is lost": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.start("c1")
				w.pass(10 * time.Second)
				w.history.SetAway(errAway)
				w.pass(30 * time.Second)
				w.rest(5 * time.Second)
				w.kill("c1")
				w.compact()
				w.start("c2")
				w.history.SetAway(nil)
				w.pass(20 * time.Minute)
				if s := w.running["c2"].p.Status(); s.Phase != projector.Starting || s.Reason == "" {
					t.Fatalf("status %+v", s)
				}
				if returns {
					w.start("c1")
					w.pass(time.Minute)
					w.rest(15 * time.Second)
					w.judge()
					return
				}
				w.pass(45 * time.Minute)
				w.rest(15 * time.Second)
				rows := w.history.Rows()
				if len(rows.Gaps) != 1 || rows.Gaps[0].Upto <= rows.Gaps[0].From {
					t.Fatalf("gaps %+v", rows.Gaps)
				}
				for uid, u := range rows.Units {
					ended := u.Row.State == "Cancelled" || u.Row.State == "Unknown"
					if ended != !u.Row.Ended.IsZero() {
						t.Errorf("unit %s: %+v", uid, u.Row)
					}
				}
				w.start("c1") // its spool is of no use any more
				w.pass(time.Minute)
				w.rest(15 * time.Second)
				if got := w.history.Rows().Gaps; len(got) != 1 || w.running["c1"].p.Status().SpoolBytes != 0 {
					t.Errorf("gaps %+v, status of c1 %+v", got, w.running["c1"].p.Status())
				}
			})
		})
	}
}

// TestARestoredStore: rows of the lost past are reverted, also where the store has gone on
// beyond the old revision before a projector sees it.
func TestARestoredStore(t *testing.T) {
	for name, late := range map[string]bool{"at once": false, "beyond the old revision": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.start("c1")
				w.pass(30 * time.Second)
				w.rest(3 * time.Second)
				backup, lives := w.store.Backup(), clone(w.live)
				w.pass(20 * time.Second)
				w.rest(3 * time.Second)
				w.kill("c1")
				lost, _ := w.history.Position(t.Context())
				w.store.Restore(backup)
				w.live = lives
				w.reopen()
				if late {
					w.pass(2 * time.Minute)
				}
				w.start("c1")
				w.pass(30 * time.Second)
				w.rest(15 * time.Second)
				reverted := 0
				for _, u := range w.history.Rows().Units {
					if u.Reverted {
						reverted++
					}
				}
				now, _ := w.history.Position(t.Context())
				if reverted == 0 {
					t.Errorf("no unit is reverted; the history stood at %d and stands at %d", lost.Revision, now.Revision)
				}
				w.judge()
			})
		})
	}
}

// TestTheDatabaseOfAnotherCluster: its history stays as it is.
func TestTheDatabaseOfAnotherCluster(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start("c1")
		w.pass(time.Minute)
		w.rest(12 * time.Second)
		w.kill("c1")
		before, _ := w.history.Position(t.Context())
		other := newWorld(t, 2)
		other.cluster, other.history = "other", w.history
		p := other.start("c1")
		other.pass(time.Minute)
		other.rest(time.Minute)
		if s := p.Status(); s.Phase != projector.Starting || !strings.Contains(s.Reason, "the history of cluster test, and this is cluster other") {
			t.Errorf("status %+v", s)
		}
		if after, err := w.history.Position(t.Context()); err != nil || after != before {
			t.Errorf("the history stands at %+v, before at %+v, %v", after, before, err)
		}
	})
}
