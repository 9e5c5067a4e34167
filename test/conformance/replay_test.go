package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/agent/attach"
	"github.com/musterd/muster/cmd/muster/dev"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/canary"
)

// nodes is the size of the cluster: eight nodes for the members of the documented job,
// and the node that the document registers.
const (
	nodes      = 9
	registered = "gpu-worker-043"
)

// patience bounds each request and each wait of the story.
const patience = 2 * time.Minute

// world is the cluster of a replay.
type world struct {
	*testing.T
	cluster *dev.Cluster
	dataDir string
	base    string
	all     map[string]request
	later   []later
	used    map[later]bool
}

// answered is an answer over HTTP.
type answered struct {
	code    int
	warning string
	body    any
	raw     []byte
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	names := make([]string, nodes)
	names[nodes-1] = registered
	dataDir := shortDir(t)
	giveAPast(t, dataDir)
	cluster, err := dev.Start(ctx, dev.Config{
		Nodes: nodes, Names: names, Profile: "dgx-a100", DataDir: dataDir, Listen: "127.0.0.1:0", Version: "v0.0.0-test",
		Logger: canary.Logger(t), Progress: func(int, int) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	w := &world{T: t, cluster: cluster, dataDir: dataDir, base: cluster.Addresses.REST, all: map[string]request{}, later: fieldsOfLaterVersions(t), used: map[later]bool{}}
	for _, r := range requests(t) {
		w.all[r.Name] = r
	}
	return w
}

// shortDir is a folder whose path leaves room for the sockets of agents.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "muster-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// done reports the end of the work of an allocation at the host: a written grace ends.
func (w *world) done(name string, member int) {
	w.Helper()
	a := w.must(http.StatusOK, "GET", team+"allocations/"+name, "")
	node, tx := fmt.Sprint(found(a.body, []string{"status", "nodeName"})[0]), fmt.Sprint(found(a.body, []string{"status", "transaction"})[0])
	socket := filepath.Join(w.dataDir, "nodes", node, "attach.sock")
	if err := attach.Done(w.Context(), socket, attach.Request{Transaction: resource.TxID(tx), Member: member, Code: new(int)}); err != nil {
		w.Fatalf("%s on %s: %v", name, node, err)
	}
}

// open sends a request; the caller closes the answer's body.
func (w *world) open(ctx context.Context, method, path string, headers map[string]string, body []byte) *http.Response {
	w.Helper()
	r, err := http.NewRequestWithContext(ctx, method, w.base+path, bytes.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	if token := r.Header.Get("Authorization"); token == "" || strings.Contains(token, "{") {
		r.Header.Set("Authorization", "Bearer "+w.cluster.Token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatalf("%s %s: %v", method, path, err)
	}
	return answer
}

func (w *world) send(method, path string, headers map[string]string, body []byte) answered {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	r := w.open(ctx, method, path, headers, body)
	defer r.Body.Close()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		w.Fatalf("%s %s: %v", method, path, err)
	}
	a := answered{code: r.StatusCode, warning: strings.Join(r.Header.Values("Warning"), ", "), raw: raw}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &a.body); err != nil {
			w.Fatalf("%s %s is answered with no JSON: %v: %s", method, path, err, raw)
		}
	}
	return a
}

// must sends a request of the story that is not the specification's.
func (w *world) must(code int, method, path, body string) answered {
	w.Helper()
	kind := "application/json"
	if method == http.MethodPatch {
		kind = "application/merge-patch+json"
	}
	a := w.send(method, path, map[string]string{"Content-Type": kind}, []byte(body))
	if a.code != code {
		w.Fatalf("%s %s is answered %d, want %d: %s", method, path, a.code, code, a.raw)
	}
	return a
}

// target is the path of a request, with its placeholders filled. more has values
// for other parts of the path.
func (w *world) target(r request, more map[string]string) string {
	path := r.Path
	for name, value := range r.With {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	for part, value := range more {
		if part == "bearer" {
			continue
		}
		path = strings.ReplaceAll(path, part, value)
	}
	if strings.Contains(path, "{") {
		w.Fatalf("%s: %s has a placeholder without a value", r.Name, path)
	}
	return path
}

// listed are the rows of docs/api.md for a request, and marks them as checked.
func (w *world) listed(r request, now string) []string {
	var fields []string
	for _, l := range w.later {
		if l.route == r.route() && l.now == now {
			w.used[l] = true
			fields = append(fields, l.field)
		}
	}
	return fields
}

// request takes a documented request out of those that wait for the story.
func (w *world) request(name string) request {
	w.Helper()
	r, found := w.all[name]
	if !found {
		w.Fatalf("requests.json has no %q", name)
	}
	delete(w.all, name)
	return r
}

// replay sends a documented request, compares the answer with the document, and returns
// the answer. more are values for parts of the path that are known only now, and of the
// bearer.
func (w *world) replay(name string, more map[string]string) answered {
	w.Helper()
	r := w.request(name)
	if bearer := more["bearer"]; bearer != "" {
		r.Headers = maps.Clone(r.Headers)
		r.Headers["Authorization"] = "Bearer " + bearer
	}
	path := w.target(r, more)
	if len(w.listed(r, "404")) > 0 {
		a := w.send(r.Method, path, r.Headers, r.Body)
		if a.code != http.StatusNotFound && a.code != http.StatusMethodNotAllowed {
			w.Errorf("%s is served now (%d %s): compare it, and take it from docs/api.md", name, a.code, a.raw)
		}
		return a
	}
	a := w.send(r.Method, path, r.Headers, w.withoutRefused(r, path))
	if a.code != r.Status {
		w.Errorf("%s is answered %d, want %d: %s", name, a.code, r.Status, a.raw)
		return a
	}
	if a.code < http.StatusBadRequest {
		w.checkRecorded(r, a.warning)
	}
	w.check(r, r.Answer, a.body)
	return a
}

// withoutRefused is the body without the fields that docs/api.md lists as refused.
// Each of them alone must be refused by its name.
func (w *world) withoutRefused(r request, path string) []byte {
	w.Helper()
	refused := w.listed(r, "422")
	for _, field := range refused {
		others := slices.DeleteFunc(slices.Clone(refused), func(f string) bool { return f == field })
		a := w.send(r.Method, path, r.Headers, without(w.T, r.Body, others))
		if a.code != http.StatusUnprocessableEntity || !strings.Contains(string(a.raw), field) {
			w.Errorf("%s with %s is answered %d %s: docs/api.md lists the field as refused with 422", r.Name, field, a.code, a.raw)
		}
	}
	return without(w.T, r.Body, refused)
}

// without is a document without some fields.
func without(t *testing.T, document []byte, fields []string) []byte {
	t.Helper()
	if len(fields) == 0 {
		return document
	}
	var v any
	if err := json.Unmarshal(document, &v); err != nil {
		t.Fatal(err)
	}
	for _, field := range fields {
		parts := split(field)
		for _, in := range found(v, parts[:len(parts)-1]) {
			if object, ok := in.(map[string]any); ok {
				delete(object, parts[len(parts)-1])
			}
		}
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// checkRecorded checks that the answer warns of the listed fields and no others.
func (w *world) checkRecorded(r request, warning string) {
	w.Helper()
	listed := w.listed(r, "recorded")
	for _, field := range append(listed, r.Warns...) {
		if !strings.Contains(warning, field) {
			w.Errorf("%s: no warning names %s, which docs/api.md or requests.json lists: %q", r.Name, field, warning)
		}
		warning = strings.ReplaceAll(warning, field, "")
	}
	for _, document := range []string{"spec.", "metadata.", "status."} {
		if strings.Contains(warning, document) {
			w.Errorf("%s: a field of the document has no effect and is not in docs/api.md: %q", r.Name, warning)
		}
	}
}

func (w *world) check(r request, want, got any) {
	w.Helper()
	if want == nil {
		return
	}
	c := comparison{varies: r.Varies, differs: r.Differs, absent: w.listed(r, "absent")}
	if r.Body != nil {
		if err := json.Unmarshal(without(w.T, r.Body, w.listed(r, "422")), &c.sent); err != nil {
			w.Fatal(err)
		}
	}
	lines := c.compare(want, got)
	for _, line := range lines {
		w.Errorf("%s: %s", r.Name, line)
	}
	if len(lines) > 0 {
		text, _ := json.MarshalIndent(got, "", " ")
		w.Logf("%s: the answer is %s", r.Name, text)
	}
}
