package projector_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/mem"
	"github.com/musterd/muster/coordinator/history/projector"
	"github.com/musterd/muster/coordinator/record"
)

// TestVerifyAndRebuild: a history that was written right has no differences, also while
// it moves on; a row that somebody has changed, lost or added is found and put right.
func TestVerifyAndRebuild(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		if _, err := projector.Verify(t.Context(), w.store, mem.New(), "test", 0); !errors.Is(err, projector.ErrNoHistory) {
			t.Errorf("an empty history: %v", err)
		}
		w.start("c1")
		for range 20 {
			w.pass(3 * time.Second)
			r, err := projector.Verify(t.Context(), w.store, w.history, "test", 0)
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
		changed.State, changed.Revision = "Failed", at.Revision // as new as the position: a hand has changed it
		added.UID, added.Revision = "nobody", at.Revision-1
		added.Created, added.Scheduled, added.Started, added.Ended = time.Now().Add(-time.Hour), time.Time{}, time.Time{}, time.Time{}
		slice := w.slice(t)
		longer := slice
		longer.To = slice.To.Add(time.Millisecond)
		if err := w.history.Write(t.Context(), history.Batch{
			After: at.Revision, Upto: at.Revision, Mark: at.Mark, Repair: true, Units: []history.Unit{changed, added}, Slices: []history.Slice{longer},
			Preemptions: []history.Preemption{{Tx: "gone", Outcome: "Evicting", Initiated: time.Now(), Revision: 1}},
		}); err != nil {
			t.Fatal(err)
		}
		w.history.Lose(string(all.Units[2].UID))
		r, err := projector.Rebuild(t.Context(), w.store, w.history, "test", 0)
		if err != nil || len(r.Differences) != 5 {
			t.Errorf("error %v, differences %v", err, r.Differences)
		}
		if end := w.history.Rows().Units["nobody"].Row.Ended; time.Since(end) > 30*time.Minute {
			t.Errorf("the unit that the store does not have has ended at %s, want the time of the comparison", end)
		}
		if r, err = projector.Verify(t.Context(), w.store, w.history, "test", 0); err != nil || len(r.Differences) > 0 {
			t.Errorf("after the rebuild: error %v, differences %v", err, r.Differences)
		}
	})
}

// slice is a slice of a grant that the store has.
func (w *world) slice(t *testing.T) history.Slice {
	t.Helper()
	for _, s := range w.history.Rows().Slices {
		if _, found, _, err := w.store.Get(t.Context(), record.TxKey(s.Tx)); err != nil {
			t.Fatal(err)
		} else if found && s.To.After(s.From) {
			return s
		}
	}
	t.Fatal("no slice of a grant that the store has")
	return history.Slice{}
}

// movesOn is a history that another projector writes between a comparison and the
// rebuild that follows.
type movesOn struct {
	*mem.History
	write func(history.Position)
}

// Repair is the first write of a rebuild.
func (m *movesOn) Repair(ctx context.Context, parts iter.Seq[history.Batch]) error {
	at, err := m.History.Position(ctx)
	if err != nil {
		return err
	}
	if m.write != nil {
		m.write(at)
	}
	m.write = nil
	return m.History.Repair(ctx, parts)
}

// TestRebuildLeavesNewerRows: a row that came after the comparison is newer than what the
// rebuild has read from the store.
func TestRebuildLeavesNewerRows(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start("c1")
		w.pass(10 * time.Second)
		w.rest(15 * time.Second)
		w.kill("c1")
		all, err := w.history.Read(t.Context(), history.Batch{})
		if err != nil || len(all.Units) == 0 {
			t.Fatal(len(all.Units), err)
		}
		newer := all.Units[0]
		w.history.Lose(string(newer.UID))
		h := &movesOn{History: w.history, write: func(at history.Position) {
			newer.State, newer.Ended, newer.Revision = "Failed", time.Now().UTC(), at.Revision+1
			if err := w.history.Write(t.Context(), history.Batch{After: at.Revision, Upto: at.Revision + 5, Mark: at.Mark, Units: []history.Unit{newer}}); err != nil {
				t.Error(err)
			}
		}}
		r, err := projector.Rebuild(t.Context(), w.store, h, "test", 0)
		if err != nil || len(r.Differences) != 1 {
			t.Errorf("error %v, differences %v", err, r.Differences)
		}
		if got := w.history.Rows().Units[string(newer.UID)].Row; got.State != newer.State || !got.Ended.Equal(newer.Ended) {
			t.Errorf("the newer row is %+v", got)
		}
	})
}

// TestVerifyForgivesAShortAudit: work may run for longer than the audit of its submission
// is kept. The entry that is gone is no difference, and a rebuild does not bring it back.
func TestVerifyForgivesAShortAudit(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start("c1")
		entry := record.Audit{Actor: record.Actor{ID: "e1", Person: "ann"}, AtMillis: time.Now().UnixMilli(), Verb: "update", Kind: "jobs", Name: "j"}
		value, err := record.Encode(entry)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(record.AuditKey(&entry), value)}}); err != nil {
			t.Fatal(err)
		}
		w.pass(10 * time.Second)
		w.rest(15 * time.Second)
		w.kill("c1")
		w.history.LoseAudit()
		if r, err := projector.Verify(t.Context(), w.store, w.history, "test", time.Hour); err != nil || len(r.Differences) == 0 {
			t.Errorf("an audit that is younger than it is kept: error %v, differences %v", err, r.Differences)
		}
		r, err := projector.Rebuild(t.Context(), w.store, w.history, "test", time.Second)
		if err != nil || len(r.Differences) > 0 || len(w.history.Rows().Audit) > 0 {
			t.Errorf("an audit that is older than it is kept: error %v, differences %v, %d rows", err, r.Differences, len(w.history.Rows().Audit))
		}
	})
}
