package projector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/narrate"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// Difference is a row of the history that is not what the store says.
type Difference struct {
	Kind  string // allocation, grant, wait, job, node, quota, preemption, condition, audit or slice
	Key   string
	Field string // "" for a row that is missing, or that the store does not have
	// History and Store are the two values; "" for none.
	History, Store string
}

// String is the difference in a sentence.
func (d Difference) String() string {
	switch {
	case d.Field == "" && d.History == "":
		return fmt.Sprintf("%s %s is not in the history", d.Kind, d.Key)
	case d.Field == "":
		return fmt.Sprintf("%s %s has no end in the history, and the store does not have it", d.Kind, d.Key)
	}
	return fmt.Sprintf("%s %s: %s is %q in the history and %q in the store", d.Kind, d.Key, d.Field, d.History, d.Store)
}

// Report is the outcome of a comparison.
type Report struct {
	Revision    resource.Revision // of both
	Rows        int               // compared
	Differences []Difference
}

// verifyTries bounds the comparisons while the history moves on.
const verifyTries = 5

// ErrNoHistory: the history has nothing yet that could be compared.
var ErrNoHistory = errors.New("the history is empty: no projector has begun")

// Verify compares the history with the store at one revision, the history's own. It
// writes nothing, and any coordinator may call it. A history that moves on meanwhile is
// compared again, and the differences count that come again. auditKept is how long the
// history keeps the audit, 0 for ever: the submission of work that runs for longer is in
// the store alone, and is not compared.
func Verify(ctx context.Context, s store.KVStore, w Warehouse, cluster string, auditKept time.Duration) (Report, error) {
	_, _, r, err := verify(ctx, s, w, cluster, auditKept)
	return r, err
}

func verify(ctx context.Context, s store.KVStore, w Warehouse, cluster string, auditKept time.Duration) (want, has history.Batch, r Report, err error) {
	for try := 0; ; try++ {
		before, err := w.Position(ctx)
		if err != nil {
			return want, has, r, err
		}
		if before.Revision == 0 {
			return want, has, r, ErrNoHistory
		}
		kvs, _, err := s.Range(ctx, record.Root, store.RangeOptions{AtRevision: before.Revision})
		if err != nil {
			return want, has, r, fmt.Errorf("read the store at revision %d: %w", int64(before.Revision), err)
		}
		n := narrate.New(cluster)
		n.LoadAll(kvs, before.Revision)
		want = n.Take()
		if auditKept > 0 {
			oldest := time.Now().Add(-auditKept)
			want.Audit = slices.DeleteFunc(want.Audit, func(a history.Audit) bool { return a.At.Before(oldest) })
		}
		sliced := witnessIn(before.Mark).SlicedMillis
		want.Slices = expectedSlices(want.Grants, sliced)
		if has, err = w.Read(ctx, want); err != nil {
			return want, has, r, err
		}
		complete(want.Grants, has.Grants, n.IsPartial)
		has.Slices = forget(want.Grants, has.Slices, n.IsPartial)
		want.Slices = expectedSlices(want.Grants, sliced)
		found := append(Compare(want, has), compareSlices(want, has)...)
		after, err := w.Position(ctx)
		if err != nil {
			return want, has, r, err
		}
		if try > 0 {
			found = slices.DeleteFunc(found, func(d Difference) bool { return !slices.Contains(r.Differences, d) })
		}
		r = Report{before.Revision, rowsOf(want), found}
		if after.Revision == before.Revision || len(found) == 0 || try == verifyTries {
			return want, has, r, nil
		}
	}
}

// rowsOf is the number of rows that compare looks at.
func rowsOf(b history.Batch) int {
	return len(b.Nodes) + len(b.Jobs) + len(b.Units) + len(b.Grants) + len(b.Waits) + len(b.Quotas) + len(b.Preemptions) + len(b.Conditions) + len(b.Audit) + len(b.Slices)
}

// rebuiltRows is how many rows a transaction of a rebuild has at most.
const rebuiltRows = 2000

// Rebuild writes the compared rows anew where the history differs, and ends those that the
// store does not have. Rows of the past stay. It returns the differences that it has found.
// auditKept is that of Verify.
//
// It writes in parts, each in one SQL transaction. One that was interrupted leaves whole
// parts, and the next Rebuild does the rest.
func Rebuild(ctx context.Context, s store.KVStore, w Warehouse, cluster string, auditKept time.Duration) (Report, error) {
	want, has, r, err := verify(ctx, s, w, cluster, auditKept)
	if err != nil || len(r.Differences) == 0 {
		return r, err
	}
	b := differing(want, r.Differences)
	b.Upto, b.At = r.Revision, want.At
	closeVanished(&b, onlyOpen(want, has))
	stamp(&b, r.Revision) // rows that are newer than the comparison stay
	parts := partsOf(b, rebuiltRows)
	for i := range parts {
		parts[i].At = b.At
	}
	if err := w.Repair(ctx, slices.Values(parts)); err != nil {
		return r, err
	}
	all := repairedSlices(want, has, false)
	err = writeSlices(ctx, w, all, r.Revision)
	var moved *history.PositionError
	if errors.As(err, &moved) { // slices have no revision: those that a projector may have written since stay
		kept := history.Batch{Slices: repairedSlices(want, has, true)}
		err = w.Repair(ctx, slices.Values([]history.Batch{kept}))
	}
	if err != nil || len(all) == 0 {
		return r, err
	}
	value, err := record.Encode(record.HistoryPosition{Revision: r.Revision})
	if err != nil {
		return r, err
	}
	_, err = s.Txn(ctx, record.Txn{Then: []record.Op{record.Put(record.HistoryRebuiltKey, value)}})
	return r, err
}

// writeSlices writes slices while the history stands at a revision.
func writeSlices(ctx context.Context, w Warehouse, list []history.Slice, revision resource.Revision) error {
	now, err := w.Position(ctx)
	if err != nil {
		return err
	}
	return w.Write(ctx, history.Batch{Slices: list, Repair: true, After: revision, Upto: revision, Mark: now.Mark})
}

// partsOf divides the rows of a batch.
func partsOf(b history.Batch, rows int) (parts []history.Batch) {
	next, size := history.Batch{}, 0
	full := func() *history.Batch {
		if size == rows {
			parts, next, size = append(parts, next), history.Batch{}, 0
		}
		size++
		return &next
	}
	for _, x := range tables {
		x.divide(&b, full)
	}
	if size > 0 {
		parts = append(parts, next)
	}
	return parts
}

// differing keeps the rows that differ.
func differing(b history.Batch, differences []Difference) history.Batch {
	is := map[string]bool{}
	for _, d := range differences {
		is[d.Kind+" "+d.Key] = true
	}
	var out history.Batch
	for _, x := range tables {
		x.pick(&b, &out, is)
	}
	return out
}

// Compare finds the differences between the rows of a full read, or of a narrator, and
// those of a history: in all but slices.
func Compare(want, has history.Batch) (found []Difference) {
	want.Conditions, has.Conditions = history.NewestConditions(want.Conditions), history.NewestConditions(has.Conditions)
	for _, x := range tables {
		found = append(found, x.compare(&want, &has)...)
	}
	return found
}

// onlyOpen are the rows of has without an end that the store does not have.
func onlyOpen(want, has history.Batch) (b history.Batch) {
	for _, x := range tables {
		x.open(&want, &has, &b)
	}
	return b
}

// stamp gives rows a revision at which they replace those of the history.
func stamp(b *history.Batch, at resource.Revision) {
	for i := range b.Nodes {
		b.Nodes[i].Revision = at
	}
	for i := range b.Jobs {
		b.Jobs[i].Revision = at
	}
	for i := range b.Units {
		b.Units[i].Revision = at
	}
	for i := range b.Grants {
		b.Grants[i].Revision = at
	}
	for i := range b.Waits {
		b.Waits[i].Revision = at
	}
	for i := range b.Quotas {
		b.Quotas[i].Revision = at
	}
	for i := range b.Preemptions {
		b.Preemptions[i].Revision = at
	}
	for i := range b.Conditions {
		b.Conditions[i].Revision = at
	}
	for i := range b.Audit {
		b.Audit[i].Revision = at
	}
}
