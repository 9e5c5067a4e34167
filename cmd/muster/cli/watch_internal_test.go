package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// TestTheRowsOfAWatchBeginInColumns: the objects that are there are aligned as in a get,
// and a wider row that comes later moves the columns of its own and of later rows.
func TestTheRowsOfAWatchBeginInColumns(t *testing.T) {
	kind, _ := sdk.KindNamed("tenants")
	event := func(name string) sdk.Event {
		return sdk.Event{Type: "ADDED", Object: sdk.Object{Kind: kind, Value: &api.Tenant{
			Metadata: api.ObjectMeta{Name: name}, Spec: api.TenantSpec{DisplayName: "Team"},
		}}}
	}
	var out bytes.Buffer
	a := &app{Program: Program{Stdout: &out}, output: "table"}
	var p watchPrinter
	present := []sdk.Event{event("a"), event("a-long-name"), event("b")}
	for _, e := range present {
		p.fit(a, e, false)
	}
	for _, e := range append(present, event("a-name-that-is-longer")) {
		if err := p.show(a, e, false); err != nil {
			t.Fatal(err)
		}
	}
	var columns []int
	for line := range strings.Lines(out.String()) {
		columns = append(columns, max(strings.Index(line, "DISPLAY"), strings.Index(line, "Team")))
	}
	if want := []int{14, 14, 14, 14, 24}; !slices.Equal(columns, want) {
		t.Errorf("the second column begins at %v, want %v:\n%s", columns, want, out.String())
	}
}
