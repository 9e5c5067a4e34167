package agent_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/rpcauth"
)

// With a token for them the metrics need it, and the probes do not.
func TestTheMetricsNeedTheirToken(t *testing.T) {
	const secret = "metrics-token-of-this-test"
	token, err := rpcauth.NewToken(secret)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	c, d := r.config()
	c.MetricsListen, c.MetricsToken, d.Metrics = "127.0.0.1:0", token, prometheus.NewRegistry()
	a, err := agent.New(c, d)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for name, c := range map[string]struct {
		path, header string
		code         int
		has          string
	}{
		"the token":               {"/metrics", "Bearer " + secret, 200, "muster_agent_registered"},
		"the token, lower case":   {"/metrics", "bearer " + secret, 200, "muster_agent_registered"},
		"no token":                {"/metrics", "", 401, "metricsTokenFile"},
		"another token":           {"/metrics", "Bearer another-token-of-this-test", 401, "metricsTokenFile"},
		"a short token":           {"/metrics", "Bearer x", 401, "metricsTokenFile"},
		"another scheme":          {"/metrics", "Basic " + secret, 401, "metricsTokenFile"},
		"a probe without a token": {"/livez", "", 200, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.MetricsAddress()+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.header != "" {
				r.Header.Set("Authorization", c.header)
			}
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != c.code || !strings.Contains(string(text), c.has) || strings.Contains(string(text), secret) {
				t.Errorf("got %d, want %d with %q:\n%.300s", response.StatusCode, c.code, c.has, text)
			}
		})
	}
}
