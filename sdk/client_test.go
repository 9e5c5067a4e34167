package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/resttest"
)

const token = "s3cret"

// serve starts a server over two nodes of 4 CPUs; before may intercept.
func serve(t *testing.T, before func(http.ResponseWriter, *http.Request) bool) (*httptest.Server, *sdk.Client) {
	t.Helper()
	cluster := resttest.New(time.Now,
		resttest.Node{Name: "n1", CPUs: 4, Memory: 8 << 30}, resttest.Node{Name: "n2", CPUs: 4, Memory: 8 << 30})
	handler := rest.NewHandler(rest.Config{Service: cluster, Authenticator: service.StaticToken(token), Version: "v1"})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || !before(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server, connect(t, server.URL, token)
}

func connect(t *testing.T, endpoint, token string) *sdk.Client {
	t.Helper()
	client, err := sdk.NewClient(sdk.Config{Endpoint: endpoint, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func allocation(name, cpu string) *api.Allocation {
	return &api.Allocation{
		Metadata: api.ObjectMeta{Name: name, Labels: map[string]string{"app": "x"}},
		Spec:     api.AllocationSpec{Resources: api.Requirements{Requests: map[resource.Name]string{"cpu": cpu}}},
	}
}

func TestLifeOfAnAllocation(t *testing.T) {
	_, client := serve(t, nil)
	ctx, mine := t.Context(), client.Allocations("ml-team")
	made, err := mine.Create(ctx, allocation("a", "3"), sdk.CreateOptions{Wait: time.Minute})
	if err != nil || made.Status.Phase != api.Running || made.Status.Assignment.CPUs != "0-2" {
		t.Fatalf("create: %+v, %v", made, err)
	}
	confirmed := cmp.Options{ // by its agent, which is a change of its own, after the answer to create
		cmpopts.IgnoreFields(api.AllocationStatus{}, "Conditions"), cmpopts.IgnoreFields(api.ObjectMeta{}, "ResourceVersion"),
	}
	if got, err := mine.Get(ctx, "a", sdk.GetOptions{}); err != nil || cmp.Diff(made, got, confirmed) != "" {
		t.Errorf("get differs from create: %v\n%s", err, cmp.Diff(made, got, confirmed))
	}
	for name, o := range map[string]sdk.GetOptions{
		"what is there": {ResourceVersion: "0"}, "a version": {ResourceVersion: made.Metadata.ResourceVersion, Wait: time.Minute},
	} {
		if got, err := mine.Get(ctx, "a", o); err != nil || got.Metadata.UID != made.Metadata.UID {
			t.Errorf("get of %s: %+v, %v", name, got, err)
		}
	}
	if _, err := mine.Get(ctx, "a", sdk.GetOptions{ResourceVersion: "x"}); err == nil || !strings.Contains(err.Error(), `resourceVersion="x"`) {
		t.Errorf("get of resourceVersion x: %v", err)
	}
	list, err := client.Allocations("").List(ctx, sdk.ListOptions{LabelSelector: "app=x", FieldSelector: "status.phase=Running", Limit: 5, ResourceVersion: made.Metadata.ResourceVersion})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("list: %+v, %v", list, err)
	}
	why, err := mine.Explain(ctx, "a", sdk.ExplainOptions{})
	if err != nil || !strings.Contains(why.Summary, "/a runs on ") {
		t.Errorf("explain: %+v, %v", why, err)
	}
	grace := int64(30)
	gone, err := mine.Delete(ctx, "a", api.DeleteOptions{GracePeriodSeconds: &grace})
	if err != nil || *gone.Metadata.DeletionGracePeriodSeconds != grace {
		t.Errorf("delete: %+v, %v", gone, err)
	}
	if got, err := mine.Get(ctx, "a", sdk.GetOptions{}); err != nil || got.Status.Phase != api.Terminating {
		t.Errorf("get in the written grace: %+v, %v", got, err)
	}
	_, err = mine.Get(ctx, "absent", sdk.GetOptions{})
	var status *api.Status
	if !errors.As(err, &status) || status.Code != 404 || status.Reason != "NotFound" {
		t.Errorf("get of nothing: %v, want a Status 404", err)
	}
}

func TestLifeOfAJob(t *testing.T) {
	_, client := serve(t, nil)
	ctx, mine := t.Context(), client.Jobs("ml-team")
	members := int32(2)
	job := &api.Job{Metadata: api.ObjectMeta{Name: "j"}, Spec: api.JobSpec{Parallelism: &members}}
	job.Spec.Template.Spec = allocation("", "4").Spec
	job.Spec.Template.Spec.Scheduling.GangScheduling = &api.GangScheduling{}
	made, err := mine.Create(ctx, job, sdk.CreateOptions{Wait: time.Minute})
	if err != nil || made.Status.Active != 2 {
		t.Fatalf("create: %+v, %v", made, err)
	}
	if got, err := mine.Get(ctx, "j", sdk.GetOptions{Wait: time.Minute}); err != nil || got.Status.Phase != api.Running {
		t.Errorf("get: %+v, %v", got, err)
	}
	if list, err := mine.List(ctx, sdk.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("list: %+v, %v", list, err)
	}
	if why, err := mine.Explain(ctx, "j", sdk.ExplainOptions{}); err != nil || why.Fit != 2 {
		t.Errorf("explain: %+v, %v", why, err)
	}
	if status, err := mine.Cancel(ctx, "j", api.DeleteOptions{Reason: "done"}); err != nil || status.Phase != api.Cancelling {
		t.Errorf("cancel: %+v, %v", status, err)
	}
	if _, err := mine.Delete(ctx, "j", api.DeleteOptions{}); err != nil {
		t.Errorf("delete: %v", err)
	}
}

func TestNodesAreListedAndCordoned(t *testing.T) {
	_, client := serve(t, nil)
	ctx := t.Context()
	list, err := client.Nodes().List(ctx, sdk.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("list: %+v, %v", list, err)
	}
	if n, err := client.Nodes().Cordon(ctx, "n1"); err != nil || !n.Spec.Unschedulable {
		t.Errorf("cordon: %+v, %v", n, err)
	}
	if n, err := client.Nodes().Uncordon(ctx, "n1"); err != nil || n.Spec.Unschedulable {
		t.Errorf("uncordon: %+v, %v", n, err)
	}
	if n, err := client.Nodes().Get(ctx, "n2"); err != nil || n.Metadata.Name != "n2" {
		t.Errorf("get: %+v, %v", n, err)
	}
	if v, err := client.Version(ctx); err != nil || v.Version != "v1" {
		t.Errorf("version: %+v, %v", v, err)
	}
}

// TestCreateSurvivesABrokenConnection loses the first answer after the server
// acted: the repetition must find the same object, not a conflict.
func TestCreateSurvivesABrokenConnection(t *testing.T) {
	var posts atomic.Int32
	var inner http.Handler
	cluster := resttest.New(time.Now, resttest.Node{Name: "n1", CPUs: 4})
	inner = rest.NewHandler(rest.Config{Service: cluster, Authenticator: service.StaticToken(token)})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" && posts.Add(1) == 1 {
			inner.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		inner.ServeHTTP(w, r)
	}))
	defer server.Close()
	made, err := connect(t, server.URL, token).Allocations("a").Create(t.Context(), allocation("once", "1"), sdk.CreateOptions{})
	if err != nil || made.Status.Phase != api.Running || posts.Load() != 2 {
		t.Errorf("got %+v, %v after %d posts; want it running after 2", made, err, posts.Load())
	}
}

func TestRefusedCreateIsNotRepeated(t *testing.T) {
	var posts atomic.Int32
	_, client := serve(t, func(w http.ResponseWriter, r *http.Request) bool {
		posts.Add(1)
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<html>upstream\n is down</html>")
		return true
	})
	_, err := client.Allocations("a").Create(t.Context(), allocation("x", "1"), sdk.CreateOptions{})
	var status *api.Status
	want := "POST /api/v1/namespaces/a/allocations answered 502 Bad Gateway, not as a Muster server does: <html>upstream is down</html>"
	if !errors.As(err, &status) || status.Code != 502 || status.Message != want || posts.Load() != 1 {
		t.Errorf("got %v after %d posts", err, posts.Load())
	}
}

func TestContextEndsACallAtOnce(t *testing.T) {
	_, client := serve(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Nodes().List(ctx, sdk.ListOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestConnectionsAreReused(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(rest.NewHandler(rest.Config{Service: resttest.New(time.Now), Authenticator: service.StaticToken(token)}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	client := connect(t, server.URL, token)
	for range 10 {
		if _, err := client.Nodes().List(t.Context(), sdk.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections for 10 calls, want 1", n)
	}
}

func TestEndpointsThatAreRefused(t *testing.T) {
	cases := map[string]struct{ endpoint, token, want string }{
		"no scheme":                   {"127.0.0.1:8470", "", `endpoint "127.0.0.1:8470": parse "127.0.0.1:8470": first path segment in URL cannot contain colon`},
		"another scheme":              {"unix:///run/muster", "", `endpoint "unix:///run/muster": want http://HOST:PORT or https://HOST:PORT`},
		"a password in the endpoint":  {"http://u:p@127.0.0.1:1", "", `endpoint "http://u:xxxxx@127.0.0.1:1": want no user, query or fragment`},
		"a token in plain text":       {"http://192.0.2.1:8470", "t", `endpoint "http://192.0.2.1:8470": a token is sent to this machine or over https only: use https://192.0.2.1:8470`},
		"a name that sounds loopback": {"http://localhost.example:1", "t", `endpoint "http://localhost.example:1": a token is sent to this machine or over https only: use https://localhost.example:1`},
		"a token with a line break":   {"http://127.0.0.1:1", "a\nb", `the token holds a space or a character outside ASCII: was it copied whole?`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := sdk.NewClient(sdk.Config{Endpoint: c.endpoint, Token: c.token})
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	for _, fine := range []string{"http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1/", "https://muster.example"} {
		if _, err := sdk.NewClient(sdk.Config{Endpoint: fine, Token: "t"}); err != nil {
			t.Errorf("%s: %v", fine, err)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var reached atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer elsewhere.Close()
	_, client := serve(t, func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		return true
	})
	if _, err := client.Nodes().List(t.Context(), sdk.ListOptions{}); err == nil || reached.Load() {
		t.Errorf("error %v, reached %t; want an error and the other server untouched", err, reached.Load())
	}
}

func TestWarningsGoToTheHandler(t *testing.T) {
	server, _ := serve(t, nil)
	for name, c := range map[string]struct {
		hard  string
		allow bool
		want  []string
		fails bool
	}{
		"a resource that nobody hands out": {"services", false, []string{"spec.hard.services: no node hands it out, so the amount in use is always 0"}, false},
		"a typo":                           {"cpus", false, nil, true},
		"a typo that is kept":              {"cpus", true, []string{`spec.hard.cpus: no node hands it out, so the amount in use is always 0; is "cpu" meant?`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			client, err := sdk.NewClient(sdk.Config{Endpoint: server.URL, Token: token, AllowUnknownResources: c.allow, Warnings: func(code int, agent, text string) {
				if code != 299 || agent != "muster" {
					t.Errorf("got %d of %s", code, agent)
				}
				got = append(got, text)
			}})
			if err != nil {
				t.Fatal(err)
			}
			q := &api.ResourceQuota{Metadata: api.ObjectMeta{Name: fmt.Sprintf("q-%s-%v", c.hard, c.allow)}, Spec: api.ResourceQuotaSpec{Hard: map[resource.Name]string{resource.Name(c.hard): "1"}}}
			_, err = client.ResourceQuotas("ml-team").Update(t.Context(), q)
			if diff := cmp.Diff(c.want, got); (err != nil) != c.fails || diff != "" {
				t.Errorf("error %v, warnings (-want +got):\n%s", err, diff)
			}
		})
	}
}
