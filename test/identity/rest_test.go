package identity_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/cli"
	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/pki/folder"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/resttest"
)

// office is a coordinator's REST API over https, and the program that talks to
// it.
type office struct {
	t      *testing.T
	enroll *enroll.Service
	url    string
	caFile string
	client *sdk.Client
}

// callers: "boss" is an admin, "ml" a tenant.
type callers struct{}

func (callers) Authenticate(_ context.Context, token string) (service.Principal, error) {
	switch token {
	case "boss":
		return service.Principal{Name: "boss", Admin: true}, nil
	case "ml":
		return service.Principal{Name: "ml", Tenant: "ml"}, nil
	}
	return service.Principal{}, errors.New("unknown")
}

type ring struct{ keys [][]byte }

func (r *ring) Keys() [][]byte              { return r.keys }
func (r *ring) Replace(keys [][]byte) error { r.keys = keys; return nil }

func newOffice(t *testing.T) *office {
	t.Helper()
	s := mem.Open(mem.Options{})
	t.Cleanup(func() { _ = s.Close() })
	e, err := enroll.Open(t.Context(), enroll.Config{Cluster: cluster, ID: "c1", Store: s, Names: []string{"127.0.0.1"}},
		func(keys [][]byte) (enroll.Keyring, error) { return &ring{keys}, nil })
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(rest.NewHandler(rest.Config{
		Service: resttest.New(time.Now), Authenticator: callers{}, Identity: enroll.Documents{Service: e},
	}))
	server.Listener = tls.NewListener(server.Listener, e.TLS().WebConfig())
	server.Start()
	t.Cleanup(server.Close)
	o := &office{t: t, enroll: e, url: strings.Replace(server.URL, "http:", "https:", 1), caFile: filepath.Join(t.TempDir(), "ca.pem")}
	write(t, o.caFile, string(pki.FormatPEM(e.Roots())))
	o.client = o.as("boss")
	return o
}

func (o *office) as(token string) *sdk.Client {
	o.t.Helper()
	client, err := sdk.NewClient(sdk.Config{Endpoint: o.url, Token: token, CAFile: o.caFile})
	if err != nil {
		o.t.Fatal(err)
	}
	return client
}

// muster runs the program and returns what it printed and its exit code.
func (o *office) muster(args ...string) (stdout, stderr string, code int) {
	o.t.Helper()
	var out, errs bytes.Buffer
	env := map[string]string{
		"MUSTER_ADDR": o.url, "MUSTER_TOKEN": "boss", "MUSTER_CA_FILE": o.caFile, "MUSTER_CONTEXT": filepath.Join(o.t.TempDir(), "none"),
	}
	code = cli.Program{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Env: func(name string) string { return env[name] }, Args: args}.Run(o.t.Context())
	return out.String(), errs.String(), code
}

func TestTokensOverREST(t *testing.T) {
	o := newOffice(t)
	made, err := o.client.Identity().CreateToken(t.Context(), api.BootstrapTokenSpec{Nodes: "gpu-*", TTL: "2h", Uses: 3})
	if err != nil {
		t.Fatal(err)
	}
	token, err := pki.ParseToken(made.Status.Token)
	if err != nil || token.ID != made.Metadata.Name || token.Pin != pki.PinOf(o.enroll.Roots()[0]) || made.Status.Creator != "boss" || made.Status.Uses != 3 {
		t.Errorf("made %+v, %v", made, err)
	}
	list, err := o.client.Identity().ListTokens(t.Context())
	if err != nil || len(list.Items) != 1 || list.Items[0].Status.Token != "" || list.Items[0].Spec.Nodes != "gpu-*" {
		t.Errorf("list: %+v, %v", list, err)
	}
	if _, err := o.client.Identity().RevokeToken(t.Context(), token.ID); err != nil {
		t.Error(err)
	}
	code := func(err error) int {
		var status *api.Status
		if errors.As(err, &status) {
			return status.Code
		}
		return 0
	}
	_, again := o.client.Identity().RevokeToken(t.Context(), token.ID)
	_, pattern := o.client.Identity().CreateToken(t.Context(), api.BootstrapTokenSpec{Nodes: "a b"})
	_, many := o.client.Identity().CreateToken(t.Context(), api.BootstrapTokenSpec{Nodes: "gpu-*", Replace: true})
	_, forever := o.client.Identity().CreateToken(t.Context(), api.BootstrapTokenSpec{Nodes: "gpu-*", TTL: "9999h"})
	_, tenant := o.as("ml").Identity().ListTokens(t.Context())
	_, nobody := o.as("guess").Identity().CreateToken(t.Context(), api.BootstrapTokenSpec{Nodes: "*"})
	_, signs := o.client.Identity().RetireAuthority(t.Context(), o.enroll.Roots()[0].Subject.CommonName, false)
	for name, c := range map[string]struct {
		err  error
		code int
	}{
		"a token that was revoked":   {again, http.StatusNotFound},
		"a pattern with a blank":     {pattern, http.StatusUnprocessableEntity},
		"to replace many":            {many, http.StatusUnprocessableEntity},
		"a token for ever":           {forever, http.StatusUnprocessableEntity},
		"a tenant":                   {tenant, http.StatusForbidden},
		"nobody":                     {nobody, http.StatusUnauthorized},
		"an authority with no names": {signs, http.StatusBadRequest},
	} {
		if code(c.err) != c.code {
			t.Errorf("%s: %v, want %d", name, c.err, c.code)
		}
	}
}

func TestWithoutTLSThereAreNoIdentities(t *testing.T) {
	server := httptest.NewServer(rest.NewHandler(rest.Config{Service: resttest.New(time.Now), Authenticator: callers{}}))
	defer server.Close()
	client, err := sdk.NewClient(sdk.Config{Endpoint: server.URL, Token: "boss"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Identity().ListTokens(t.Context())
	var status *api.Status
	if !errors.As(err, &status) || status.Code != http.StatusNotImplemented || !strings.Contains(status.Message, "tls.enabled") {
		t.Errorf("got %v", err)
	}
}

func TestTheProgramMakesTokensAndRotatesAuthorities(t *testing.T) {
	o := newOffice(t)
	must := func(want string, args ...string) string {
		t.Helper()
		out, errs, code := o.muster(args...)
		if code != cli.ExitDone || !strings.Contains(out+errs, want) {
			t.Fatalf("muster %q: code %d, want %q in\n%s%s", args, code, want, out, errs)
		}
		return out
	}
	refused := func(code int, want string, args ...string) {
		t.Helper()
		out, errs, got := o.muster(args...)
		if got != code || !strings.Contains(errs, want) {
			t.Errorf("muster %q: code %d, want %d and %q in\n%s%s", args, got, code, want, out, errs)
		}
	}
	text := must("good for 10 host(s) named gpu-* until", "token", "create", "--node", "gpu-*", "--ttl", "1h", "--uses", "10")
	token, err := pki.ParseToken(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	if out := must("gpu-*", "token", "list", "--bootstrap"); !strings.Contains(out, token.ID) || strings.Contains(out, strings.Split(text, ".")[2]) {
		t.Errorf("listed:\n%s", out)
	}
	must("revoked", "token", "revoke", token.ID)
	refused(cli.ExitFailed, "there is no bootstrap token", "token", "revoke", token.ID)
	refused(cli.ExitMisused, "--node: not set", "token", "create")
	refused(cli.ExitFailed, "a token that replaces a node is for one node", "token", "create", "--node", "gpu-*", "--replace")

	old := strings.TrimPrefix(strings.TrimSpace(must("authority/", "ca", "show", "-o", "name")), "authority/")
	if list, err := pki.ParsePEM([]byte(must("BEGIN CERTIFICATE", "ca", "show", "--pem"))); err != nil || len(list) != 1 {
		t.Errorf("%d authorities in PEM, %v", len(list), err)
	}
	must("signs from now on", "ca", "rotate")
	must(old, "ca", "show")
	refused(cli.ExitFailed, "retire the old one first", "ca", "rotate")
	must("no longer trusted", "ca", "retire", old)
	refused(cli.ExitFailed, "there is no authority", "ca", "retire", old)

	dir := filepath.Join(t.TempDir(), "ann")
	must("party.pem", "ca", "operator", "ann", "--dir", dir)
	f, err := folder.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := f.Load(); err != nil || p.Chain[0].Subject.CommonName != "ann" {
		t.Errorf("operator: %v", err)
	}
	mustBePrivate(t, dir)
	refused(cli.ExitMisused, "holds a certificate already", "ca", "operator", "ann", "--dir", dir)
	refused(cli.ExitFailed, "metadata.name", "ca", "operator", "Ann Lee", "--dir", filepath.Join(t.TempDir(), "x"))
	if err := os.WriteFile(o.caFile, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(cli.ExitFailed, "holds no PEM certificate", "token", "list", "--bootstrap")
}
