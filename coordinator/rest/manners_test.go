package rest_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
)

const oneTrain = `{"metadata":{"name":"train"},"spec":{"resources":{"requests":{"cpu":"8000m","memory":"4Gi"}}}}`

// exchange sends a request with the admin's token.
func exchange(t *testing.T, h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, "/api/v1"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestAnswersAreYAMLForThoseWhoWantIt(t *testing.T) {
	h := newHandler(t)
	for name, c := range map[string]struct {
		method, path, body string
		code               int
		want               string
	}{
		"an object":     {"POST", "/namespaces/ml/allocations", oneTrain, 201, "cpu: 8000m"},
		"a list":        {"GET", "/nodes", "", 200, "kind: NodeList"},
		"a refusal":     {"GET", "/namespaces/ml/jobs/gone", "", 404, "reason: NotFound"},
		"a wrong token": {"GET", "/nodes", "", 401, "reason: Unauthorized"},
	} {
		t.Run(name, func(t *testing.T) {
			header := []string{"Accept", "application/yaml"}
			if c.code == 401 {
				header = append(header, "Authorization", "Bearer x")
			}
			w := exchange(t, h, c.method, c.path, c.body, header...)
			var document map[string]any
			if err := yaml.Unmarshal(w.Body.Bytes(), &document); err != nil {
				t.Fatal(err)
			}
			if w.Code != c.code || w.Header().Get("Content-Type") != "application/yaml" || !strings.Contains(w.Body.String(), c.want) || strings.HasPrefix(w.Body.String(), "{") {
				t.Errorf("%d %v\n%s", w.Code, w.Header(), w.Body)
			}
		})
	}
	if w := exchange(t, h, "GET", "/nodes", "", "Accept", "text/html"); w.Code != 406 || !strings.Contains(w.Body.String(), "application/json or application/yaml") {
		t.Errorf("nothing that the client takes: %d %s", w.Code, w.Body)
	}
}

func TestARequestHasAnID(t *testing.T) {
	h := newHandler(t)
	for given, want := range map[string]string{"mine-1": "mine-1", "": "", "two words": "", strings.Repeat("x", 129): ""} {
		w := exchange(t, h, "GET", "/namespaces/ml/jobs/gone", "", "X-Request-Id", given)
		var s api.Status
		if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		id := w.Header().Get("X-Request-Id")
		if id == "" || s.RequestID != id || want != "" && id != want || want == "" && id == given {
			t.Errorf("given %q: the header has %q, the refusal %q", given, id, s.RequestID)
		}
	}
}

func TestTypesThatAreNotTakenAreAnsweredWithThoseThatAre(t *testing.T) {
	h := newHandler(t)
	for kind, want := range map[string]string{"text/plain": `Content-Type \"text/plain\": send application/json or application/yaml`, "": "no Content-Type: send application/json or application/yaml"} {
		if w := exchange(t, h, "POST", "/namespaces/ml/allocations", oneTrain, "Content-Type", kind); w.Code != 415 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q: %d %s", kind, w.Code, w.Body)
		}
	}
}

func TestOptionsNamesTheMethods(t *testing.T) {
	h := newHandler(t)
	for path, want := range map[string]string{
		"/nodes/gpu-1":                     "DELETE, GET, PATCH, HEAD, OPTIONS",
		"/namespaces/ml/allocations":       "DELETE, GET, POST, HEAD, OPTIONS",
		"/namespaces/ml/allocations/train": "DELETE, GET, PATCH, HEAD, OPTIONS",
	} {
		w := exchange(t, h, "OPTIONS", path, "")
		if w.Code != 204 || w.Header().Get("Allow") != want || w.Body.Len() > 0 {
			t.Errorf("%s: %d, Allow %q, %q; want %q", path, w.Code, w.Header().Get("Allow"), w.Body, want)
		}
	}
	if w := exchange(t, h, "OPTIONS", "/nothing", ""); w.Code != 404 {
		t.Errorf("what is not there: %d", w.Code)
	}
}

func TestADeletionTakesItsOptionsAsParameters(t *testing.T) {
	for name, c := range map[string]struct {
		query, body string
		code        int
		says        string
		left        bool
	}{
		"a grace":                        {"?gracePeriodSeconds=60", "", 200, "", false},
		"a policy":                       {"?propagationPolicy=Background", "", 200, "", false},
		"a policy that there is not":     {"?propagationPolicy=Sideways", "", 422, "propagationPolicy", true},
		"a grace beyond the range":       {"?gracePeriodSeconds=90000", "", 422, "gracePeriodSeconds: 90000 is outside", true},
		"a grace that is no number":      {"?gracePeriodSeconds=soon", "", 400, "want a whole number of seconds", true},
		"a grace that the body has, too": {"?gracePeriodSeconds=60", `{"gracePeriodSeconds":60}`, 200, "", false},
		"two graces":                     {"?gracePeriodSeconds=60", `{"gracePeriodSeconds":30}`, 400, "give one of the two", true},
		"a dry run":                      {"?dryRun=All", "", 200, `"name":"train"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandler(t)
			if w := exchange(t, h, "POST", "/namespaces/ml/allocations", oneTrain); w.Code != 201 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			w := exchange(t, h, "DELETE", "/namespaces/ml/allocations/train"+c.query, c.body)
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, c.code, c.says)
			}
			after := exchange(t, h, "GET", "/namespaces/ml/allocations/train", "")
			if left := after.Code == 200 && !strings.Contains(after.Body.String(), "deletionTimestamp") && !strings.Contains(after.Body.String(), "Terminating"); left != c.left {
				t.Errorf("afterwards: %d %s", after.Code, after.Body)
			}
		})
	}
}

// Over one port: HTTP/1.1, and HTTP/2 without TLS; HEAD has no body.
func TestHTTP2IsSpokenWithoutTLSToo(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := rest.NewServer(newHandler(t), slog.New(slog.DiscardHandler))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() { _ = server.Close(); <-done })
	for want, set := range map[int]func(*http.Protocols){1: func(p *http.Protocols) { p.SetHTTP1(true) }, 2: func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }} {
		protocols := new(http.Protocols)
		set(protocols)
		transport := &http.Transport{Protocols: protocols}
		client := &http.Client{Transport: transport}
		for method, body := range map[string]bool{http.MethodGet: true, http.MethodHead: false} {
			r, err := http.NewRequestWithContext(context.Background(), method, "http://"+listener.Addr().String()+"/api/v1/nodes", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+token)
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err != nil || answer.ProtoMajor != want || answer.StatusCode != 200 || (len(text) > 0) != body || answer.ContentLength == 0 {
				t.Errorf("HTTP/%d %s: %d over HTTP/%d, %d bytes, length %d, %v", want, method, answer.StatusCode, answer.ProtoMajor, len(text), answer.ContentLength, err)
			}
		}
		transport.CloseIdleConnections()
	}
}
