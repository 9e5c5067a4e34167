package tenancy

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/access"
	"github.com/musterd/muster/coordinator/follow"
	"github.com/musterd/muster/coordinator/grpcapi"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/resttest"
)

const adminToken = "0123456789abcdef0123456789abcdef"

// The words of the rival tenant. No answer to another tenant has one of them.
var foreign = []string{"quagga", "okapi", "tapir", "zebu"}

// world is a coordinator with a node of 4 GPUs and two tenants, each in the namespace of
// its name. quagga has work of each kind; ml has the token that the tests use.
type world struct {
	t    *testing.T
	url  string
	conn *grpc.ClientConn
	ml   string // the token of an editor of ml
}

// watches serves the watches of a follower with the refusals of a coordinator.
type watches struct{ *follow.Follower }

func (w watches) Watch(ctx context.Context, o objects.WatchOptions) (service.Watch, error) {
	got, err := w.Follower.Watch(ctx, o)
	if err != nil {
		return nil, gone(err)
	}
	return watch{got}, nil
}

type watch struct{ *follow.Watch }

func (w watch) Next(ctx context.Context) (objects.Changes, error) {
	c, err := w.Watch.Next(ctx)
	return c, gone(err)
}

func gone(err error) error {
	var old *objects.GoneError
	if errors.As(err, &old) {
		return api.Errorf(http.StatusGone, "%v", err)
	}
	return err
}

// open starts a coordinator with the work of both tenants.
func open(t *testing.T) *world {
	t.Helper()
	w := openEmpty(t)
	w.ml = w.token(`{"user":"ada","role":"editor","tenant":"ml"}`)
	w.must("POST", "/quotatrees", `{"kind":"QuotaTree","metadata":{"name":"company"},"spec":{"nodes":{
		"all":{"quota":{"nvidia.com/gpu":4,"cpu":100}},
		"left":{"parent":"all","quota":{"nvidia.com/gpu":1,"cpu":50}},
		"right":{"parent":"all","quota":{"nvidia.com/gpu":3,"cpu":50}}}}}`)
	w.must("POST", "/quotaforests", `{"kind":"QuotaForest","metadata":{"name":"quota"},"spec":{"trees":["company"]}}`)
	for namespace, group := range map[string]string{"ml": "left", "quagga": "right"} {
		w.must("POST", "/tenants", `{"kind":"Tenant","metadata":{"name":"`+namespace+`"},"spec":{}}`)
		w.must("POST", "/namespaces", `{"kind":"Namespace","metadata":{"name":"`+namespace+`"},"spec":{"tenant":"`+namespace+`"}}`)
		w.must("POST", "/quotabindings", `{"kind":"QuotaBinding","metadata":{"name":"`+namespace+`"},"spec":{"forest":"quota","groups":{"company":"`+group+`"}}}`)
	}
	const gpu = `"resources":{"requests":{"nvidia.com/gpu":"1","cpu":"1"}}`
	w.must("POST", "/namespaces/quagga/allocations", `{"metadata":{"name":"okapi","labels":{"zebu":"zebu"}},"spec":{`+gpu+`}}`)
	w.must("POST", "/namespaces/quagga/jobs", `{"metadata":{"name":"tapir"},"spec":{"queue":"zebu","parallelism":2,"template":{"spec":{`+gpu+`}}}}`)
	w.must("POST", "/namespaces/quagga/resourcequotas", `{"kind":"ResourceQuota","metadata":{"name":"zebu"},"spec":{"hard":{"requests.cpu":"64"}}}`)
	w.must("POST", "/namespaces/ml/allocations", `{"metadata":{"name":"mine"},"spec":{`+gpu+`}}`)
	w.must("POST", "/namespaces/ml/allocations", `{"metadata":{"name":"waits"},"spec":{"priority":500,"preemptionPolicy":"Never","resources":{"requests":{"cpu":"14"}}}}`)
	w.must("POST", "/namespaces/ml/jobs", `{"metadata":{"name":"myjob"},"spec":{"parallelism":1,"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}}}`)
	w.must("POST", "/namespaces/ml/resourcequotas", `{"kind":"ResourceQuota","metadata":{"name":"limit"},"spec":{"hard":{"requests.cpu":"64"}}}`)
	return w
}

// openEmpty starts a coordinator without work.
func openEmpty(t *testing.T) *world {
	t.Helper()
	cluster := resttest.New(time.Now, resttest.Node{Name: "n1", CPUs: 16, Memory: 64 << 30, GPUs: 4})
	return serve(t, cluster, cluster)
}

// serve starts a coordinator that follows the store of a cluster and has a service
// behind its doors.
func serve(t *testing.T, cluster *resttest.Cluster, behind service.Service) *world {
	t.Helper()
	rights, quiet := access.NewTable(nil), slog.New(slog.DiscardHandler)
	f := follow.New(follow.Options{
		Store: cluster.Store(), Log: quiet, Check: time.Second, Leads: func() bool { return false }, Rights: rights,
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
	callers := access.Authenticator{Table: rights, Other: service.StaticToken(adminToken)}
	public := &grpcapi.API{Service: behind, Watches: watches{f}, Authenticator: callers, AnswerBy: rest.AnswerBy}
	handler := rest.NewHandler(rest.Config{
		Service: behind, Watches: watches{f}, Authenticator: callers,
		Credentials: &access.Keeper{Store: cluster.Store(), Table: rights, Settle: settle, Logger: quiet},
	})
	server := httptest.NewUnstartedServer(nil)
	server.Config = rest.NewServer(rest.WithGRPC(public.NewServer(), handler), quiet)
	server.Start()
	conn, err := grpc.NewClient("passthrough:///"+server.Listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, a string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", a)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.CloseClientConnections()
		server.Close()
		stop()
		<-done
	})
	return &world{t: t, url: server.URL + "/api/v1", conn: conn}
}

// answer is the answer of REST to a request.
type answer struct {
	code   int
	text   string
	header http.Header
}

// ask sends a request as the bearer of a token. Of a watch it reads the objects that
// are there.
func (w *world) ask(method, path, bearer, body string, header ...string) answer {
	w.t.Helper()
	target := w.url + path
	if strings.HasPrefix(path, "//") { // outside of the API
		target = strings.TrimSuffix(w.url, "/api/v1") + path[1:]
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	switch {
	case method == http.MethodPatch:
		r.Header.Set("Content-Type", "application/merge-patch+json")
	case body != "":
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := (&http.Client{Transport: &http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}, DisableKeepAlives: true}}).Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	if strings.Contains(path, "watch=true") && got.StatusCode == http.StatusOK {
		return answer{got.StatusCode, untilBookmark(w.t, got.Body), got.Header}
	}
	text, err := io.ReadAll(got.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{got.StatusCode, string(text), got.Header}
}

// lastChange is the label of the change up to which a watch is read.
const lastChange = "last-change"

// untilBookmark reads the events of a watch up to the first bookmark, or to lastChange.
func untilBookmark(t *testing.T, body io.Reader) string {
	t.Helper()
	var all strings.Builder
	one := make([]byte, 4096)
	for {
		n, err := body.Read(one)
		all.Write(one[:n])
		if strings.Contains(all.String(), `"BOOKMARK"`) || strings.Contains(all.String(), `"ERROR"`) || strings.Contains(all.String(), lastChange) {
			return all.String()
		}
		if err != nil {
			t.Fatalf("the watch ends before its first bookmark: %v\n%s", err, all.String())
		}
	}
}

// must sends a request as the administrator.
func (w *world) must(method, path, body string, header ...string) string {
	w.t.Helper()
	got := w.ask(method, path, adminToken, body, header...)
	if got.code/100 != 2 {
		w.t.Fatalf("%s %s: %d %s", method, path, got.code, got.text)
	}
	return got.text
}

// token makes an access token.
func (w *world) token(spec string) string {
	w.t.Helper()
	var made api.AccessToken
	if err := json.Unmarshal([]byte(w.must("POST", "/tokens", `{"spec":`+spec+`}`)), &made); err != nil {
		w.t.Fatal(err)
	}
	return made.Status.Token
}

// bearing is the context of a call.
func (w *world) bearing(token string) context.Context {
	return metadata.AppendToOutgoingContext(w.t.Context(), "authorization", "Bearer "+token)
}

// leaks are the words of the rival tenant in a text.
func leaks(text string) (all []string) {
	for _, word := range foreign {
		if strings.Contains(strings.ToLower(text), word) {
			all = append(all, word)
		}
	}
	return all
}
