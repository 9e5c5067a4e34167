package rest_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/rest/restdoc"
	"github.com/musterd/muster/coordinator/service"
)

// checkedHandler is the handler of c under validAnswers.
func checkedHandler(tb testing.TB, c rest.Config) http.Handler {
	tb.Helper()
	return validAnswers(tb, rest.NewHandler(c))
}

// validAnswers serves as next does and holds each answer to the OpenAPI document:
// its code is one of the route and its JSON has the form of the schema, with no
// field beside it.
func validAnswers(tb testing.TB, next http.Handler) http.Handler {
	tb.Helper()
	described := http.NewServeMux()
	for _, r := range restdoc.Routes() {
		described.Handle(r.Pattern(), http.NotFoundHandler())
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &seenAnswer{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(seen, r)
		if _, pattern := described.Handler(r); pattern != "" && r.Method != http.MethodHead {
			for _, fault := range faultsOf(pattern, seen.code, w.Header().Get("Content-Type"), seen.body.Bytes()) {
				tb.Errorf("%s %s is answered %d: %s", r.Method, r.URL, seen.code, fault)
			}
		}
	})
}

// seenAnswer keeps a copy of an answer.
type seenAnswer struct {
	http.ResponseWriter
	code int
	body bytes.Buffer
}

func (s *seenAnswer) WriteHeader(code int) {
	if s.code = code; code < 200 {
		s.code = http.StatusOK
	}
	s.ResponseWriter.WriteHeader(code)
}

func (s *seenAnswer) Write(b []byte) (int, error) {
	s.body.Write(b)
	return s.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (s *seenAnswer) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// described is the document in two forms.
type described struct {
	paths    map[string]map[string]map[string]any
	compiler *jsonschema.Compiler
	mu       sync.Mutex // guards compiler
}

const documentURL = "https://muster.example/openapi.json"

// description is the committed document, closed: an answer has no other fields.
var description = sync.OnceValues(func() (*described, error) {
	answer := httptest.NewRecorder()
	rest.NewHandler(rest.Config{Service: struct{ service.Service }{}, Authenticator: callers{}}).ServeHTTP(answer, httptest.NewRequest("GET", "/openapi.json", nil))
	document, err := jsonschema.UnmarshalJSON(answer.Body)
	if err != nil {
		return nil, err
	}
	closeSchemas(document)
	d := &described{paths: map[string]map[string]map[string]any{}, compiler: jsonschema.NewCompiler()}
	for path, item := range document.(map[string]any)["paths"].(map[string]any) {
		d.paths[path] = map[string]map[string]any{}
		for method, operation := range item.(map[string]any) {
			d.paths[path][method] = operation.(map[string]any)["responses"].(map[string]any)
		}
	}
	d.compiler.AssertFormat()
	return d, d.compiler.AddResource(documentURL, document)
})

// closeSchemas forbids other properties beside those of each schema.
func closeSchemas(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, has := v["properties"].(map[string]any); has && v["type"] == "object" && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		for _, inner := range v {
			closeSchemas(inner)
		}
	case []any:
		for _, inner := range v {
			closeSchemas(inner)
		}
	}
}

// faultsOf are the differences between an answer and the document.
func faultsOf(pattern string, code int, contentType string, body []byte) []string {
	d, err := description()
	if err != nil {
		return []string{err.Error()}
	}
	method, path, _ := strings.Cut(pattern, " ")
	answers := d.paths[path][strings.ToLower(method)]
	if answers == nil {
		return []string{"openapi.json has no " + pattern + ": run make reference"}
	}
	named := strconv.Itoa(code)
	if answers[named] == nil {
		if named = "default"; code < http.StatusBadRequest {
			return []string{"openapi.json has the codes " + strings.Join(slices.Sorted(maps.Keys(answers)), ", ") + " alone"}
		}
	}
	if answers[named].(map[string]any)["content"] == nil || contentType != "application/json" {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	schema, err := d.compiler.Compile(documentURL + "#/paths/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(path) +
		"/" + strings.ToLower(method) + "/responses/" + named + "/content/application~1json/schema")
	if err != nil {
		return []string{err.Error()}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return []string{err.Error()}
	}
	if err := schema.Validate(value); err != nil {
		return []string{err.Error() + ": " + string(body)}
	}
	return nil
}

func TestAnswersOutsideTheDocumentAreFaults(t *testing.T) {
	const pattern = "GET /api/v1/namespaces/{namespace}/allocations/{name}"
	for name, c := range map[string]struct {
		code   int
		body   string
		faults int
	}{
		"an allocation":                     {code: 200, body: `{"metadata": {"name": "a"}, "spec": {"resources": {"requests": {"cpu": "1"}}}, "status": {"phase": "Running"}}`},
		"a field that the document has not": {code: 200, body: `{"metadata": {"name": "a"}, "zzz": 1}`, faults: 1},
		"a number in place of a text":       {code: 200, body: `{"metadata": {"name": 7}}`, faults: 1},
		"another kind":                      {code: 200, body: `{"kind": "Job"}`, faults: 1},
		"a refusal":                         {code: 404, body: `{"kind": "Status", "code": 404, "reason": "NotFound", "message": "no"}`},
		"a refusal that is no Status":       {code: 404, body: `{"error": "no"}`, faults: 1},
		"a code that the document has not":  {code: 206, body: `{}`, faults: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if faults := faultsOf(pattern, c.code, "application/json", []byte(c.body)); len(faults) != c.faults {
				t.Errorf("%q", faults)
			}
		})
	}
}

func TestEverySchemaOfTheDocumentCompiles(t *testing.T) {
	d, err := description()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(openAPIDocument(t))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, kind := range slices.Sorted(maps.Keys(document.Components.Schemas)) {
		if _, err := d.compiler.Compile(documentURL + "#/components/schemas/" + kind); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
