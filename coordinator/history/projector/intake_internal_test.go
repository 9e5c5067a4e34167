package projector

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/narrate"
	"github.com/musterd/muster/coordinator/history/spool"
	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// backlog is a projector with rows in the narrator, and changes behind these rows.
type backlog struct {
	t       *testing.T
	p       *Projector
	changes chan record.Batch
	made    int
}

func newBacklog(t *testing.T, spoolBytes int64) *backlog {
	b := &backlog{t: t, p: New(Config{Name: "c1", Cluster: "test", SpoolBytes: spoolBytes}), changes: make(chan record.Batch, 2*enoughRows)}
	var err error
	if b.p.spool, _, err = spool.Open(t.TempDir(), spoolBytes); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.p.spool.Close(); err != nil {
			t.Error(err)
		}
	})
	b.p.term = &term{narrator: narrate.New("test"), slicer: usage.NewBlindSlicer(nil, time.Time{}), changes: b.changes}
	return b
}

// change is a change with a single row.
func (b *backlog) change() record.Batch {
	b.made++
	uid := fmt.Sprintf("u%d", b.made)
	u := record.Unit{
		UID: resource.UnitUID(uid), Kind: record.AllocUnit, Namespace: "ns", Name: uid, Tenant: "t", Phase: "Pending", Members: 1, Created: "2026-01-02T03:04:05Z",
		Document: []byte(`{"metadata":{"name":"` + uid + `"},"spec":{"resources":{"requests":{"cpu":"2"}}}}`),
	}
	at := resource.Revision(b.made)
	op := record.MustPutRecord(u.Path().Key(), u)
	return record.Batch{Revision: at, Events: []record.Event{{Type: record.EventPut, KV: record.KV{Key: op.Key, Value: op.Value, CreateRev: at, ModRev: at}}}}
}

// grow has the narrator have so many rows.
func (b *backlog) grow(rows int) {
	b.t.Helper()
	for b.p.term.narrator.Rows() < rows {
		b.p.follow(b.change(), true)
	}
	if got := b.p.term.narrator.Rows(); got != rows {
		b.t.Fatalf("%d rows, want %d", got, rows)
	}
}

// TestChangesWaitWhileTheDatabaseTakesNoRows: up to the bound changes are taken, at the bound
// no more, and again once the rows have gone.
func TestChangesWaitWhileTheDatabaseTakesNoRows(t *testing.T) {
	b := newBacklog(t, 0)
	const most = 50
	takes := func() bool { return b.p.term.intake(most) != nil }
	b.grow(most - 1)
	if !takes() {
		t.Errorf("with %d rows no change is taken, want one more", most-1)
	}
	b.grow(most)
	if takes() {
		t.Errorf("with %d rows changes are taken: nothing bounds the memory while the database is away", most)
	}
	b.p.inflight = &flight{since: time.Now()} // the database has not answered, and the spool does not have the rows
	b.p.spill()
	if takes() || b.p.spool.Len() > 0 {
		t.Error("rows went to the spool ahead of those of the batch under way")
	}
	b.p.inflight.spooled = true
	b.p.spill()
	if !takes() || b.p.term.narrator.Rows() != 0 || b.p.spool.Len() != 1 {
		t.Errorf("with the rows in the spool %d are pending, and changes are taken: %v", b.p.term.narrator.Rows(), takes())
	}
	if b.p.endTerm(); takes() {
		t.Error("changes are taken without a term")
	}
}

// TestOneTurnTakesABatchOfChanges: a turn of the loop takes changes until there are enough
// rows for a batch, and leaves the others.
func TestOneTurnTakesABatchOfChanges(t *testing.T) {
	b := newBacklog(t, 0)
	for range enoughRows + 10 {
		b.changes <- b.change()
	}
	b.p.drainChanges()
	if rows, left := b.p.term.narrator.Rows(), len(b.changes); rows != enoughRows || left != 10 {
		t.Errorf("a turn leaves %d changes and has %d rows, want 10 and %d", left, rows, enoughRows)
	}
	if b.p.drainChanges(); len(b.changes) != 10 {
		t.Error("changes are taken behind a whole batch")
	}
	b.p.term.take(time.Now())
	if b.p.drainChanges(); len(b.changes) != 0 {
		t.Errorf("%d changes are left once the batch has gone", len(b.changes))
	}
}

// A term ends where the spool is full: the rows are dropped, no change is taken before the term
// has begun anew, and a spool is crowded above half of the bytes, not at half.
func TestATermEndsWhereItsSpoolIsFull(t *testing.T) {
	b := newBacklog(t, 4<<10)
	b.grow(1)
	if b.p.keep(b.p.term.take(time.Now())); b.p.spool.Len() != 1 {
		t.Fatal("the spool has no room for one row")
	}
	used := b.p.spool.Bytes()
	for _, c := range []struct {
		most    int64
		crowded bool
	}{{2 * used, false}, {2*used - 2, true}} {
		if b.p.config.SpoolBytes = c.most; b.p.crowded() != c.crowded {
			t.Errorf("%d bytes of %d are crowded: %v", used, c.most, !c.crowded)
		}
	}
	b.grow(1000)
	b.p.inflight = &flight{batch: history.Batch{}, spooled: true}
	if b.p.spill(); b.p.term.narrator != nil || b.p.term.intake(1) != nil {
		t.Error("the term goes on, and its rows are nowhere")
	}
	if !b.p.term.retryAt.After(time.Now()) {
		t.Error("the term begins anew without a wait")
	}
}
