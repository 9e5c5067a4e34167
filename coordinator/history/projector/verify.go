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
	Kind  string // allocation, grant, wait, job, node or quota
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
// compared again, and the differences count that come again.
func Verify(ctx context.Context, s store.KVStore, w Warehouse, cluster string) (Report, error) {
	_, _, r, err := verify(ctx, s, w, cluster)
	return r, err
}

func verify(ctx context.Context, s store.KVStore, w Warehouse, cluster string) (want, has history.Batch, r Report, err error) {
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
		if has, err = w.Read(ctx, want); err != nil {
			return want, has, r, err
		}
		found := compare(want, has)
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
	return len(b.Nodes) + len(b.Jobs) + len(b.Units) + len(b.Grants) + len(b.Waits) + len(b.Quotas)
}

// Rebuild writes the compared rows anew where the history differs, and
// ends those that the store does not have. Rows of the past stay. It returns the
// differences that it has found.
func Rebuild(ctx context.Context, s store.KVStore, w Warehouse, cluster string) (Report, error) {
	for try := 0; ; try++ {
		want, has, r, err := verify(ctx, s, w, cluster)
		if err != nil || len(r.Differences) == 0 {
			return r, err
		}
		at, err := w.Position(ctx)
		if err != nil {
			return r, err
		}
		b := differing(want, r.Differences)
		b.After, b.Upto, b.Mark, b.At = at.Revision, at.Revision, at.Mark, want.At
		closeVanished(&b, onlyOpen(want, has))
		stamp(&b, r.Revision) // what the history has learned since the comparison stays
		err = w.Write(ctx, b)
		var moved *history.PositionError
		if err == nil || !errors.As(err, &moved) || try == verifyTries {
			return r, err
		}
	}
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

// Compare finds the differences between the rows of a narrator and those of a history:
// in nodes, jobs, allocations, grants, waits and quotas.
func Compare(want, has history.Batch) []Difference { return compare(want, has) }

// compare finds the differences between the rows of a full read and those of the history.
func compare(want, has history.Batch) (found []Difference) {
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
}

// table is a table of the history as compare sees it.
type table interface {
	compare(want, has *history.Batch) []Difference
	pick(from, to *history.Batch, is map[string]bool)
	open(want, has, to *history.Batch)
}

// columns are a table's rows: which they are, what is compared, and which have no end.
type columns[R any] struct {
	kind   string
	rows   func(*history.Batch) *[]R
	key    func(R) string
	isOpen func(R) bool
	fields []field[R]
}

type field[R any] struct {
	name  string
	value func(R) string
}

func (c columns[R]) index(b *history.Batch) map[string]R {
	all := map[string]R{}
	for _, row := range *c.rows(b) {
		all[c.key(row)] = row
	}
	return all
}

func (c columns[R]) compare(want, has *history.Batch) (found []Difference) {
	in, wanted := c.index(has), c.index(want)
	for _, row := range *c.rows(want) {
		key := c.key(row)
		there, known := in[key]
		if !known {
			found = append(found, Difference{Kind: c.kind, Key: key, Store: "present"})
			continue
		}
		for _, f := range c.fields {
			if a, b := f.value(there), f.value(row); a != b {
				found = append(found, Difference{c.kind, key, f.name, a, b})
			}
		}
	}
	for _, row := range *c.rows(has) {
		if _, known := wanted[c.key(row)]; !known && c.isOpen(row) {
			found = append(found, Difference{Kind: c.kind, Key: c.key(row), History: "present"})
		}
	}
	return found
}

func (c columns[R]) pick(from, to *history.Batch, is map[string]bool) {
	for _, row := range *c.rows(from) {
		if is[c.kind+" "+c.key(row)] {
			*c.rows(to) = append(*c.rows(to), row)
		}
	}
}

func (c columns[R]) open(want, has, to *history.Batch) {
	wanted := c.index(want)
	for _, row := range *c.rows(has) {
		if _, known := wanted[c.key(row)]; !known && c.isOpen(row) {
			*c.rows(to) = append(*c.rows(to), row)
		}
	}
}

func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// seconds is an instant in whole seconds: some records have no more.
func seconds(t time.Time) string { return instant(t.Truncate(time.Second)) }

// tables are those that the store can say something about.
var tables = []table{
	columns[history.Node]{
		"node", func(b *history.Batch) *[]history.Node { return &b.Nodes }, func(r history.Node) string { return string(r.ID) },
		func(r history.Node) bool { return r.Deleted.IsZero() },
		[]field[history.Node]{
			{"hostname", func(r history.Node) string { return r.Hostname }}, {"phase", func(r history.Node) string { return r.Phase }},
			{"cordoned", func(r history.Node) string { return fmt.Sprint(r.Cordoned) }}, {"deleted", func(r history.Node) string { return instant(r.Deleted) }},
			{"capacity", func(r history.Node) string { return amounts(r.Capacity) }}, {"allocatable", func(r history.Node) string { return amounts(r.Allocatable) }},
		},
	},
	columns[history.Job]{
		"job", func(b *history.Batch) *[]history.Job { return &b.Jobs }, func(r history.Job) string { return r.UID },
		func(r history.Job) bool { return r.Ended.IsZero() },
		[]field[history.Job]{
			{"name", func(r history.Job) string { return r.Namespace + "/" + r.Name }}, {"phase", func(r history.Job) string { return r.Phase }},
			{"tenant", func(r history.Job) string { return string(r.Tenant) }}, {"ended", func(r history.Job) string { return seconds(r.Ended) }},
		},
	},
	columns[history.Unit]{
		"allocation", func(b *history.Batch) *[]history.Unit { return &b.Units }, func(r history.Unit) string { return string(r.UID) },
		func(r history.Unit) bool { return r.Ended.IsZero() },
		[]field[history.Unit]{
			{"name", func(r history.Unit) string { return r.Namespace + "/" + r.Name }}, {"state", func(r history.Unit) string { return r.State }},
			{"tenant", func(r history.Unit) string { return string(r.Tenant) }}, {"priority", func(r history.Unit) string { return fmt.Sprint(r.Priority) }},
			{"queue", func(r history.Unit) string { return r.Queue }}, {"members", func(r history.Unit) string { return fmt.Sprint(r.Members) }},
			{"requests", func(r history.Unit) string { return amounts(r.Requests) }}, {"created", func(r history.Unit) string { return instant(r.Created) }},
			{"ended", func(r history.Unit) string { return seconds(r.Ended) }},
		},
	},
	columns[history.Grant]{
		"grant", func(b *history.Batch) *[]history.Grant { return &b.Grants }, func(r history.Grant) string { return string(r.Tx) },
		func(r history.Grant) bool { return r.Ended.IsZero() },
		[]field[history.Grant]{
			{"unit", func(r history.Grant) string { return string(r.Unit) }}, {"state", func(r history.Grant) string { return r.State }},
			{"committed", func(r history.Grant) string { return instant(r.Committed) }}, {"ending", func(r history.Grant) string { return instant(r.Ending) }},
			{"ended", func(r history.Grant) string { return instant(r.Ended) }}, {"ready", func(r history.Grant) string { return instant(r.Ready) }},
			{"members", membersOf},
		},
	},
	columns[history.Wait]{
		"wait", func(b *history.Batch) *[]history.Wait { return &b.Waits },
		func(r history.Wait) string { return string(r.Unit) + " since " + instant(r.Since) }, func(r history.Wait) bool { return r.Until.IsZero() },
		[]field[history.Wait]{
			{"code", func(r history.Wait) string { return r.Code }}, {"queue", func(r history.Wait) string { return r.Queue }},
			{"until", func(r history.Wait) string { return instant(r.Until) }},
		},
	},
	columns[history.Quota]{
		"quota", func(b *history.Batch) *[]history.Quota { return &b.Quotas },
		func(r history.Quota) string {
			return r.Namespace + "/" + r.Name + " " + string(r.Slot) + " from " + instant(r.From)
		},
		func(r history.Quota) bool { return r.To.IsZero() },
		[]field[history.Quota]{
			{"hard", func(r history.Quota) string { return fmt.Sprint(r.Hard) }}, {"soft", func(r history.Quota) string { return fmt.Sprint(r.Soft) }},
			{"to", func(r history.Quota) string { return instant(r.To) }},
		},
	},
}

// amounts are the amounts that are not 0, in the order of their names.
func amounts(v resource.Vector) string {
	text := ""
	for _, name := range v.Names() {
		if v[name] != 0 {
			text += fmt.Sprintf(" %s=%s", name, resource.FormatAmount(name, v[name]))
		}
	}
	return text
}

// membersOf are the members with the part that both have: the request of a unit that is
// gone is not in the store.
func membersOf(g history.Grant) string {
	text := ""
	for _, m := range g.Members {
		text += fmt.Sprintf(" %d on %s:%s %v;", m.Index, m.Node, amounts(m.Allocated), m.Devices)
	}
	return text
}
