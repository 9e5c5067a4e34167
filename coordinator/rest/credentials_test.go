package rest_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/access"
	"github.com/musterd/muster/coordinator/follow"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/resttest"
)

// gate is a coordinator whose callers come by tokens of a store.
type gate struct {
	t   *testing.T
	url string
}

func newGate(t *testing.T) gate {
	t.Helper()
	back := mem.Open(mem.Options{})
	rights := access.NewTable(nil)
	f := follow.New(follow.Options{
		Store: back, Log: slog.New(slog.DiscardHandler), Check: time.Second, Leads: func() bool { return false }, Rights: rights,
		Moved: func(resource.Revision) {}, Registered: func(follow.News) {}, Forget: func(context.Context, *record.WentBackError) {},
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	settle := func(ctx context.Context, at resource.Revision) []string {
		if err := f.Reach(ctx, at); err != nil {
			t.Error(err)
		}
		return nil
	}
	cluster := resttest.New(time.Now, resttest.Node{Name: "n", CPUs: 4})
	cluster.SetOutput("ml", "train", api.LogChunk{Text: "step 1\n"})
	cluster.HoldOutput("ml", "train")
	server := httptest.NewServer(rest.NewHandler(rest.Config{
		Service: cluster, Watches: watches{f}, Authenticator: access.Authenticator{Table: rights, Other: service.StaticToken(token)},
		Credentials: &access.Keeper{Store: back, Table: rights, Settle: settle, Logger: slog.New(slog.DiscardHandler)},
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close(); stop(); <-done; _ = back.Close() })
	return gate{t, server.URL + "/api/v1"}
}

// ask sends a request as the bearer of a token.
func (g gate) ask(method, path, bearer, body string) *http.Response {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+bearer)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		if method == http.MethodPatch {
			r.Header.Set("Content-Type", "application/merge-patch+json")
		}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// got sends a request and reads the whole answer.
func (g gate) got(method, path, bearer, body string) (int, string) {
	g.t.Helper()
	answer := g.ask(method, path, bearer, body)
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// made makes a token as the administrator.
func (g gate) made(spec string) (id, bearer string) {
	g.t.Helper()
	code, text := g.got("POST", "/tokens", token, `{"spec":`+spec+`}`)
	var t api.AccessToken
	if err := json.Unmarshal([]byte(text), &t); err != nil || code != http.StatusCreated {
		g.t.Fatalf("made: %d %s, %v", code, text, err)
	}
	return t.Metadata.Name, t.Status.Token
}

// A watch ends when its token is revoked or rotated away, and when a binding that let
// the caller in goes, with the reason as its last event.
func TestAWatchEndsWithItsToken(t *testing.T) {
	for name, c := range map[string]struct {
		spec   string
		before string // a binding; "" for none
		end    func(g gate, id string) (method, path, body string)
		want   string
		path   string // that the bearer follows; "" is a list that is watched
	}{
		"the token of a reader of output is revoked": {
			`{"user":"ada","role":"editor","tenant":"ml"}`, "",
			func(_ gate, id string) (string, string, string) { return "DELETE", "/tokens/" + id, "" }, `"code":401`,
			"/namespaces/ml/jobs/train/logs?follow=true",
		},
		"the token is revoked": {
			`{"user":"ada","role":"viewer","tenant":"ml"}`, "",
			func(_ gate, id string) (string, string, string) { return "DELETE", "/tokens/" + id, "" }, `"code":401`, "",
		},
		"the token is rotated without an overlap": {
			`{"user":"ada","role":"viewer","tenant":"ml"}`, "",
			func(_ gate, id string) (string, string, string) {
				return "POST", "/tokens/" + id + "/rotate", `{"overlap":"0s"}`
			}, `"code":401`, "",
		},
		"the binding goes": {
			`{"user":"ada"}`, `{"kind":"RoleBinding","metadata":{"name":"ml.ada"},"spec":{"role":"viewer","tenant":"ml","subjects":[{"kind":"User","name":"ada"}]}}`,
			func(gate, string) (string, string, string) { return "DELETE", "/rolebindings/ml.ada", "" }, `"message":"namespace ml not found"`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t)
			if c.before != "" {
				if code, text := g.got("POST", "/rolebindings", token, c.before); code != http.StatusCreated {
					t.Fatal(text)
				}
			}
			id, bearer := g.made(c.spec)
			watch := g.ask("GET", cmp.Or(c.path, "/namespaces/ml/allocations?watch=true"), bearer, "")
			other := g.ask("GET", "/namespaces/ml/allocations?watch=true", token, "") // of somebody else, which goes on
			if watch.StatusCode != http.StatusOK || other.StatusCode != http.StatusOK {
				t.Fatalf("answered with %d and %d", watch.StatusCode, other.StatusCode)
			}
			method, path, body := c.end(g, id)
			if code, text := g.got(method, path, token, body); code != http.StatusOK {
				t.Fatal(text)
			}
			last := ""
			lines := bufio.NewScanner(watch.Body)
			for lines.Scan() {
				if strings.Contains(lines.Text(), "ERROR") {
					last = lines.Text()
				}
			}
			if !strings.Contains(last, c.want) {
				t.Errorf("the watch ends with %q, want %s", last, c.want)
			}
			if code, text := g.got("GET", "/namespaces/ml/allocations", bearer, ""); code == http.StatusOK {
				t.Errorf("the token is still good: %s", text)
			}
		})
	}
}

// An object of another tenant and one that does not exist have one answer, for each
// right, at each door of REST: the words differ by the names alone.
func TestWhatACallerMayNotSeeDoesNotExist(t *testing.T) {
	g := newGate(t)
	_, ada := g.made(`{"user":"ada","role":"editor","tenant":"ml"}`)
	const unit = `{"metadata":{"name":"there"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`
	for _, namespace := range []string{"speech", "ml"} {
		if code, text := g.got("POST", "/namespaces/"+namespace+"/allocations", token, unit); code != http.StatusCreated {
			t.Fatal(text)
		}
	}
	if code, text := g.got("POST", "/tenants", token, `{"kind":"Tenant","metadata":{"name":"speech"},"spec":{}}`); code != http.StatusCreated {
		t.Fatal(text)
	}
	message := func(text string) string {
		var s api.Status
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return s.Message
	}
	for _, c := range []struct{ method, there, missing, old, new string }{
		{"GET", "/namespaces/speech/allocations/there", "/namespaces/speech/allocations/gone", "there", "gone"},
		{"GET", "/namespaces/speech/allocations/there", "/namespaces/ml/allocations/there2", "there not found in namespace speech", "there2 not found in namespace ml"},
		{"DELETE", "/namespaces/speech/allocations/there", "/namespaces/ml/allocations/there2", "there not found in namespace speech", "there2 not found in namespace ml"},
		{"GET", "/namespaces/speech/allocations/there/explain", "/namespaces/ml/allocations/there2/explain", "there not found in namespace speech", "there2 not found in namespace ml"},
		{"GET", "/namespaces/speech/allocations", "/namespaces/nothing/allocations", "speech", "nothing"},
		{"GET", "/namespaces/speech/allocations?watch=true", "/namespaces/nothing/allocations?watch=true", "speech", "nothing"},
		{"GET", "/tenants/speech", "/tenants/nothing", "speech", "nothing"},
		{"GET", "/namespaces/speech", "/namespaces/nothing", "speech", "nothing"},
		{"GET", "/metrics/tenants/speech/usage", "/metrics/tenants/nothing/usage", "speech", "nothing"},
	} {
		code, foreign := g.got(c.method, c.there, ada, "")
		other, missing := g.got(c.method, c.missing, ada, "")
		if code != http.StatusNotFound || other != http.StatusNotFound || strings.Replace(message(foreign), c.old, c.new, 1) != message(missing) {
			t.Errorf("%s %s: %d %s\n%s: %d %s", c.method, c.there, code, foreign, c.missing, other, missing)
		}
	}
}

// A token with a ceiling submits no work above it, also in a dry run and by the name
// of a class (T3).
func TestATokenSubmitsNoWorkAboveItsCeiling(t *testing.T) {
	g := newGate(t)
	_, ada := g.made(`{"user":"ada","role":"editor","tenant":"ml","priorityCeiling":100}`)
	const requests = `"resources":{"requests":{"cpu":"1"}}`
	for name, c := range map[string]struct {
		path, body string
		code       int
	}{
		"an allocation at the ceiling":     {"/namespaces/ml/allocations", `{"metadata":{"name":"at"},"spec":{"priority":100,` + requests + `}}`, 201},
		"an allocation above":              {"/namespaces/ml/allocations", `{"metadata":{"name":"over"},"spec":{"priority":101,` + requests + `}}`, 403},
		"an allocation of a class above":   {"/namespaces/ml/allocations", `{"metadata":{"name":"class"},"spec":{"priorityClass":"system-critical",` + requests + `}}`, 403},
		"a dry run of an allocation above": {"/namespaces/ml/allocations?dryRun=All", `{"metadata":{"name":"dry"},"spec":{"priority":101,` + requests + `}}`, 403},
		"a job above":                      {"/namespaces/ml/jobs", `{"metadata":{"name":"job"},"spec":{"priority":101,"template":{"spec":{` + requests + `}}}}`, 403},
		"a job below":                      {"/namespaces/ml/jobs", `{"metadata":{"name":"low"},"spec":{"priority":99,"template":{"spec":{` + requests + `}}}}`, 201},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := g.got("POST", c.path, ada, c.body)
			if code != c.code || code == 403 && !strings.Contains(text, "is above the priority ceiling 100 of the token: ask for 100 or less") {
				t.Errorf("got %d, want %d: %s", code, c.code, text)
			}
		})
	}
	// More members of a job are new work of its priority, and so is each dry run.
	if code, text := g.got("POST", "/namespaces/ml/jobs", token, `{"metadata":{"name":"urgent"},"spec":{"priorityClass":"high-priority","parallelism":1,"template":{"spec":{`+requests+`}}}}`); code != 201 {
		t.Fatal(code, text)
	}
	code, text := g.got("PATCH", "/namespaces/ml/jobs/urgent", ada, `{"spec":{"parallelism":2}}`)
	if code != 403 || !strings.Contains(text, "spec.priority: 1000 is above the priority ceiling 100 of the token") {
		t.Errorf("members of an urgent job: %d %s", code, text)
	}
	if code, text := g.got("PATCH", "/namespaces/ml/jobs/urgent", ada, `{"metadata":{"annotations":{"note":"ours"}}}`); code != 200 {
		t.Errorf("an annotation of an urgent job: %d %s", code, text)
	}
	if code, text := g.got("POST", "/namespaces/ml/allocations", token, `{"metadata":{"name":"boss"},"spec":{"priority":101,`+requests+`}}`); code != 201 {
		t.Errorf("an administrator without a ceiling: %d %s", code, text)
	}
}

// The ceilings of a namespace by role bound the priority that a caller may ask for, by
// its number, its class, in a dry run, and by more members of a job.
func TestARoleSubmitsNoWorkAboveItsCeiling(t *testing.T) {
	g := newGate(t)
	_, ada := g.made(`{"user":"ada","role":"editor","tenant":"ml"}`)
	_, tess := g.made(`{"user":"tess","role":"tenant-admin","tenant":"ml"}`)
	if code, text := g.got("POST", "/namespaces", token, `{"kind":"Namespace","metadata":{"name":"ml"},"spec":{"priorityCeiling":2000,"roleCeilings":{"editor":200,"tenant-admin":1000}}}`); code != 201 {
		t.Fatal(code, text)
	}
	const cpu = `"resources":{"requests":{"cpu":"1"}}`
	const ofEditors, ofTenantAdmins, ofAll = "200 of the role editor in namespace ml", "1000 of the role tenant-admin in namespace ml", "2000 of namespace ml"
	for name, c := range map[string]struct {
		path, token, spec, want string
	}{
		"an editor at the ceiling":            {"allocations", ada, `"priority":200,` + cpu, ""},
		"an editor above":                     {"allocations", ada, `"priority":201,` + cpu, ofEditors},
		"an editor by a class":                {"allocations", ada, `"priorityClass":"high-priority",` + cpu, ofEditors},
		"a dry run of an editor":              {"allocations?dryRun=All", ada, `"priority":201,` + cpu, ofEditors},
		"a job of an editor":                  {"jobs", ada, `"priority":201,"template":{"spec":{` + cpu + `}}`, ofEditors},
		"a job of an editor by a class":       {"jobs", ada, `"priorityClass":"system-critical","template":{"spec":{` + cpu + `}}`, ofAll},
		"a dry run of a job":                  {"jobs?dryRun=All", ada, `"priorityClass":"high-priority","template":{"spec":{` + cpu + `}}`, ofEditors},
		"a tenant-admin above the editors'":   {"allocations", tess, `"priorityClass":"high-priority",` + cpu, ""},
		"a tenant-admin above":                {"allocations", tess, `"priority":1001,` + cpu, ofTenantAdmins},
		"an admin has no ceiling of the role": {"allocations", token, `"priority":2000,` + cpu, ""},
		"an admin above the namespace's":      {"allocations", token, `"priorityClass":"system-critical",` + cpu, ofAll},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := g.got("POST", "/namespaces/ml/"+c.path, c.token, `{"metadata":{"name":"`+strings.NewReplacer(" ", "-", "'", "").Replace(name)+`"},"spec":{`+c.spec+`}}`)
			switch {
			case c.want == "" && code != 201:
				t.Errorf("%d %s", code, text)
			case c.want != "" && (code != 403 || !strings.Contains(text, "is above the priority ceiling "+c.want)):
				t.Errorf("got %d %s, want 403 with %q", code, text, c.want)
			}
		})
	}
	if code, text := g.got("POST", "/namespaces/ml/jobs", tess, `{"metadata":{"name":"urgent"},"spec":{"priority":500,"parallelism":1,"template":{"spec":{`+cpu+`}}}}`); code != 201 {
		t.Fatal(code, text)
	}
	more := func(by string) (int, string) {
		return g.got("PATCH", "/namespaces/ml/jobs/urgent", by, `{"spec":{"parallelism":2}}`)
	}
	if code, text := more(ada); code != 403 || !strings.Contains(text, "spec.priority: 500 is above the priority ceiling "+ofEditors) {
		t.Errorf("more members by an editor: %d, want 403: %s", code, text)
	}
	if code, text := more(tess); code != 200 {
		t.Errorf("more members by a tenant-admin: %d, want 200: %s", code, text)
	}
}
