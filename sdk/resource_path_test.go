package sdk_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/musterd/muster/sdk"
)

// TestTheDomainOfAResourceIsASegment: servers refuse paths with an escaped slash. In
// names of other kinds a slash stays escaped, so that the name is refused as it is.
func TestTheDomainOfAResourceIsASegment(t *testing.T) {
	var path string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.EscapedPath()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	c, err := sdk.NewClient(sdk.Config{Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"cpu": "/api/v1/resources/cpu", "nvidia.com/gpu": "/api/v1/resources/nvidia.com/gpu", "a/b/c": "/api/v1/resources/a/b%2Fc",
	} {
		if _, err := c.Resources().Get(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if path != want {
			t.Errorf("%s is read at %s, want %s", name, path, want)
		}
	}
	if _, err := c.Nodes().Get(t.Context(), "a/b"); err != nil || path != "/api/v1/nodes/a%2Fb" {
		t.Errorf("node a/b is read at %s (%v), want the slash escaped", path, err)
	}
}
