package capture_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/capture"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
)

// TestADocumentNamesCallersAlone: of the caller who has submitted work the name stays, and
// neither the token nor the address nor the request id.
func TestADocumentNamesCallersAlone(t *testing.T) {
	from, err := capture.Decode(committed(t))
	if err != nil {
		t.Fatal(err)
	}
	by := &record.Actor{ID: "a1", Person: "ada", Tenant: "red", Token: "secret-token", RequestID: "secret-request", Address: "secret-address:1", Via: "secret-via"}
	jobs, units := from.Below(record.JobsPrefix), from.Below(record.UnitsPrefix)
	if len(jobs) == 0 || len(units) == 0 {
		t.Fatal("the committed document has no jobs, or no units")
	}
	for i := range jobs {
		jobs[i].Value = madeBy(t, jobs[i], func(r *record.Job) { r.Made = by })
	}
	for i := range units {
		units[i].Value = madeBy(t, units[i], func(r *record.Unit) { r.Made = by })
	}
	state := &lead.Captured{At: from.TakenAt, Epoch: from.Epoch, Revision: from.Revision}
	d, err := capture.New("", state, from.Revision, append(jobs, units...))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "secret-") || strings.Count(string(text), `"person":"ada"`) != len(d.Keys) {
		t.Errorf("the document has more of a caller than the name, or not the name:\n%s", text)
	}
}

func madeBy[R record.Type](t *testing.T, kv record.KV, change func(*R)) []byte {
	t.Helper()
	r, err := record.Decode[R](kv.Key, kv.Value)
	if err != nil {
		t.Fatal(err)
	}
	change(&r)
	return record.MustEncode(r)
}
