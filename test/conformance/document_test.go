package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// documentedRequest is a request of the specification's text.
type documentedRequest struct {
	method, path string
	headers      map[string]string
	body         any
}

var (
	requestLine = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE) (/\S+)$`)
	headerLine  = regexp.MustCompile(`^([A-Z][A-Za-z-]+): (.+)$`)
)

// documented reads the requests of the specification's text: a line with method and
// path, lines of headers, and a document of JSON.
func documented(t *testing.T, text string) []documentedRequest {
	t.Helper()
	var all []documentedRequest
	lines := strings.SplitAfter(strings.ReplaceAll(text, "}Get ", "}\nGet "), "\n")
	for i := range lines {
		m := requestLine.FindStringSubmatch(strings.TrimSpace(lines[i]))
		if m == nil {
			continue
		}
		r := documentedRequest{method: m[1], path: m[2], headers: map[string]string{}}
		i++
		for ; i < len(lines); i++ {
			h := headerLine.FindStringSubmatch(strings.TrimSpace(lines[i]))
			if h == nil {
				break
			}
			r.headers[h[1]] = h[2]
		}
		if i < len(lines) && strings.HasPrefix(lines[i], "{") {
			if err := json.NewDecoder(strings.NewReader(strings.Join(lines[i:], ""))).Decode(&r.body); err != nil {
				t.Fatalf("%s %s: %v", r.method, r.path, err)
			}
		}
		all = append(all, r)
	}
	return all
}

// The specification lies beside the repository where it is at hand at all.
func TestEachRequestOfTheSpecificationIsInTheTable(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "spec", "api-design.txt"))
	if err != nil {
		t.Skipf("no reference material: %v", err)
	}
	all := documented(t, string(text))
	if len(all) < 22 {
		t.Fatalf("the specification has %d requests, want 22 or more", len(all))
	}
	transcribed := requests(t)
	for _, d := range all {
		found := false
		for _, r := range transcribed {
			var body any
			if r.Body != nil {
				if err := json.Unmarshal(r.Body, &body); err != nil {
					t.Fatal(err)
				}
			}
			found = found || r.Method == d.method && r.Path == d.path && reflect.DeepEqual(r.Headers, d.headers) && reflect.DeepEqual(body, d.body)
		}
		if !found {
			t.Errorf("requests.json has no %s %s with the headers %v and the body of the specification", d.method, d.path, d.headers)
		}
	}
}
