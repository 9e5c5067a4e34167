package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
)

// TestAWatchOfAnObjectThatIsNotThereIsRefused, as by a get, and awaits it with
// --ignore-not-found.
func TestAWatchOfAnObjectThatIsNotThereIsRefused(t *testing.T) {
	var watches, gets int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			gets++
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(api.Errorf(http.StatusNotFound, "allocation a not found in namespace default"))
			return
		}
		watches++
		w.WriteHeader(http.StatusForbidden) // ends the watch
		_ = json.NewEncoder(w).Encode(api.Errorf(http.StatusForbidden, "the watch has begun"))
	}))
	defer server.Close()
	for _, c := range []struct {
		flags         string
		gets, watches int
		stderr        string
	}{
		{"-w", 1, 0, "allocation a not found in namespace default"},
		{"--watch-only", 1, 0, "allocation a not found in namespace default"},
		{"-w --ignore-not-found", 0, 1, "the watch has begun"},
	} {
		watches, gets = 0, 0
		args := append([]string{"get", "allocation", "a"}, strings.Fields(c.flags)...)
		code, stdout, stderr := newShell(t, server).run(t.Context(), "", args...)
		if got := fmt.Sprint(gets, watches); code != ExitFailed || stdout != "" || got != fmt.Sprint(c.gets, c.watches) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: exit %d, %q and %q, gets and watches %s; want %d %d and %q", c.flags, code, stdout, stderr, got, c.gets, c.watches, c.stderr)
		}
	}
}
