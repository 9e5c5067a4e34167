package conformance

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed requests.json
var requestsFile []byte

// ownFile has requests of kinds that Muster has beside the specification: quota trees
// and events, as docs/quota.md and docs/api.md describe them.
//
//go:embed own.json
var ownFile []byte

// request is a documented request with its answer.
type request struct {
	Name    string            `json:"name"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
	// With are the values of the placeholders of Path.
	With   map[string]string `json:"with"`
	Status int               `json:"status"`
	// Silent requests have no answer in the document; Status is then ours.
	Silent bool `json:"silent"`
	// Answer is the documented answer: "..." stands for the value that was sent.
	// Events are the documented objects of a stream.
	Answer any              `json:"answer"`
	Events []map[string]any `json:"events"`
	// Varies are the fields whose values depend on the cluster and its time: they
	// must be there and have the documented type.
	Varies []string `json:"varies"`
	// Differs are the fields that Muster answers otherwise, with the reason.
	Differs []difference `json:"differs"`
	// Warns are the fields that a Warning names beside those of docs/api.md.
	Warns []string `json:"warns"`
}

// difference is a field that differs on purpose. Want is the value of Muster; null
// where Muster has no such field.
type difference struct {
	Field string `json:"field"`
	Want  any    `json:"want"`
	Why   string `json:"why"`
}

// route is the request as docs/api.md names it: without a query.
func (r request) route() string {
	path, _, _ := strings.Cut(r.Path, "?")
	return r.Method + " " + path
}

func requests(t testing.TB) []request {
	t.Helper()
	var all []request
	for name, file := range map[string][]byte{"requests.json": requestsFile, "own.json": ownFile} {
		var some []request
		d := json.NewDecoder(bytes.NewReader(file))
		d.DisallowUnknownFields()
		if err := d.Decode(&some); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, some...)
	}
	return all
}

// later is a field of the specification that a later version fills: a row of
// docs/api.md.
type later struct {
	route, field string
	// now is the present behaviour: absent (the answer has no such field), recorded
	// (the field is kept and a Warning names it), 422 (the request is refused and
	// the message names the field), 404 (the route does not exist).
	now string
}

// fieldsOfLaterVersions reads the table of docs/api.md.
func fieldsOfLaterVersions(t testing.TB) []later {
	t.Helper()
	const heading = "## Fields of later versions"
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), heading+"\n")
	if !found {
		t.Fatalf("docs/api.md has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var all []later
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) != 4 || strings.HasPrefix(cells[0], "--") || strings.TrimSpace(cells[0]) == "route" {
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		all = append(all, later{route: cells[0], field: cells[1], now: cells[2]})
	}
	if len(all) == 0 {
		t.Fatalf("docs/api.md: the table of %q has no rows", heading)
	}
	return all
}

func TestTheTableOfLaterFieldsNamesDocumentedFields(t *testing.T) {
	all := requests(t)
	for _, l := range fieldsOfLaterVersions(t) {
		found := false
		for _, r := range all {
			var sent any
			if r.Body != nil && json.Unmarshal(r.Body, &sent) != nil {
				t.Fatalf("%s: the body is no JSON", r.Name)
			}
			found = found || r.route() == l.route && (l.field == "" || has(sent, l.field) || has(r.Answer, l.field))
		}
		if !found {
			t.Errorf("docs/api.md lists %q of %s: no request of requests.json has that field", l.field, l.route)
		}
		switch l.now {
		case "absent", "recorded", "422", "404":
		default:
			t.Errorf("docs/api.md: %s of %s is %q now, want absent, recorded, 422 or 404", l.field, l.route, l.now)
		}
	}
}

func TestDifferencesHaveReasons(t *testing.T) {
	for _, r := range requests(t) {
		for _, d := range r.Differs {
			if len(d.Why) < 20 {
				t.Errorf("%s: %s differs for the reason %q: write a sentence", r.Name, d.Field, d.Why)
			}
		}
	}
}
