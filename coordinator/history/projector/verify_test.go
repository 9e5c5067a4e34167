package projector_test

import (
	"errors"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/mem"
	"github.com/musterd/muster/coordinator/history/projector"
)

// TestVerifyAndRebuild: a history that was written right has no differences, also while
// it moves on; a row that somebody has changed, lost or added is found and put right.
func TestVerifyAndRebuild(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		if _, err := projector.Verify(t.Context(), w.store, mem.New(), "test"); !errors.Is(err, projector.ErrNoHistory) {
			t.Errorf("an empty history: %v", err)
		}
		w.start("c1")
		for range 20 {
			w.pass(3 * time.Second)
			r, err := projector.Verify(t.Context(), w.store, w.history, "test")
			if err != nil || len(r.Differences) > 0 || r.Rows == 0 {
				t.Fatalf("%d rows at %d, error %v: %v", r.Rows, r.Revision, err, r.Differences)
			}
		}
		w.rest(15 * time.Second)
		w.kill("c1")
		at, _ := w.history.Position(t.Context())
		all, err := w.history.Read(t.Context(), history.Batch{})
		if err != nil || len(all.Units) < 3 {
			t.Fatal(len(all.Units), err)
		}
		changed, added := all.Units[0], all.Units[1]
		changed.State, changed.Revision = "Failed", at.Revision-1
		added.UID, added.Revision = "nobody", at.Revision-1
		if err := w.history.Write(t.Context(), history.Batch{After: at.Revision, Upto: at.Revision, Units: []history.Unit{changed, added}}); err != nil {
			t.Fatal(err)
		}
		w.history.Lose(string(all.Units[2].UID))
		r, err := projector.Rebuild(t.Context(), w.store, w.history, "test")
		if err != nil || len(r.Differences) != 3 {
			t.Errorf("error %v, differences %v", err, r.Differences)
		}
		if r, err = projector.Verify(t.Context(), w.store, w.history, "test"); err != nil || len(r.Differences) > 0 {
			t.Errorf("after the rebuild: error %v, differences %v", err, r.Differences)
		}
	})
}
