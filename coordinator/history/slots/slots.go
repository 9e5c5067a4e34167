// Package slots brings a table that keeps amounts of resources as JSON, one document a
// row, into slots: one row for each entity, column and slot, which SQL can add up. It
// follows the phases of spec/resource-slot-normalization.txt, each of which can be
// undone until the last:
//
//	dual-write  the slots table is made and filled, and triggers keep it in step
//	validate    JSON and slots are compared, and differences are listed
//	cut-over    the slots are the truth, and triggers keep the JSON in step
//	rollback    one phase back: to dual-write, or to the JSON alone
//	remove      the JSON columns go
//
// Programs that write the table go on as they are: the triggers are the second write. The
// table has to be in the history's database, PostgreSQL or SQLite. The package decides
// nothing about the amounts.
package slots

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/history/warehouse"
)

// Phase is how far an import is.
type Phase string

// The phases of an import.
const (
	None      Phase = ""           // the JSON alone
	DualWrite Phase = "dual-write" // the JSON is the truth
	CutOver   Phase = "cut-over"   // the slots are the truth
	Removed   Phase = "removed"    // the slots alone
)

// maxColumns bounds the JSON columns of an import, and MostDifferences those that a
// report lists.
const (
	maxColumns      = 16
	MostDifferences = 1000
)

// Source is a table with JSON columns.
type Source struct {
	Table   string
	ID      string   // the column that names the entity
	Columns []string // JSON objects: a slot's name and its amount
}

// identifier is a name that needs no thought in SQL.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,50}$`)

// Check refuses names that are no names of tables and columns.
func (s Source) Check() error {
	if len(s.Columns) < 1 || len(s.Columns) > maxColumns {
		return fmt.Errorf("%d JSON columns: want 1..%d", len(s.Columns), maxColumns)
	}
	for _, name := range append([]string{s.Table, s.ID}, s.Columns...) {
		if !identifier.MatchString(name) {
			return fmt.Errorf("%.60q is no name of a table or column: want 1..51 letters, digits and '_', no digit first", name)
		}
	}
	sorted := slices.Sorted(slices.Values(s.Columns))
	if len(slices.Compact(sorted)) != len(s.Columns) || slices.Contains(s.Columns, s.ID) {
		return fmt.Errorf("columns %s of %s: one is named twice", strings.Join(append([]string{s.ID}, s.Columns...), ", "), s.Table)
	}
	return nil
}

// Slots is the name of the table of slots.
func (s Source) Slots() string { return s.Table + "_slots" }

// Import is the import of one table.
type Import struct {
	db     *sql.DB
	source Source
	words  dialect
}

// Of prepares the import of a table in the history's database. It changes nothing.
func Of(w *warehouse.Warehouse, s Source) (*Import, error) {
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("import of slots: %w", err)
	}
	i := &Import{db: w.SQL(), source: s, words: postgres{s}}
	if w.Dialect() == warehouse.SQLite {
		i.words = sqlite{s}
	}
	return i, nil
}

// Phase is how far the import is.
func (i *Import) Phase(ctx context.Context) (Phase, error) {
	if _, err := i.db.ExecContext(ctx, makeImports); err != nil {
		return None, i.failed("read the phase", err)
	}
	return i.phase(ctx, i.db)
}

// makeImports makes the table of the phases.
const makeImports = `CREATE TABLE IF NOT EXISTS slot_imports (
	source_table TEXT PRIMARY KEY, id_column TEXT NOT NULL, json_columns TEXT NOT NULL, phase TEXT NOT NULL)`

// queryer is a pool or a transaction.
type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (i *Import) phase(ctx context.Context, q queryer) (Phase, error) {
	var id, columns string
	var p Phase
	err := q.QueryRowContext(ctx, "SELECT id_column, json_columns, phase FROM slot_imports WHERE source_table = '"+i.source.Table+"'").Scan(&id, &columns, &p)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return None, nil
	case err != nil:
		return None, i.failed("read the phase", err)
	case id != i.source.ID || columns != strings.Join(i.source.Columns, ","):
		return None, fmt.Errorf("import of %s: it began with --id %s --json %s, not --id %s --json %s", i.source.Table, id, columns, i.source.ID, strings.Join(i.source.Columns, ","))
	}
	return p, nil
}

func (i *Import) failed(step string, err error) error {
	return fmt.Errorf("import of %s: %s: %w", i.source.Table, step, err)
}

// move runs a step in one SQL transaction and moves the phase; it refuses a phase that the
// step does not begin at.
func (i *Import) move(ctx context.Context, step string, from []Phase, to func(Phase) Phase, statements func(Phase) []string) error {
	if _, err := i.db.ExecContext(ctx, makeImports); err != nil {
		return i.failed(step, err)
	}
	tx, err := i.db.BeginTx(ctx, nil)
	if err != nil {
		return i.failed(step, err)
	}
	defer func() { _ = tx.Rollback() }() // of a transaction that is committed: nothing
	if err := i.unbound(ctx, tx); err != nil {
		return i.failed(step, err)
	}
	at, err := i.phase(ctx, tx)
	if err != nil {
		return err
	}
	if !slices.Contains(from, at) {
		return fmt.Errorf("import of %s: %s begins at the phase %s, and it is at %s", i.source.Table, step, named(from...), named(at))
	}
	for _, statement := range append(statements(at), i.record(to(at))...) {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return i.failed(step, err)
		}
	}
	if to(at) == CutOver {
		if r, err := i.compare(ctx, tx); err != nil {
			return err
		} else if r.Total > 0 {
			return fmt.Errorf("import of %s: cut-over: %d differences between JSON and slots: see validate", i.source.Table, r.Total)
		}
	}
	if err := tx.Commit(); err != nil {
		return i.failed(step, err)
	}
	return nil
}

// unbound lifts the time-out of statements for a transaction: a step reads the whole
// table, of any size.
func (i *Import) unbound(ctx context.Context, tx *sql.Tx) error {
	statement := i.words.unbounded()
	if statement == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, statement)
	return err
}

// record writes the phase.
func (i *Import) record(p Phase) []string {
	s := i.source
	forget := "DELETE FROM slot_imports WHERE source_table = '" + s.Table + "'"
	if p == None {
		return []string{forget}
	}
	return []string{forget, fmt.Sprintf("INSERT INTO slot_imports VALUES ('%s', '%s', '%s', '%s')", s.Table, s.ID, strings.Join(s.Columns, ","), p)}
}

func named(phases ...Phase) string {
	words := make([]string, len(phases))
	for i, p := range phases {
		if words[i] = string(p); p == None {
			words[i] = "none"
		}
	}
	return strings.Join(words, " or ")
}

func toPhase(p Phase) func(Phase) Phase { return func(Phase) Phase { return p } }

// DualWrite makes and fills the table of slots, and keeps it in step with the JSON from
// then on. Slots that the registry does not know are registered as count, with rank 0.
func (i *Import) DualWrite(ctx context.Context) error {
	return i.move(ctx, "dual-write", []Phase{None}, toPhase(DualWrite), func(Phase) []string {
		// The triggers come first: their lock keeps other writers of the table out until
		// the end, so that no row comes between the copy and the triggers.
		return slices.Concat(i.words.makeSlots(), i.words.follow(), i.words.fill())
	})
}

// CutOver makes the slots the truth. It is refused while JSON and slots differ.
func (i *Import) CutOver(ctx context.Context) error {
	return i.move(ctx, "cut-over", []Phase{DualWrite}, toPhase(CutOver), func(Phase) []string {
		return slices.Concat(i.words.unfollow(), i.words.lead())
	})
}

// Rollback goes one phase back: from cut-over to dual-write, and from there to the JSON
// alone. Nothing is lost: the JSON was kept in step.
func (i *Import) Rollback(ctx context.Context) error {
	back := func(at Phase) Phase {
		if at == CutOver {
			return DualWrite
		}
		return None
	}
	return i.move(ctx, "rollback", []Phase{DualWrite, CutOver}, back, func(at Phase) []string {
		if at == CutOver {
			return slices.Concat(i.words.unlead(), i.words.follow())
		}
		return append(i.words.unfollow(), `DROP TABLE "`+i.source.Slots()+`"`)
	})
}

// Remove drops the JSON columns. It cannot be undone.
func (i *Import) Remove(ctx context.Context) error {
	return i.move(ctx, "remove", []Phase{CutOver}, toPhase(Removed), func(Phase) []string {
		statements := i.words.unlead()
		for _, c := range i.source.Columns {
			statements = append(statements, fmt.Sprintf(`ALTER TABLE "%s" DROP COLUMN "%s"`, i.source.Table, c))
		}
		return statements
	})
}

// Difference is a slot of an entity in which JSON and slots differ.
type Difference struct {
	Entity, Column, Slot string
	// JSON is the amount in the document and Slots that of the table; "none" where there
	// is none, "null" for an amount that is unknown.
	JSON, Slots string
}

// Report is the comparison of JSON and slots.
type Report struct {
	Phase    Phase
	Entities int64 // rows of the source table
	Rows     int64 // rows of slots
	Total    int   // differences
	// Differences are the first of them by entity, column and slot, at most
	// MostDifferences. An amount that is no number of NUMERIC(24,6) is one.
	Differences []Difference
}

// Validate compares JSON and slots, in the phases in which there are both.
func (i *Import) Validate(ctx context.Context) (Report, error) {
	p, err := i.Phase(ctx)
	if err != nil {
		return Report{}, err
	}
	if p != DualWrite && p != CutOver {
		return Report{}, fmt.Errorf("import of %s: validate needs the phase dual-write or cut-over, and it is at %s", i.source.Table, named(p))
	}
	tx, err := i.db.BeginTx(ctx, nil)
	if err != nil {
		return Report{}, i.failed("validate", err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := i.unbound(ctx, tx); err != nil {
		return Report{}, i.failed("validate", err)
	}
	r, err := i.compare(ctx, tx)
	r.Phase = p
	return r, err
}

func (i *Import) compare(ctx context.Context, tx *sql.Tx) (Report, error) {
	var r Report
	if err := tx.QueryRowContext(ctx, fmt.Sprintf(`SELECT (SELECT count(*) FROM "%s"), (SELECT count(*) FROM "%s")`, i.source.Table, i.source.Slots())).Scan(&r.Entities, &r.Rows); err != nil {
		return Report{}, i.failed("count rows", err)
	}
	rows, err := tx.QueryContext(ctx, i.words.differences())
	if err != nil {
		return Report{}, i.failed("compare JSON and slots", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var d Difference
		if err := rows.Scan(&d.Entity, &d.Column, &d.Slot, &d.JSON, &d.Slots); err != nil {
			return Report{}, i.failed("compare JSON and slots", err)
		}
		if r.Total++; r.Total <= MostDifferences {
			r.Differences = append(r.Differences, d)
		}
	}
	if err := rows.Err(); err != nil {
		return Report{}, i.failed("compare JSON and slots", err)
	}
	return r, nil
}
