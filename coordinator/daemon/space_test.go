package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/daemon"
	"github.com/musterd/muster/coordinator/store/etcd"
	"github.com/musterd/muster/test/etcdcluster"
)

// answerLimit is the time in which each request has an answer, whatever the store does.
const answerLimit = 3 * time.Second

// onStore is a coordinator on an etcd.
type onStore struct {
	t *testing.T
	d *daemon.Daemon
}

// ask sends a request; the status of a success is zero but for the code.
func (s onStore) ask(method, path, body string) (status api.Status, after string, text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), answerLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.d.RESTAddr()+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+adminSecret)
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return api.Status{Message: err.Error()}, "", ""
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= 400 {
		err = json.Unmarshal(content, &status)
	}
	if err != nil {
		s.t.Errorf("%s %s: %v", method, path, err)
	}
	status.Code = answer.StatusCode
	return status, answer.Header.Get("Retry-After"), string(content)
}

// made sends a request, which has to succeed.
func (s onStore) made(method, path, body string) string {
	s.t.Helper()
	status, _, text := s.ask(method, path, body)
	if status.Code >= 300 || status.Code == 0 {
		s.t.Fatalf("%s %s: %d %s", method, path, status.Code, status.Message)
	}
	return text
}

// serveOn starts a coordinator on an etcd, and waits for the lead.
func serveOn(t *testing.T, members *etcdcluster.Cluster, of etcd.Config) onStore {
	of.Endpoints = members.Endpoints()
	d, err := daemon.New(t.Context(), daemon.Config{
		ID: "c1", Cluster: "test", DataDir: t.TempDir(), Etcd: of,
		RESTListen: "127.0.0.1:0", GRPCListen: "127.0.0.1:0", SerfBind: "127.0.0.1:0", CapacityBind: "127.0.0.1:0",
		TLS:        &daemon.TLSConfig{Dir: filepath.Join(t.TempDir(), "tls")},
		AdminToken: newToken(t, adminSecret), LeaseTTL: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	s := onStore{t, d}
	for range 600 {
		if _, _, text := s.ask(http.MethodGet, "/readyz", ""); strings.Contains(text, `"role":"leader"`) {
			return s
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Fatal("the coordinator does not lead after 30 s")
	return s
}

const inDefault = "/api/v1/namespaces/default"

// contents makes an object for each of storeRequests.
func (s onStore) contents() (token string, invited api.BootstrapToken) {
	s.t.Helper()
	for _, name := range []string{"a", "b", "c"} {
		s.made("POST", inDefault+"/allocations", `{"metadata":{"name":"`+name+`"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`)
	}
	for _, name := range []string{"ja", "jb", "jc", "jd", "over"} {
		s.made("POST", inDefault+"/jobs", `{"metadata":{"name":"`+name+`"},"spec":{"completions":2,"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}}}`)
	}
	s.made("POST", inDefault+"/jobs/over/cancel", "{}")
	for _, name := range []string{"n1", "n2", "n3"} {
		s.made("POST", "/api/v1/nodes", `{"metadata":{"name":"`+name+`"}}`)
		s.made("PUT", inDefault+"/resourcequotas/q"+name, `{"metadata":{"name":"q`+name+`"},"spec":{"hard":{"cpu":"100"}}}`)
	}
	for _, name := range []string{"d1", "d2"} {
		s.made("POST", inDefault+"/allocations", `{"metadata":{"name":"`+name+`","labels":{"group":"d"}},"spec":{"resources":{"requests":{"cpu":"1"}}}}`)
	}
	s.made("POST", "/api/v1/tenants", `{"metadata":{"name":"t1"}}`)
	s.made("POST", "/api/v1/namespaces", `{"metadata":{"name":"s1"},"spec":{"tenant":"t1"}}`)
	s.made("POST", "/api/v1/tenants", `{"metadata":{"name":"t2"}}`)
	s.made("POST", "/api/v1/priorityclasses", `{"metadata":{"name":"p1"},"spec":{"value":7}}`)
	s.made("POST", "/api/v1/resources", `{"metadata":{"name":"example.com/r1"},"spec":{}}`)
	s.made("POST", "/api/v1/quotatrees", `{"metadata":{"name":"spare"},"spec":{"nodes":{"all":{"quota":{"cpu":1}}}}}`)
	s.made("POST", "/api/v1/rolebindings", `{"metadata":{"name":"r1"},"spec":{"role":"viewer","subjects":[{"kind":"User","name":"ann"}]}}`)
	s.made("POST", "/api/v1/nodes/n1/ban", "{}")
	s.made("PUT", "/api/v1/queues/q1", `{"metadata":{"name":"q1"},"spec":{}}`)
	var made api.AccessToken
	if err := json.Unmarshal([]byte(s.made("POST", "/api/v1/tokens", `{"spec":{"user":"bob","role":"viewer"}}`)), &made); err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(s.made("POST", "/api/v1/bootstraptokens", `{"spec":{"nodes":"n*"}}`)), &invited); err != nil {
		s.t.Fatal(err)
	}
	return made.Metadata.Name, invited
}

// storeRequest is a request, and the codes of its answers.
type storeRequest struct {
	method, path, body string
	// full is the code where the store has no space: 503, or a success.
	full int
	// unasked: the answer does not need the store.
	unasked bool
}

func storeRequests(token, invited string) []storeRequest {
	const one = `{"metadata":{"name":"new"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`
	const label = `{"metadata":{"labels":{"x":"y"}}}`
	return []storeRequest{
		{"GET", inDefault + "/allocations/a", "", 200, false},
		{"GET", inDefault + "/allocations", "", 200, false},
		{"GET", "/api/v1/nodes", "", 200, false},
		{"GET", "/api/v1/tokens", "", 200, false},
		{"POST", inDefault + "/allocations", one, 503, false},
		{"POST", inDefault + "/jobs", `{"metadata":{"name":"new"},"spec":{"completions":2,"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}}}`, 503, false},
		{"PATCH", inDefault + "/allocations/a", label, 503, false},
		{"PATCH", inDefault + "/jobs/ja", label, 503, false},
		{"PATCH", inDefault + "/jobs/ja", `{"spec":{"suspend":true}}`, 503, false},
		{"POST", inDefault + "/jobs/ja/cancel", "{}", 503, false},
		{"DELETE", inDefault + "/allocations/b", "", 200, false},
		{"DELETE", inDefault + "/jobs/jb", "", 200, false},
		{"DELETE", inDefault + "/jobs/over", "", 200, false},
		{"POST", "/api/v1/nodes/n1/drain", "{}", 503, false},
		{"PATCH", "/api/v1/nodes/n1", `{"spec":{"unschedulable":true}}`, 503, false},
		{"POST", "/api/v1/nodes", `{"metadata":{"name":"n9"}}`, 503, false},
		{"DELETE", "/api/v1/nodes/n2", "", 200, false},
		{"PUT", inDefault + "/resourcequotas/qn1", `{"metadata":{"name":"qn1"},"spec":{"hard":{"cpu":"101"}}}`, 503, false},
		{"DELETE", inDefault + "/resourcequotas/qn2", "", 200, false},
		{"DELETE", "/api/v1/queues/q1", "", 200, false},
		{"PUT", "/api/v1/queues/q2", `{"metadata":{"name":"q2"},"spec":{}}`, 503, false},
		{"POST", "/api/v1/tokens", `{"spec":{"user":"bob","role":"viewer"}}`, 503, false},
		{"POST", "/api/v1/tokens/" + token + "/rotate", "{}", 503, false},
		{"DELETE", "/api/v1/tokens/" + token, "", 200, false},
		{"GET", inDefault + "/allocations/a/explain", "", 200, true},
		{"GET", inDefault + "/jobs/ja/status", "", 200, false},
		{"GET", "/api/v1/whoami", "", 200, true},
		{"GET", "/api/v1/coordinators", "", 200, true},
		{"GET", "/api/v1/audit", "", 200, false},
		{"GET", "/api/v1/events", "", 200, false},
		{"GET", "/api/v1/metrics/queues", "", 200, true},
		{"DELETE", inDefault + "/allocations?labelSelector=group%3Dd", "", 200, false},
		{"POST", inDefault + "/jobs/ja/boost", `{"newPriority":5,"duration":"1h"}`, 503, false},
		{"POST", "/api/v1/tenants", `{"metadata":{"name":"t3"}}`, 503, false},
		{"DELETE", "/api/v1/namespaces/s1", "", 200, false},
		{"DELETE", "/api/v1/tenants/t2", "", 200, false},
		{"DELETE", "/api/v1/priorityclasses/p1", "", 200, false},
		{"DELETE", "/api/v1/resources/example.com/r1", "", 200, false},
		{"DELETE", "/api/v1/rolebindings/r1", "", 200, false},
		{"POST", "/api/v1/rolebindings", `{"metadata":{"name":"r2"},"spec":{"role":"viewer","subjects":[{"kind":"User","name":"ann"}]}}`, 503, false},
		{"DELETE", "/api/v1/bootstraptokens/" + invited, "", 200, false},
		{"POST", "/api/v1/bootstraptokens", `{"spec":{"nodes":"n*"}}`, 503, false},
		{"DELETE", "/api/v1/nodes/n1/ban", "", 503, false}, // writes a decision
		{"POST", "/api/v1/nodes/n4/ban", "{}", 503, false},
		{"POST", "/api/v1/authorities", "", 503, false},
		{"DELETE", "/api/v1/quotatrees/spare", "", 200, false},
		{"POST", "/api/v1/quotatrees", `{"metadata":{"name":"other"},"spec":{"nodes":{"all":{"quota":{"cpu":1}}}}}`, 503, false},
		{"PATCH", "/api/v1/quota", `{"mode":"Maintenance","reason":"x"}`, 503, false},
		{"POST", inDefault + "/allocations?dryRun=All", one, 200, true},
	}
}

// judge compares an answer; a 503 has a reason, a time for the next try and no key.
func (s onStore) judge(r storeRequest, code int, reason, says string) {
	s.t.Helper()
	status, after, _ := s.ask(r.method, r.path, r.body)
	switch {
	case status.Code != code:
		s.t.Errorf("%s %s: %d %s %q, want %d within %v", r.method, r.path, status.Code, status.Reason, status.Message, code, answerLimit)
	case code == http.StatusServiceUnavailable && (status.Reason != reason && (reason != api.StoreNotAnswering || status.Reason != api.LeaderLost) || !strings.Contains(status.Message, says) || after == "" || strings.Contains(status.Message, "/registry")):
		s.t.Errorf("%s %s: %s, Retry-After %q, %q; want %s with %q, a Retry-After and no key of the store", r.method, r.path, status.Reason, after, status.Message, reason, says)
	}
}

// objectOf is the path of the object of a request, without a verb:
// /api/v1/KIND/NAME or /api/v1/namespaces/NAMESPACE/KIND/NAME.
func objectOf(path string) string {
	parts, named := strings.Split(path, "/"), 5
	if len(parts) > 3 && parts[3] == "namespaces" {
		named = 7
	}
	return strings.Join(parts[:min(named, len(parts))], "/")
}

// judgeAll judges the requests about different objects at the same time, and apart from these
// the requests that do not need the store: after some seconds the leader gives up its office.
func (s onStore) judgeAll(all []storeRequest, code func(storeRequest) int, reason, says string) {
	s.t.Helper()
	objects := map[string][]storeRequest{}
	for _, r := range all {
		object := objectOf(r.path)
		if r.unasked {
			object = r.method + " " + r.path
		}
		objects[object] = append(objects[object], r)
	}
	var wg sync.WaitGroup
	for _, requests := range objects {
		wg.Go(func() {
			for _, r := range requests {
				s.judge(r, code(r), reason, says)
			}
		})
	}
	wg.Wait()
}

// TestAStoreWithoutSpaceIsNamed: each request has an answer in time with the true reason,
// deletions are done, and all is well again once there is space.
func TestAStoreWithoutSpaceIsNamed(t *testing.T) {
	members := etcdcluster.Start(t, etcdcluster.Options{Members: 1, QuotaBytes: 16 << 20})
	s := serveOn(t, members, etcd.Config{})
	token, invited := s.contents()
	admin := members.Admin()
	for i := 0; ; i++ { // live keys alone exceed the quota
		if _, err := admin.Put(t.Context(), fmt.Sprint("/registry/filler/", i), strings.Repeat("x", 1<<20)); errors.Is(err, rpctypes.ErrNoSpace) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	s.enrols(t, invited, "out of space")
	s.judgeAll(storeRequests(token, invited.Metadata.Name), func(r storeRequest) int { return r.full }, api.StoreOutOfSpace, "out of space")
	s.judgeCalls(t, func(c storeCall) int { return c.full }, api.StoreOutOfSpace)
	s.judge(storeRequest{method: "GET", path: "/readyz"}, 503, api.StoreOutOfSpace, "out of space")
	s.judge(storeRequest{method: "GET", path: "/readyz?exclude=store"}, 200, "", "")
	members.SetQuotaBytes(64 << 20)
	if alarms, err := admin.AlarmList(t.Context()); err != nil {
		t.Fatal(err)
	} else {
		for _, a := range alarms.Alarms {
			_, _ = admin.AlarmDisarm(t.Context(), (*clientv3.AlarmMember)(a))
		}
	}
	s.awaitReady()
	s.made("POST", inDefault+"/allocations", `{"metadata":{"name":"after"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`)
}

// awaitReady waits until the store has no fault any more.
func (s onStore) awaitReady() {
	s.t.Helper()
	var last api.Status
	for range 200 {
		if last, _, _ = s.ask("GET", "/readyz", ""); last.Code == 200 {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
	s.t.Errorf("/readyz with a store that is well again: %d %s", last.Code, last.Message)
}
