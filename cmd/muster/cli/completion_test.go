package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A server that does not answer keeps no shell waiting: the request ends by itself,
// and the shell gets no names.
func TestCompletionGivesUpOnASilentServer(t *testing.T) {
	asked := make(chan string, 16)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		<-r.Context().Done()
	}))
	defer silent.Close()
	code, out, errors := newShell(t, silent).run(t.Context(), "", "__complete", "get", "nodes", "")
	if code != 0 || strings.TrimSpace(out) != ":4" {
		t.Errorf("exit %d, %q, %s; want no names", code, out, errors)
	}
	if path := <-asked; path != "/api/v1/nodes" {
		t.Errorf("the server was asked for %s", path)
	}
}

// Completion takes one page of names: a namespace may have ten thousand jobs.
func TestCompletionAsksForOnePage(t *testing.T) {
	var queries []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.Query().Get("limit"))
		items := strings.TrimSuffix(strings.Repeat(`{"metadata": {"name": "a"}},`, 500), ",")
		_, _ = w.Write([]byte(`{"kind": "JobList", "metadata": {"continue": "MTpkZWZhdWx0L2E"}, "items": [` + items + `]}`))
	}))
	defer server.Close()
	code, out, errors := newShell(t, server).run(t.Context(), "", "__complete", "get", "jobs", "")
	if code != 0 || !strings.HasPrefix(out, "a\n") || len(queries) != 1 {
		t.Errorf("exit %d, %q, %s, %d requests with the limits %q; want one", code, out, errors, len(queries), queries)
	}
}
