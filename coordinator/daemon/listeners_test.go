package daemon_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/daemon"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/sdk"
)

// newToken makes a token for a test.
func newToken(t *testing.T, secret string) rpcauth.Token {
	t.Helper()
	token, err := rpcauth.NewToken(secret)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// served is a coordinator that runs until the test ends.
type served struct {
	*daemon.Daemon
	roots *x509.CertPool
	ca    string // the file of the authorities
}

func serve(t *testing.T, change func(*daemon.Config)) served {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tls")
	c := daemon.Config{
		ID: "c1", Cluster: "test", DataDir: t.TempDir(), RESTListen: "127.0.0.1:0", GRPCListen: "127.0.0.1:0", SerfBind: "127.0.0.1:0", CapacityBind: "127.0.0.1:0",
		TLS: &daemon.TLSConfig{Dir: dir, REST: true}, AdminToken: newToken(t, adminSecret), LeaseTTL: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
	}
	change(&c)
	d, err := daemon.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	s := served{Daemon: d, roots: x509.NewCertPool(), ca: filepath.Join(dir, "ca.pem")}
	pem, err := os.ReadFile(s.ca)
	if err != nil || !s.roots.AppendCertsFromPEM(pem) {
		t.Fatalf("ca.pem: %v", err)
	}
	return s
}

const (
	adminSecret   = "0123456789abcdef0123456789abcdef"
	metricsSecret = "metrics-token-of-this-test"
)

// get asks an address with a token, "" for none.
func (s served) get(t *testing.T, address, path, token string) (code int, body string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// With metricsListen the metrics leave the address of the API, and with a token of
// their own a scraper needs no rights on the API.
func TestMetricsHaveAnAddressAndATokenOfTheirOwn(t *testing.T) {
	s := serve(t, func(c *daemon.Config) {
		c.MetricsListen, c.MetricsToken = "127.0.0.1:0", newToken(t, metricsSecret)
	})
	if s.MetricsAddr() == s.RESTAddr() {
		t.Fatalf("the metrics are served at %s, the address of REST", s.MetricsAddr())
	}
	for name, c := range map[string]struct {
		address, path, token string
		code                 int
		has                  string
	}{
		"the process, by a scraper":              {s.MetricsAddr(), "/metrics", metricsSecret, 200, "go_goroutines"},
		"the cluster, by a scraper":              {s.MetricsAddr(), "/metrics/cluster", metricsSecret, 200, ""},
		"the process, by an administrator":       {s.MetricsAddr(), "/metrics", adminSecret, 200, "go_goroutines"},
		"the process, without a token":           {s.MetricsAddr(), "/metrics", "", 401, "no token: send the header"},
		"the cluster, by another token":          {s.MetricsAddr(), "/metrics/cluster", "another-token-of-this-test", 401, "the token is not valid here"},
		"the process, at the address of the API": {s.RESTAddr(), "/metrics", metricsSecret, 404, ""},
		"the cluster, at the address of the API": {s.RESTAddr(), "/metrics/cluster", adminSecret, 404, ""},
		"the API, by a scraper":                  {s.RESTAddr(), "/api/v1/nodes", metricsSecret, 401, "the token is not valid here"},
		"the API, at the address of the metrics": {s.MetricsAddr(), "/api/v1/nodes", adminSecret, 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if code, body := s.get(t, c.address, c.path, c.token); code != c.code || !strings.Contains(body, c.has) {
				t.Errorf("got %d, want %d with %q:\n%.300s", code, c.code, c.has, body)
			}
		})
	}
}

// Without metricsTokenFile /metrics needs no token, as before, and without
// metricsListen it is part of REST.
func TestMetricsAreServedByRESTByDefault(t *testing.T) {
	s := serve(t, func(*daemon.Config) {})
	if code, body := s.get(t, s.RESTAddr(), "/metrics", ""); code != 200 || !strings.Contains(body, "go_goroutines") {
		t.Errorf("got %d: %.200s", code, body)
	}
	if code, _ := s.get(t, s.RESTAddr(), "/metrics/cluster", ""); code != 401 {
		t.Errorf("the metrics of the cluster without a token: got %d, want 401", code)
	}
}

// With enrollListen a host enrols there, and nowhere else.
func TestEnrolmentHasAnAddressOfItsOwn(t *testing.T) {
	s := serve(t, func(c *daemon.Config) { c.EnrollListen = "127.0.0.1:0" })
	client, err := sdk.NewClient(sdk.Config{Endpoint: "https://" + s.RESTAddr(), Token: adminSecret, CAFile: s.ca})
	if err != nil {
		t.Fatal(err)
	}
	token, err := client.Identity().CreateToken(t.Context(), api.BootstrapTokenSpec{Nodes: "gpu-*"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bootstrap-token")
	if err := os.WriteFile(file, []byte(token.Status.Token), 0o600); err != nil {
		t.Fatal(err)
	}
	enroll := func(address string) error {
		_, err := agent.OpenIdentity(t.Context(), agent.IdentityConfig{
			Cluster: "test", Node: "gpu-1", Dir: filepath.Join(t.TempDir(), "identity"), TokenFile: file, Coordinators: []string{address}, Log: slog.New(slog.DiscardHandler),
		})
		return err
	}
	if err := enroll(s.GRPCAddr()); !errors.Is(err, rpc.ErrRefused) || !strings.Contains(err.Error(), "key enrollment") {
		t.Errorf("at the address of the agents: %v, want a refusal with the key of the configuration", err)
	}
	if err := enroll(s.EnrollAddr()); err != nil {
		t.Errorf("at the address of enrolment: %v", err)
	}
}
