package slots_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/history/slots"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/test/postgres"
)

func TestMain(m *testing.M) { os.Exit(postgres.Main(m)) }

// kernels is the current design of the document: resource slots of kernels as JSON, by
// the slot names of its registry.
var kernels = slots.Source{Table: "kernels", ID: "id", Columns: []string{"requested_slots", "occupied_slots"}}

// both runs a test on each database, with a table of the current design. Columns are
// JSONB and JSON in PostgreSQL.
func both(t *testing.T, test func(t *testing.T, w *warehouse.Warehouse, i *slots.Import)) {
	t.Run("PostgreSQL", func(t *testing.T) { on(t, postgres.Database(t), test) })
	t.Run("SQLite", func(t *testing.T) { on(t, "sqlite:"+filepath.Join(t.TempDir(), "history.db"), test) })
}

// on runs a test on one database, with the table of the current design.
func on(t *testing.T, dsn string, test func(t *testing.T, w *warehouse.Warehouse, i *slots.Import)) {
	t.Helper()
	w, err := warehouse.Open(t.Context(), dsn)
	must(t, err)
	t.Cleanup(func() { _ = w.Close() })
	do(t, w, `CREATE TABLE kernels (id VARCHAR(36) PRIMARY KEY, status TEXT NOT NULL, requested_slots JSONB, occupied_slots JSON)`)
	do(t, w, `INSERT INTO kernels VALUES
		('k1', 'RUNNING', '{"cpu": "8", "mem": "34359738368", "cuda.shares": "2.5"}', '{"cpu": 8, "mem": "34359738368", "cuda.shares": "2.500000"}'),
		('k2', 'PENDING', '{"cpu": "1", "mem": "1073741824", "quantum.qubit": "3"}', '{"cpu": null}'),
		('k3', 'TERMINATED', '{}', NULL)`)
	i, err := slots.Of(w, kernels)
	must(t, err)
	test(t, w, i)
}

func do(t *testing.T, w *warehouse.Warehouse, statement string) {
	t.Helper()
	if _, err := w.SQL().ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// amounts are the rows of slots, without zeros at the end.
func amounts(t *testing.T, w *warehouse.Warehouse) []string {
	t.Helper()
	rows, err := w.SQL().QueryContext(t.Context(), "SELECT entity_id, column_name, slot_name, coalesce(CAST(amount AS TEXT), 'NULL') FROM kernels_slots")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var entity, column, slot, amount string
		if err := rows.Scan(&entity, &column, &slot, &amount); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(amount, ".") {
			amount = strings.TrimSuffix(strings.TrimRight(amount, "0"), ".")
		}
		all = append(all, strings.Join([]string{entity, column[:8], slot, amount}, " "))
	}
	slices.Sort(all)
	return all
}

// documents are the JSON columns as SQL reads them, so that the order of keys and the
// digits of numbers do not count.
func sumOf(t *testing.T, w *warehouse.Warehouse, column, slot string) string {
	t.Helper()
	query := fmt.Sprintf(`SELECT coalesce(CAST(sum((%s::jsonb ->> '%s')::numeric) AS TEXT), 'NULL') FROM kernels`, column, slot)
	if w.Dialect() == warehouse.SQLite {
		query = fmt.Sprintf(`SELECT decimal_sum(json_extract(%s, '$."%s"')) FROM kernels`, column, slot)
	}
	var text string
	if err := w.SQL().QueryRowContext(t.Context(), query).Scan(&text); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var filled = []string{
	"k1 occupied cpu 8", "k1 occupied cuda.shares 2.5", "k1 occupied mem 34359738368", "k1 requeste cpu 8", "k1 requeste cuda.shares 2.5", "k1 requeste mem 34359738368",
	"k2 occupied cpu NULL", "k2 requeste cpu 1", "k2 requeste mem 1073741824", "k2 requeste quantum.qubit 3",
}

func TestAnImportFromJSONToSlots(t *testing.T) {
	both(t, func(t *testing.T, w *warehouse.Warehouse, i *slots.Import) {
		must(t, i.DualWrite(t.Context()))
		if d := cmp.Diff(filled, amounts(t, w)); d != "" {
			t.Fatalf("filled (-want +got)\n%s", d)
		}
		var kind string
		var rank int
		if err := w.SQL().QueryRow("SELECT slot_type, rank FROM resource_slot_types WHERE slot_name = 'quantum.qubit'").Scan(&kind, &rank); err != nil || kind != "count" || rank != 0 {
			t.Errorf("an unknown slot is registered as %s with rank %d, %v; want count with rank 0", kind, rank, err)
		}

		// The program goes on to write JSON.
		do(t, w, `UPDATE kernels SET status = 'RUNNING', occupied_slots = '{"cpu": "1", "mem": "1073741824"}' WHERE id = 'k2'`)
		do(t, w, `INSERT INTO kernels VALUES ('k4', 'PENDING', '{"cpu": "0.25", "new.device": "7"}', NULL)`)
		do(t, w, `DELETE FROM kernels WHERE id = 'k1'`)
		want := []string{"k2 occupied cpu 1", "k2 occupied mem 1073741824", "k2 requeste cpu 1", "k2 requeste mem 1073741824", "k2 requeste quantum.qubit 3", "k4 requeste cpu 0.25", "k4 requeste new.device 7"}
		if d := cmp.Diff(want, amounts(t, w)); d != "" {
			t.Errorf("dual write (-want +got)\n%s", d)
		}
		r, err := i.Validate(t.Context())
		if must(t, err); r.Total != 0 || r.Entities != 3 || r.Rows != 7 || r.Phase != slots.DualWrite {
			t.Errorf("report %+v, want 3 entities, 7 rows and no difference", r)
		}

		must(t, i.CutOver(t.Context()))
		do(t, w, `UPDATE kernels_slots SET amount = 4 WHERE entity_id = 'k2' AND column_name = 'requested_slots' AND slot_name = 'cpu'`)
		do(t, w, `DELETE FROM kernels_slots WHERE entity_id = 'k4' AND slot_name = 'new.device'`)
		do(t, w, `INSERT INTO kernels_slots VALUES ('k3', 'requested_slots', 'cpu', 16)`)
		if cpu, device := sumOf(t, w, "requested_slots", "cpu"), sumOf(t, w, "requested_slots", "new.device"); cpu != "20.25" || device != "NULL" && device != "0" {
			t.Errorf("the JSON has %s CPUs and %s devices after the cut-over, want 20.25 and none", cpu, device)
		}
		r, err = i.Validate(t.Context())
		if must(t, err); r.Total != 0 {
			t.Errorf("differences after the cut-over: %+v", r.Differences)
		}

		must(t, i.Rollback(t.Context()))
		do(t, w, `UPDATE kernels SET requested_slots = '{"cpu": "2"}' WHERE id = 'k3'`)
		if r, err = i.Validate(t.Context()); err != nil || r.Total != 0 || r.Phase != slots.DualWrite {
			t.Errorf("after the rollback: %+v, %v", r, err)
		}
		must(t, i.CutOver(t.Context()))
		must(t, i.Remove(t.Context()))
		if p, err := i.Phase(t.Context()); p != slots.Removed || err != nil {
			t.Errorf("phase %s, %v; want removed", p, err)
		}
		if _, err := w.SQL().Exec("SELECT requested_slots FROM kernels WHERE requested_slots IS NOT NULL"); err == nil {
			t.Error("the JSON column is still there")
		}
	})
}

func TestAnImportCanBeTakenBackWhole(t *testing.T) {
	both(t, func(t *testing.T, w *warehouse.Warehouse, i *slots.Import) {
		for range 2 {
			must(t, i.DualWrite(t.Context()))
			must(t, i.CutOver(t.Context()))
			must(t, i.Rollback(t.Context()))
			must(t, i.Rollback(t.Context()))
			if p, err := i.Phase(t.Context()); p != slots.None || err != nil {
				t.Fatalf("phase %q, %v; want none", p, err)
			}
			do(t, w, `UPDATE kernels SET status = status`)
			if _, err := w.SQL().Exec("SELECT * FROM kernels_slots"); err == nil {
				t.Error("the table of slots is still there")
			}
		}
		if cpu := sumOf(t, w, "requested_slots", "cpu"); cpu != "9" {
			t.Errorf("the JSON has %s CPUs, want 9", cpu)
		}
	})
}

func TestAmountsThatAreNoNumbersAreListedAndStopTheCutOver(t *testing.T) {
	both(t, func(t *testing.T, w *warehouse.Warehouse, i *slots.Import) {
		must(t, i.DualWrite(t.Context()))
		do(t, w, `INSERT INTO kernels VALUES ('k5', 'PENDING', '{"cpu": "many", "mem": "1e3", "a": {"b": 1}, "c": "0.0000001"}', '[1, 2]')`)
		do(t, w, `DELETE FROM kernels_slots WHERE entity_id = 'k1' AND slot_name = 'mem'`)
		r, err := i.Validate(t.Context())
		must(t, err)
		var found []string
		for _, d := range r.Differences {
			found = append(found, d.Entity+" "+d.Slot+" "+d.Slots)
		}
		want := []string{"k1 mem none", "k1 mem none", "k5 a none", "k5 c none", "k5 cpu none", "k5 mem none"}
		if d := cmp.Diff(want, found); d != "" || r.Total != 6 {
			t.Errorf("%d differences (-want +got)\n%s", r.Total, d)
		}
		if err := i.CutOver(t.Context()); err == nil || !strings.Contains(err.Error(), "6 differences") {
			t.Errorf("cut-over with differences: %v", err)
		}
		if p, err := i.Phase(t.Context()); p != slots.DualWrite || err != nil {
			t.Errorf("phase %s, %v after a refused cut-over; want dual-write", p, err)
		}
	})
}

// A program whose transaction began before the import, and commits while it runs, loses
// no row. PostgreSQL alone lets both run beside each other: SQLite has one writer at a time.
func TestARowThatIsWrittenBesideDualWriteHasItsSlots(t *testing.T) {
	on(t, postgres.Database(t), func(t *testing.T, w *warehouse.Warehouse, i *slots.Import) {
		program, err := w.SQL().BeginTx(t.Context(), nil)
		must(t, err)
		defer func() { _ = program.Rollback() }()
		_, err = program.ExecContext(t.Context(), `INSERT INTO kernels VALUES ('k4', 'RUNNING', '{"cpu": "2"}', '{}')`)
		must(t, err)
		done := make(chan error, 1)
		go func() { done <- i.DualWrite(t.Context()) }()
		for waits := false; !waits; {
			must(t, w.SQL().QueryRowContext(t.Context(), "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND relation = 'kernels'::regclass").Scan(&waits))
		}
		must(t, program.Commit())
		must(t, <-done)
		if r, err := i.Validate(t.Context()); err != nil || r.Total != 0 || r.Entities != 4 {
			t.Errorf("%+v, %v; want 4 entities and no difference", r, err)
		}
	})
}

// A step reads a whole table, which may take longer than the time of one statement.
func TestAStepHasTheTimeThatItNeeds(t *testing.T) {
	w, err := warehouse.Open(t.Context(), postgres.Database(t))
	must(t, err)
	t.Cleanup(func() { _ = w.Close() })
	do(t, w, `CREATE TABLE kernels (id TEXT PRIMARY KEY, requested_slots JSONB, occupied_slots JSON)`)
	do(t, w, `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1.1); RETURN NULL; END $$`)
	do(t, w, `CREATE TRIGGER slow AFTER INSERT ON resource_slot_types FOR EACH STATEMENT EXECUTE FUNCTION slow()`)
	w.SQL().SetMaxOpenConns(1)
	do(t, w, "SET statement_timeout = 1000")
	i, err := slots.Of(w, kernels)
	must(t, err)
	must(t, i.DualWrite(t.Context()))
}

func TestStepsOutOfTurnAreRefused(t *testing.T) {
	both(t, func(t *testing.T, w *warehouse.Warehouse, i *slots.Import) {
		for name, step := range map[string]func() error{
			"cut-over": func() error { return i.CutOver(t.Context()) }, "rollback": func() error { return i.Rollback(t.Context()) }, "remove": func() error { return i.Remove(t.Context()) },
			"validate": func() error { _, err := i.Validate(t.Context()); return err },
		} {
			if err := step(); err == nil || !strings.Contains(err.Error(), "none") {
				t.Errorf("%s before dual-write: %v, want an error that names the phase", name, err)
			}
		}
		must(t, i.DualWrite(t.Context()))
		other, err := slots.Of(w, slots.Source{Table: "kernels", ID: "id", Columns: []string{"occupied_slots"}})
		must(t, err)
		if err := other.CutOver(t.Context()); err == nil || !strings.Contains(err.Error(), "requested_slots,occupied_slots") {
			t.Errorf("other columns than those of the beginning: %v", err)
		}
	})
}

func TestNamesThatAreNoneAreRefused(t *testing.T) {
	for want, s := range map[string]slots.Source{
		"0 JSON columns":       {Table: "t", ID: "id"},
		`"t; DROP TABLE x" is`: {Table: "t; DROP TABLE x", ID: "id", Columns: []string{"a"}},
		`"" is no name`:        {Table: "t", ID: "", Columns: []string{"a"}},
		"named twice":          {Table: "t", ID: "id", Columns: []string{"a", "a"}},
		`"a\"b" is no name`:    {Table: "t", ID: "id", Columns: []string{`a"b`}},
	} {
		if _, err := slots.Of(nil, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
