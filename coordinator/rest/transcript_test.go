package rest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
)

const token = "s3cret"

// newHandler serves two GPU nodes and a small one without.
func newHandler(tb testing.TB) http.Handler {
	tb.Helper()
	now := func() time.Time { return time.Date(2024, 1, 15, 10, 30, 0, 0, time.UTC) }
	cluster := resttest.New(now,
		resttest.Node{Name: "gpu-1", CPUs: 16, Memory: 64 << 30, GPUs: 4, Labels: map[string]string{"zone": "a"}},
		resttest.Node{Name: "gpu-2", CPUs: 16, Memory: 64 << 30, GPUs: 4, Labels: map[string]string{"zone": "b"}},
		resttest.Node{Name: "small", CPUs: 2, Memory: 4 << 30},
	)
	return checkedHandler(tb, rest.Config{Service: cluster, Authenticator: service.StaticToken(token), Version: "v0.0.0-test", Notices: cluster.Notices})
}

// TestTranscripts replays requests against one handler per file. Each request
// carries the token and the JSON content type unless it sets others; a header
// with an empty value is left out. Rewrite with -rewrite.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		handler := newHandler(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "http" {
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, parseRequest(t, d.Input))
			return show(t, recorder)
		})
	})
}

func parseRequest(t *testing.T, text string) *http.Request {
	t.Helper()
	head, body, _ := strings.Cut(text, "\n\n")
	lines := bufio.NewScanner(strings.NewReader(head))
	lines.Scan()
	method, target, _ := strings.Cut(lines.Text(), " ")
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		r.Header.Del(name)
		if value = strings.TrimSpace(value); value != "" {
			r.Header.Set(name, value)
		}
	}
	return r
}

func show(t *testing.T, recorder *httptest.ResponseRecorder) string {
	t.Helper()
	var out bytes.Buffer
	fmt.Fprintf(&out, "%d %s\n", recorder.Code, http.StatusText(recorder.Code))
	for _, name := range []string{"Allow", "Warning", "Www-Authenticate"} {
		if v := recorder.Header().Get(name); v != "" {
			fmt.Fprintf(&out, "%s: %s\n", name, v)
		}
	}
	body := recorder.Body.Bytes()
	if recorder.Code > 399 { // the id is another one each time
		body = bytes.Replace(body, []byte(`,"requestId":"`+recorder.Header().Get("X-Request-Id")+`"`), nil, 1)
	}
	if err := json.Indent(&out, body, "", " "); err != nil {
		t.Fatalf("the body is not JSON: %v\n%s", err, recorder.Body)
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}
