package cli

import (
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/cmd/muster/internal/clicontext"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/test/resttest"
)

// TestTLSAdvice calls servers with and without TLS by addresses that do not
// suit them. Each message names the flag, the variable and the command.
func TestTLSAdvice(t *testing.T) {
	handler := rest.NewHandler(rest.Config{
		Service: resttest.New(time.Now), Authenticator: service.StaticToken(token), Version: "v0.0.0-server",
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	folder := t.TempDir()
	own, other := filepath.Join(folder, "own.pem"), filepath.Join(folder, "other.pem")
	write := func(path string, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(own, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	authority, err := pki.NewAuthority("another", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	write(other, pki.FormatPEM([]*x509.Certificate{authority.Certificate}))

	plainHost, secureHost := strings.TrimPrefix(plain.URL, "http://"), strings.TrimPrefix(secure.URL, "https://")
	_, port, _ := strings.Cut(secureHost, ":")
	for name, c := range map[string]struct {
		context clicontext.Context // none where it has no address
		env     map[string]string
		args    []string
		want    []string
	}{
		"an unknown authority, by --addr": {
			args: []string{"--addr", secure.URL},
			want: []string{"that this machine does not hold", "--ca-file FILE", "MUSTER_CA_FILE", "muster config set-context NAME --addr " + secure.URL + " --ca-file FILE"},
		},
		"an unknown authority, by the variable": {
			env:  map[string]string{"MUSTER_ADDR": secure.URL},
			want: []string{"that this machine does not hold", "muster config set-context NAME --addr " + secure.URL + " --ca-file FILE"},
		},
		"an unknown authority, by the current context": {
			context: clicontext.Context{Addr: secure.URL},
			want:    []string{"that this machine does not hold", "muster config set-context --current --ca-file FILE"},
		},
		"an unknown authority, by a context that is named": {
			context: clicontext.Context{Addr: secure.URL},
			args:    []string{"--context", "test"},
			want:    []string{"muster config set-context test --ca-file FILE"},
		},
		"the file of another authority": {
			args: []string{"--addr", secure.URL, "--ca-file", other},
			want: []string{"that " + other + " does not hold", "--ca-file FILE"},
		},
		"a name that the certificate has not": {
			args: []string{"--addr", "https://localhost:" + port, "--ca-file", own},
			want: []string{"cannot trust https://localhost:" + port, "not localhost", "--addr", "MUSTER_ADDR", "muster config set-context NAME --addr https://HOST:PORT"},
		},
		"https to a port without TLS": {
			args: []string{"--addr", "https://" + plainHost},
			want: []string{"https://" + plainHost + " answers without TLS", "--addr", "MUSTER_ADDR", "muster config set-context NAME --addr " + plain.URL},
		},
		"http to a port with TLS": {
			args: []string{"--addr", "http://" + secureHost},
			want: []string{"http://" + secureHost + " answers with TLS only", "--addr", "MUSTER_ADDR", "--ca-file", "MUSTER_CA_FILE", "muster config set-context NAME --addr " + secure.URL + " --ca-file FILE"},
		},
		"http to a port with TLS, by the current context": {
			context: clicontext.Context{Addr: "http://" + secureHost},
			want:    []string{"muster config set-context --current --addr " + secure.URL + " --ca-file FILE"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, nil)
			if c.context.Addr != "" {
				s.save(t, c.context)
			}
			for k, v := range c.env {
				s.env[k] = v
			}
			code, _, stderr := s.run(t.Context(), "", append([]string{"get", "nodes"}, c.args...)...)
			if code != ExitFailed {
				t.Errorf("exit %d, want %d", code, ExitFailed)
			}
			for _, want := range c.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("no %q in\n%s", want, stderr)
				}
			}
		})
	}

	t.Run("the right authority needs no advice", func(t *testing.T) {
		s := newShell(t, nil)
		s.env["MUSTER_TOKEN"], s.env["MUSTER_CA_FILE"] = token, own
		if code, _, stderr := s.run(t.Context(), "", "get", "nodes", "--addr", secure.URL); code != ExitDone {
			t.Errorf("exit %d: %s", code, stderr)
		}
	})
}
