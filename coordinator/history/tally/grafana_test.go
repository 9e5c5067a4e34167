package tally_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	grafana "github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/tally"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/postgres"
)

// dashboard is the part of Grafana's model that the test reads.
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Panels        []struct {
		ID          int
		Title, Type string
		GridPos     struct{ H, W, X, Y int }
		Targets     []struct{ RefID, Format, RawSQL string }
	}
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
}

// TestGrafanaTakesTheDashboard reads docs/grafana/history.json by Grafana's own model, as an
// import does, with each field that the model wants and no other.
func TestGrafanaTakesTheDashboard(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	text, err := os.ReadFile("../../../docs/grafana/history.json")
	if err != nil {
		t.Fatal(err)
	}
	var d grafana.Dashboard
	if err := d.UnmarshalJSONStrict(text); err != nil && err.Error() != "" { // a list of errors, which may be empty
		t.Fatal(err)
	}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
	if len(d.Panels) < 10 {
		t.Errorf("Grafana has read %d panels", len(d.Panels))
	}
}

// macros replaces, as Grafana does, variables, and the macros of its data source for
// PostgreSQL.
func macros(query string) string {
	from, to := time.Now().Add(-30*24*time.Hour).UTC().Format(time.RFC3339), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	query = regexp.MustCompile(`\$__timeFilter\(([\w.]+)\)`).ReplaceAllString(query, fmt.Sprintf("$1 BETWEEN '%s' AND '%s'", from, to))
	query = regexp.MustCompile(`\$__timeGroup\(([\w.]+), *'1h'\)`).ReplaceAllString(query, "floor(extract(epoch from $1)/3600)*3600")
	return strings.NewReplacer("${tenant:sqlstring}", "'a','b'", "${slot}", string(resource.GPU)).Replace(query)
}

// TestTheDashboardOfGrafana: each query of docs/grafana/history.json, with Grafana's macros
// replaced, runs on PostgreSQL, finds rows, and has the columns that its panel wants.
func TestTheDashboardOfGrafana(t *testing.T) {
	text, err := os.ReadFile("../../../docs/grafana/history.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.Title == "" || d.UID == "" || d.SchemaVersion < 36 || len(d.Panels) < 10 {
		t.Fatalf("dashboard %q (%s) of schema %d with %d panels", d.Title, d.UID, d.SchemaVersion, len(d.Panels))
	}
	w := pastDay(t)
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			ask(t, w, "variable "+v.Name, v.Query)
		}
	}
	ids, places := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || len(p.Targets) != 1 || p.Targets[0].RefID == "" || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q has an id twice, %d targets or the place %+v", p.ID, p.Title, len(p.Targets), p.GridPos)
			continue
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				place := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := places[place]; other != "" {
					t.Fatalf("panels %q and %q overlap", p.Title, other)
				}
				places[place] = p.Title
			}
		}
		columns := ask(t, w, "panel "+p.Title, macros(p.Targets[0].RawSQL))
		if p.Targets[0].Format == "time_series" && (len(columns) < 2 || columns[0] != "time") {
			t.Errorf("panel %q has columns %v, want time first", p.Title, columns)
		}
	}
}

// ask runs a query that finds rows, and returns its columns.
func ask(t *testing.T, w *warehouse.Warehouse, what, query string) []string {
	t.Helper()
	if strings.Contains(query, "$") {
		t.Errorf("%s: a macro or a variable that the test does not know: %s", what, query)
		return nil
	}
	rows, err := w.SQL().QueryContext(t.Context(), query)
	if err != nil {
		t.Errorf("%s: %v\n%s", what, err, query)
		return nil
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if found := rows.Next(); err != nil || !found || rows.Err() != nil {
		t.Errorf("%s: rows %t, %v, %v\n%s", what, found, err, rows.Err(), query)
	}
	return columns
}

// pastDay is a database with a row for each panel.
func pastDay(t *testing.T) *warehouse.Warehouse {
	t.Helper()
	w, err := warehouse.Open(t.Context(), postgres.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	hour := time.Now().UTC().Truncate(time.Hour).Add(-2 * time.Hour)
	gpu, cpu := resource.Vector{resource.GPU: 2000}, int64(1500)
	err = w.Write(t.Context(), history.Batch{
		Upto: 1, At: hour, Nodes: []history.Node{{ID: "n", Hostname: "host", Capacity: resource.Vector{resource.GPU: 8000}, Allocatable: resource.Vector{resource.GPU: 8000}, Revision: 1}},
		Units: []history.Unit{
			{UID: "u", Tenant: "a", Namespace: "research", Name: "train", Created: hour, Scheduled: hour.Add(time.Minute), Requests: gpu, Revision: 1},
			{UID: "w", Tenant: "a", Namespace: "research", Name: "waits", Created: hour, Requests: gpu, Revision: 1},
		},
		Waits:       []history.Wait{{Unit: "w", Tenant: "a", Since: hour, Code: "InsufficientGPU", Revision: 1}},
		Quotas:      []history.Quota{{Namespace: "research", Name: "q", Tenant: "a", Slot: resource.GPU, Hard: 8000, Soft: resource.Unlimited, From: hour.Add(-time.Hour), Revision: 1}},
		Preemptions: []history.Preemption{{Tx: "v", VictimTenant: "a", PreemptorTenant: "b", Freed: gpu, Initiated: hour, Outcome: "Evicted", Revision: 1}},
		Slices:      []history.Slice{{Tx: "t", Tenant: "a", Namespace: "research", Slot: resource.GPU, GPUModel: "H100", From: hour, To: hour.Add(time.Hour), Requested: 2000, Allocated: 2000}},
	})
	if err == nil {
		err = w.RecordHeartbeats(t.Context(), []history.Heartbeat{{Node: "n", At: hour, CPUMillicores: &cpu, MemoryBytes: &cpu}})
	}
	if err == nil {
		_, err = tally.Settle(t.Context(), w, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}
