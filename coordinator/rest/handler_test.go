package rest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/resttest"
)

const small = `{"metadata":{"name":"%s"},"spec":{"resources":{"requests":{"cpu":"2","memory":"1Gi"}}}}`

// serve starts a real server on a loopback port.
func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.Config = rest.NewServer(h, slog.New(slog.DiscardHandler))
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func request(t *testing.T, s *httptest.Server, method, path, body string) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, got
}

func TestAnnouncedLargeBodyIsRefusedUnread(t *testing.T) {
	s := serve(t, newHandler(t))
	connection, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	// Ten megabytes are announced and none is sent: the answer must come anyway.
	fmt.Fprintf(connection, "POST /api/v1/namespaces/a/allocations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 10000000\r\n\r\n", token)
	answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var status api.Status
	if err := json.NewDecoder(answer.Body).Decode(&status); err != nil {
		t.Fatal(err)
	}
	want := "the body is larger than the limit of 1048576 bytes"
	if answer.StatusCode != 413 || status.Message != want || !answer.Close {
		t.Errorf("got %d %q, close %t; want 413 %q and a closed connection", answer.StatusCode, status.Message, answer.Close, want)
	}
}

func TestUnannouncedLargeBodyIsCutOff(t *testing.T) {
	r := httptest.NewRequest("POST", "/api/v1/namespaces/a/allocations", io.MultiReader(strings.NewReader(strings.Repeat(" ", 2<<20))))
	r.ContentLength = -1
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	newHandler(t).ServeHTTP(recorder, r)
	if recorder.Code != 413 {
		t.Errorf("got %d %s, want 413", recorder.Code, recorder.Body)
	}
}

func TestBodyThatNeverArrivesIsRefused(t *testing.T) {
	s := serve(t, checkedHandler(t, rest.Config{
		Service: resttest.New(time.Now), Authenticator: service.StaticToken(token), BodyTimeout: 20 * time.Millisecond,
	}))
	connection, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	fmt.Fprintf(connection, "POST /api/v1/namespaces/a/allocations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{", token)
	answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != 400 {
		t.Errorf("got %d, want 400", answer.StatusCode)
	}
}

func TestWaitEndsWhenTheAllocationRuns(t *testing.T) {
	s := serve(t, checkedHandler(t, rest.Config{
		Service:       resttest.New(time.Now, resttest.Node{Name: "n", CPUs: 2, Memory: 4 << 30}),
		Authenticator: service.StaticToken(token),
	}))
	const path = "/api/v1/namespaces/a/allocations"
	if code, body := request(t, s, "POST", path, fmt.Sprintf(small, "first")); code != 201 {
		t.Fatalf("%d %s", code, body)
	}
	if code, body := request(t, s, "POST", path, fmt.Sprintf(small, "second")); code != 201 || !bytes.Contains(body, []byte(`"Pending"`)) {
		t.Fatalf("%d %s", code, body)
	}
	phase := make(chan api.Phase, 1) // one answer
	go func() {
		_, body := request(t, s, "GET", path+"/second?wait=10m", "")
		var a api.Allocation
		_ = json.Unmarshal(body, &a)
		phase <- a.Status.Phase
	}()
	if code, body := request(t, s, "DELETE", path+"/first", ""); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	if got := <-phase; got != api.Running {
		t.Errorf("the waiting get answered phase %q, want Running", got)
	}
}

// broken is a service whose gets fail in the ways a service should not.
type broken struct{ *resttest.Cluster }

func (broken) GetAllocation(_ context.Context, _, name string, _ time.Duration) (*api.Allocation, error) {
	switch name {
	case "panic":
		panic("the shelf fell down")
	case "wrapped":
		return nil, fmt.Errorf("asking the store: %w", api.Errorf(503, "the store does not answer"))
	}
	return nil, errors.New("secret detail")
}

func TestFaultsOfTheServiceAreAnsweredAndLogged(t *testing.T) {
	var log bytes.Buffer
	h := checkedHandler(t, rest.Config{
		Service: broken{resttest.New(time.Now)}, Authenticator: service.StaticToken(token), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	cases := map[string]struct {
		code    int
		message string
		logged  string
	}{
		"panic":   {500, "GET /api/v1/namespaces/a/allocations/panic failed inside the coordinator; its log says why", "the shelf fell down"},
		"error":   {500, "GET /api/v1/namespaces/a/allocations/error failed inside the coordinator; its log says why", "secret detail"},
		"wrapped": {503, "the store does not answer", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			log.Reset()
			r := httptest.NewRequest("GET", "/api/v1/namespaces/a/allocations/"+name, nil)
			r.Header.Set("Authorization", "Bearer "+token)
			recorder := httptest.NewRecorder()
			h.ServeHTTP(recorder, r)
			var status api.Status
			if err := json.Unmarshal(recorder.Body.Bytes(), &status); err != nil {
				t.Fatal(err)
			}
			if recorder.Code != c.code || status.Code != c.code || status.Message != c.message {
				t.Errorf("got %d %+v, want %d %q", recorder.Code, status, c.code, c.message)
			}
			if !strings.Contains(log.String(), c.logged) {
				t.Errorf("log %q does not say %q", &log, c.logged)
			}
		})
	}
}

// tenants lets the bearer of a token T in as tenant T.
type tenants struct{}

func (tenants) Authenticate(_ context.Context, token string) (service.Principal, error) {
	return service.Principal{Name: token, Tenant: "ml-team"}, nil
}

func TestTenantsAreHeldWithinTheirNamespace(t *testing.T) {
	h := checkedHandler(t, rest.Config{
		Service: resttest.New(time.Now, resttest.Node{Name: "n", CPUs: 1}), Authenticator: tenants{},
		Access: service.Access{TenantOf: func(namespace string) resource.TenantID {
			return resource.TenantID(strings.TrimSuffix(namespace, "-dev")) // as namespaces.ml-team-dev.tenant would say
		}},
	})
	cases := map[string]struct {
		method, path string
		want         int
	}{
		"own namespace": {"GET", "/api/v1/namespaces/ml-team/allocations", 200},
		"a namespace that is the tenant's by the configuration": {"GET", "/api/v1/namespaces/ml-team-dev/allocations", 200},
		"another's namespace":      {"GET", "/api/v1/namespaces/other/allocations", 404},
		"all namespaces":           {"GET", "/api/v1/allocations", 403},
		"nodes may be seen":        {"GET", "/api/v1/nodes", 200},
		"itself":                   {"GET", "/api/v1/tenants/ml-team", 404}, // it has no object
		"another tenant":           {"GET", "/api/v1/tenants/other", 404},
		"a namespace of its own":   {"GET", "/api/v1/namespaces/ml-team-dev", 404},
		"a namespace of another":   {"GET", "/api/v1/namespaces/other", 404},
		"the mode of quota":        {"GET", "/api/v1/quota", 200},
		"nodes may not be changed": {"PATCH", "/api/v1/nodes/n", 403},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, c.path, nil)
			r.Header.Set("Authorization", "Bearer someone")
			recorder := httptest.NewRecorder()
			h.ServeHTTP(recorder, r)
			if recorder.Code != c.want {
				t.Errorf("got %d %s, want %d", recorder.Code, recorder.Body, c.want)
			}
		})
	}
}

// adminRoutes are those that an editor may not use, even on the own namespace.
func adminRoutes() []string {
	routes := []string{
		"GET /allocations", "GET /jobs",
		"PATCH /nodes/n", "DELETE /nodes/n", "POST /nodes/n/approve", "POST /nodes/n/fence", "POST /nodes/n/reconcile", "POST /nodes/n/drain",
		"POST /namespaces/ml-team/preemptions",
		"POST /bootstraptokens", "GET /bootstraptokens", "DELETE /bootstraptokens/t",
		"POST /authorities", "GET /authorities", "DELETE /authorities/a",
		"POST /operatorcertificates", "GET /operatorcertificates", "DELETE /operatorcertificates/o",
		"GET /nodebans", "POST /nodes/n/ban", "DELETE /nodes/n/ban",
		"GET /resourcequotas", "GET /quotabindings", "POST /quotatrees/t/reclaim", "PATCH /quota", "GET /featurelevel", "PATCH /featurelevel",
		"POST /tokens", "GET /tokens", "GET /tokens/t", "DELETE /tokens/t", "POST /tokens/t/rotate", "GET /rolebindings", "GET /rolebindings/b",
	}
	for _, one := range []string{"/namespaces/ml-team/resourcequotas/x", "/quotatrees/x", "/quotaforests/x", "/quotabindings/ml-team", "/tenants/ml-team", "/namespaces/ml-team", "/rolebindings/x"} {
		routes = append(routes, "POST "+path.Dir(one), "PUT "+one, "PATCH "+one, "DELETE "+one)
	}
	return routes
}

// TestAdminRoutesRefuseTenants: a tenant is refused before anything is read of
// its request; an admin gets further, which shows that the route is there.
func TestAdminRoutesRefuseTenants(t *testing.T) {
	ask := func(a service.Authenticator, route string) *httptest.ResponseRecorder {
		h := checkedHandler(t, rest.Config{Service: resttest.New(time.Now, resttest.Node{Name: "n", CPUs: 1}), Authenticator: a})
		method, path, _ := strings.Cut(route, " ")
		r := httptest.NewRequest(method, "/api/v1"+path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, r)
		return recorder
	}
	for _, route := range adminRoutes() {
		t.Run(route, func(t *testing.T) {
			if got := ask(tenants{}, route); got.Code != 403 || !strings.Contains(got.Body.String(), "want the role") && !strings.Contains(got.Body.String(), "role in the whole cluster") {
				t.Errorf("a tenant gets %d %s", got.Code, got.Body)
			}
			if got := ask(service.StaticToken(token), route); got.Code == 403 || strings.Contains(got.Body.String(), "nothing is served") {
				t.Errorf("an admin gets %d %s", got.Code, got.Body)
			}
		})
	}
}

func TestEmptyTokenLetsNobodyIn(t *testing.T) {
	for _, given := range []string{"", "x"} {
		if _, err := service.StaticToken("").Authenticate(t.Context(), given); err == nil {
			t.Errorf("token %q was let in", given)
		}
	}
}

func TestNotReadyIs503AndVersionIsTold(t *testing.T) {
	h := checkedHandler(t, rest.Config{
		Service: resttest.New(time.Now), Authenticator: service.StaticToken(token), Version: "v1.2.3",
		Ready: func(context.Context) error { return errors.New("no leader yet") },
	})
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequest("GET", "/readyz", nil))
	if recorder.Code != 503 || !strings.Contains(recorder.Body.String(), "not ready: no leader yet") {
		t.Errorf("got %d %s", recorder.Code, recorder.Body)
	}
	recorder = httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequest("GET", "/version", nil))
	if recorder.Code != 200 || !strings.Contains(recorder.Body.String(), `"version":"v1.2.3"`) {
		t.Errorf("got %d %s", recorder.Code, recorder.Body)
	}
}

func TestRequestsAreCountedByRoute(t *testing.T) {
	registry := prometheus.NewRegistry()
	h := checkedHandler(t, rest.Config{Service: resttest.New(time.Now), Authenticator: service.StaticToken(token), Metrics: registry})
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/api/v1/namespaces/secret-team/jobs", nil))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, f := range families {
		text.WriteString(f.String())
	}
	if !strings.Contains(text.String(), `value:"401"`) || strings.Contains(text.String(), "secret-team") {
		t.Errorf("want a count of 401 and no namespace:\n%s", &text)
	}
}

// instant is a service whose creates cost nothing, so that the benchmark
// measures the edge alone.
type instant struct {
	*resttest.Cluster
	answer api.Allocation
}

func (i *instant) CreateAllocation(_ context.Context, _ service.Create, a *api.Allocation) (*api.Allocation, error) {
	a.Metadata.UID, a.Metadata.ResourceVersion, a.Status = "alloc-1", "1", i.answer.Status
	return a, nil
}

// BenchmarkPost measures the CPU of one POST within the handler: routing,
// authentication, reading, decoding, validating and encoding.
func BenchmarkPost(b *testing.B) {
	cluster := &instant{Cluster: resttest.New(time.Now)}
	cluster.answer.Status = api.AllocationStatus{
		Phase: api.Running, NodeID: "node-1", NodeName: "node-1", StartTime: "2024-01-15T10:30:05Z",
		Conditions: []api.Condition{{Type: "Scheduled", Status: "True"}, {Type: "Ready", Status: "True"}},
		Assignment: &api.AssignmentStatus{CPUs: "0-7", NUMANodes: []int{0}, GPUs: []api.GPUStatus{{UUID: "GPU-1", Milli: 1000}}},
	}
	h := rest.NewHandler(rest.Config{Service: cluster, Authenticator: service.StaticToken(token), Metrics: prometheus.NewRegistry()})
	body := []byte(`{"metadata":{"name":"train","labels":{"app":"x"}},"spec":{"resources":{"requests":{"cpu":"8","memory":"32Gi","nvidia.com/gpu":"4"}},"priority":100}}`)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", "/api/v1/namespaces/default/allocations?wait=10s", bytes.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, r)
		if recorder.Code != 201 {
			b.Fatal(recorder.Code, recorder.Body)
		}
	}
}

// TestATenantListsItselfAndItsNamespaces: lists and watches show a tenant its own
// objects, and nothing of others.
func TestATenantListsItselfAndItsNamespaces(t *testing.T) {
	cluster := resttest.New(time.Now, resttest.Node{Name: "n", CPUs: 1})
	for _, tenant := range []string{"ml-team", "other"} {
		if _, err := cluster.PutTenant(t.Context(), &api.Tenant{Metadata: api.ObjectMeta{Name: tenant}}, true); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{tenant, tenant + "-dev"} {
			n := &api.Namespace{Metadata: api.ObjectMeta{Name: name}, Spec: api.NamespaceSpec{Tenant: tenant}}
			if name == tenant {
				n.Spec.Tenant = "" // its own by its name
			}
			if _, err := cluster.PutNamespace(t.Context(), n, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	h := rest.NewHandler(rest.Config{Service: cluster, Authenticator: tenants{}})
	for path, want := range map[string][]string{
		"/tenants": {"ml-team"}, "/namespaces": {"ml-team", "ml-team-dev"}, "/namespaces?limit=1": {"ml-team"},
		"/namespaces?fieldSelector=spec.tenant%3Dother": nil, "/tenants?fieldSelector=metadata.name%3Dother": nil,
	} {
		r := httptest.NewRequest("GET", "/api/v1"+path, nil)
		r.Header.Set("Authorization", "Bearer someone")
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, r)
		var list struct {
			Items []struct{ Metadata api.ObjectMeta }
		}
		if err := json.Unmarshal(recorder.Body.Bytes(), &list); err != nil {
			t.Fatalf("%s: %v: %s", path, err, recorder.Body)
		}
		var names []string
		for _, item := range list.Items {
			names = append(names, item.Metadata.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}
