package warehouse_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/coordinator/history/warehouse/warehousetest"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/postgres"
)

const document = "../../../docs/history.md"

// filled has a row for each question of the document.
func filled(t *testing.T) *warehouse.Warehouse {
	w := warehousetest.Open(t, postgres.Database(t))
	now := time.Now()
	lastMonth := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC).AddDate(0, -1, 0)
	gpu := resource.Vector{resource.GPU: 2000}
	warehousetest.Write(t, w, history.Batch{Upto: 1,
		Nodes: []history.Node{{ID: "n", Hostname: "host", Capacity: resource.Vector{resource.GPU: 8000}, Allocatable: resource.Vector{resource.GPU: 8000}, Revision: 1}},
		Units: []history.Unit{{UID: "u", Tenant: "a", Namespace: "research", Name: "train", Created: now.Add(-2 * time.Hour), Scheduled: now.Add(-time.Hour), Requests: gpu, Revision: 1},
			{UID: "w", Tenant: "a", Namespace: "research", Name: "waits", Created: now.Add(-2 * time.Hour), Requests: gpu, Revision: 1}},
		Grants:      []history.Grant{{Tx: "t", Unit: "u", Committed: now, Ready: now, Members: []history.Member{{Node: "n", Requested: gpu, Allocated: gpu}}, Revision: 1}},
		Waits:       []history.Wait{{Unit: "w", Tenant: "a", Since: now.Add(-time.Hour), Code: "InsufficientGPU", Revision: 1}},
		Preemptions: []history.Preemption{{Tx: "v", VictimTenant: "a", PreemptorTenant: "b", Freed: gpu, Initiated: now, Revision: 1}},
		Slices: []history.Slice{{Tx: "t", Tenant: "a", Namespace: "research", Slot: resource.GPU, GPUModel: "H100", From: lastMonth, To: lastMonth.Add(time.Hour), Allocated: 2000},
			{Tx: "t", Tenant: "a", Namespace: "research", Slot: resource.GPU, GPUModel: "H100", From: lastMonth.Add(time.Hour), To: lastMonth.Add(90 * time.Minute), Allocated: 2000}}})
	return w
}

func TestTheQuestionsOfTheDocumentRun(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	w := filled(t)
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 5 {
		t.Fatalf("%d questions in %s, want 5 or more", len(blocks), document)
	}
	var all strings.Builder
	for _, block := range blocks {
		found, err := w.SQL().QueryContext(t.Context(), block[1])
		if err != nil {
			t.Errorf("%v:\n%s", err, block[1])
			continue
		}
		columns, _ := found.Columns()
		rows := 0
		for ; found.Next(); rows++ {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := found.Scan(values...); err != nil {
				t.Error(err)
			}
			for i, v := range values {
				fmt.Fprintf(&all, "%s=%v ", columns[i], *v.(*any))
			}
		}
		if err := found.Close(); err != nil || rows == 0 {
			t.Errorf("%d rows, %v:\n%s", rows, err, block[1])
		}
	}
	for _, want := range []string{"project=research gpu_model=H100 gpu_hours=3.00 ", "allocation_name=waits", "free=6.000000", "loser=a winner=b"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no %q among the answers %s", want, all.String())
		}
	}
}

// The document, the migrations and the code have the same tables and columns.
func TestTheDocumentNamesEveryColumn(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	w := warehousetest.Open(t, postgres.Database(t))
	lite := warehousetest.Open(t, sqliteDSN(t))
	found, err := w.SQL().QueryContext(t.Context(), `SELECT c.table_name, c.column_name FROM information_schema.columns c
		JOIN pg_class p ON p.oid = to_regclass(c.table_name) WHERE c.table_schema = current_schema() AND NOT p.relispartition
		AND c.table_name NOT IN ('history_schema', 'history_detached') AND c.table_name NOT LIKE 'usage_%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	n := 0
	for ; found.Next(); n++ {
		var table, column string
		if err := found.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "`"+table+"`") || !strings.Contains(string(text), column) {
			t.Errorf("%s does not name column %s of table %s", document, column, table)
		}
		warehousetest.Count(t, lite, "SELECT count("+column+") FROM "+table)
	}
	if err := found.Err(); err != nil || n < 100 {
		t.Errorf("%d columns, %v", n, err)
	}
}
