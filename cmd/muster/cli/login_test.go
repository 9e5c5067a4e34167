package cli

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/musterd/muster/cmd/muster/internal/clicontext"
	"github.com/musterd/muster/coordinator/access"
	"github.com/musterd/muster/coordinator/oidc"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/provider"
	"github.com/musterd/muster/test/resttest"
)

// newLoginServer serves a cluster whose people log in at a provider. The value
// gpu-users of the claim roles makes an editor of the tenant of the claim org.
func newLoginServer(t *testing.T, p *provider.Provider) *httptest.Server {
	t.Helper()
	persons, err := oidc.New(oidc.Config{
		Issuer: p.Issuer(), ClientID: provider.ClientID, CAFile: p.CAFile(), UserClaim: "email", GroupsClaim: "groups",
		TenantClaim: "org", RolesClaim: "roles", Roles: map[string]string{"gpu-users": "editor"},
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(rest.NewHandler(rest.Config{
		Service: resttest.New(time.Now, resttest.Node{Name: "n1", CPUs: 4}), Login: persons.Login(),
		Authenticator: access.Authenticator{Table: access.NewTable(nil), Persons: persons, Other: service.StaticToken(token)},
	}))
	t.Cleanup(server.Close)
	return server
}

// person is a browser: it opens the URL that the program prints, once.
type person struct {
	client *http.Client
	t      *testing.T
	mu     sync.Mutex
	text   bytes.Buffer
	opened bool
	page   chan error
}

// Write takes the program's messages.
func (p *person) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.Write(b)
	_, rest, found := strings.Cut(p.text.String(), "Log in at:\n  ")
	if url, _, whole := strings.Cut(rest, "\n"); found && whole && !p.opened {
		p.opened = true
		go func() { p.page <- p.open(url) }()
	}
	return len(b), nil
}

func (p *person) open(url string) error {
	answer, err := p.client.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// logIn runs muster login with a person at a browser.
func (s shell) logIn(t *testing.T, p *provider.Provider, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	browser := &person{client: p.Client(), t: t, page: make(chan error, 1)}
	var out bytes.Buffer
	code = Program{Stdin: strings.NewReader(""), Stdout: &out, Stderr: browser, Env: func(k string) string { return s.env[k] }, Args: append([]string{"login", "--no-browser", "--issuer-ca-file", p.CAFile()}, args...), Version: "v"}.Run(t.Context())
	browser.mu.Lock()
	opened := browser.opened
	browser.mu.Unlock()
	if opened {
		if err := <-browser.page; err != nil {
			t.Errorf("the browser: %v", err)
		}
	}
	return code, out.String(), browser.text.String()
}

func (s shell) context(t *testing.T, name string) clicontext.Context {
	t.Helper()
	f, err := clicontext.Load(s.env["MUSTER_CONTEXT"])
	if err != nil {
		t.Fatal(err)
	}
	return f.Contexts[name]
}

// A person logs in, works, is renewed quietly, and logs out.
func TestAPersonLogsIn(t *testing.T) {
	p := provider.New(t)
	p.Set("org", "vision")
	p.Set("roles", []string{"gpu-users"})
	server := newLoginServer(t, p)
	s := newShell(t, nil)
	code, out, complaint := s.logIn(t, p, "--addr", server.URL)
	if code != ExitDone || out != "Logged in as oidc:ada@example.org, context \"127.0.0.1\".\n" {
		t.Fatalf("exit %d: %s%s", code, out, complaint)
	}
	info, err := os.Stat(s.env["MUSTER_CONTEXT"])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the context file: %v, %v", info.Mode(), err)
	}
	if _, out, _ := s.run(t.Context(), "", "config", "view"); strings.Contains(out, "eyJ") || strings.Count(out, hiddenToken) != 2 {
		t.Errorf("the view shows a secret:\n%s", out)
	}
	code, out, complaint = s.run(t.Context(), "", "whoami")
	for _, want := range []string{"oidc:ada@example.org", "identity provider (muster login)", "editor of tenant vision"} {
		if code != ExitDone || !strings.Contains(out, want) {
			t.Errorf("whoami has no %q: %s%s", want, out, complaint)
		}
	}
	if code, _, complaint := s.run(t.Context(), "", "get", "jobs", "-n", "vision"); code != ExitDone {
		t.Errorf("in the own tenant: %s", complaint)
	}
	if code, _, complaint := s.run(t.Context(), "", "get", "jobs", "-n", "speech"); code != ExitFailed || !strings.Contains(complaint, "namespace speech not found") {
		t.Errorf("in another tenant: %s", complaint)
	}

	// A token that is about to end is renewed, by one of two programs at a time.
	s.expire(t, "127.0.0.1")
	before := s.context(t, "127.0.0.1")
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if code, _, complaint := s.run(t.Context(), "", "whoami"); code != ExitDone || complaint != "" {
				t.Errorf("renewed: %d %s", code, complaint)
			}
		})
	}
	both.Wait()
	after := s.context(t, "127.0.0.1")
	if after.Token == before.Token || after.Login.RefreshToken == before.Login.RefreshToken || after.Login.RefreshToken == "" {
		t.Error("the token was not renewed")
	}

	// A provider that has ended the login says so, and the program says what to do.
	p.Forget()
	s.expire(t, "127.0.0.1")
	if _, _, complaint := s.run(t.Context(), "", "whoami"); !strings.Contains(complaint, "log in again with muster login") {
		t.Errorf("an ended login: %s", complaint)
	}
	if code, out, complaint := s.run(t.Context(), "", "logout"); code != ExitDone || out != "Logged out of context \"127.0.0.1\".\n" {
		t.Errorf("logout: %d %s%s", code, out, complaint)
	}
	if c := s.context(t, "127.0.0.1"); c.Token != "" || c.Login != nil || c.Addr != server.URL {
		t.Errorf("after logout: %+v", c)
	}
	if code, _, complaint := s.run(t.Context(), "", "logout"); code != ExitFailed || !strings.Contains(complaint, "has no login") {
		t.Errorf("a second logout: %d %s", code, complaint)
	}
}

// expire makes the program believe that a login ends now.
func (s shell) expire(t *testing.T, name string) {
	t.Helper()
	if err := clicontext.Update(s.env["MUSTER_CONTEXT"], func(f *clicontext.File) error {
		c := f.Contexts[name]
		login := *c.Login
		login.Expires = time.Now().UTC().Format(time.RFC3339)
		c.Login = &login
		f.Contexts[name] = c
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// A host without a browser shows a page and a code.
func TestAPersonLogsInByDevice(t *testing.T) {
	p := provider.New(t)
	p.Rotate("second", jose.ES256)
	server := newLoginServer(t, p)
	s := newShell(t, nil)
	s.save(t, clicontext.Context{Addr: server.URL})
	code, out, complaint := s.run(t.Context(), "", "login", "--device", "--issuer-ca-file", p.CAFile())
	if code != ExitDone || !strings.Contains(out, `Logged in as oidc:ada@example.org, context "test"`) {
		t.Fatalf("exit %d: %s%s", code, out, complaint)
	}
	for _, want := range []string{"Open this page in a browser, on any host:", "/activate?user_code=WDJB-MJHT", "enter the code WDJB-MJHT", "oidc:ada@example.org has no role here: an administrator gives roles by a RoleBinding"} {
		if !strings.Contains(complaint, want) {
			t.Errorf("the program does not say %q: %s", want, complaint)
		}
	}
	p.NoDevice()
	if code, _, complaint := s.run(t.Context(), "", "login", "--device", "--issuer-ca-file", p.CAFile()); code != ExitFailed || !strings.Contains(complaint, "has no login by device: log in without --device") {
		t.Errorf("without the device flow: %d %s", code, complaint)
	}
}

func TestLoginsThatFail(t *testing.T) {
	p := provider.New(t)
	server := newLoginServer(t, p)
	without := newServer(t)
	for name, c := range map[string]struct {
		addr string
		args []string
		code int
		says string
	}{
		"no server":            {"", nil, ExitFailed, "no server is known"},
		"no provider":          {without.URL, nil, ExitFailed, "this cluster has no identity provider: use an access token"},
		"an unknown authority": {server.URL, []string{"--issuer-ca-file="}, ExitFailed, "name the authority with muster login --issuer-ca-file FILE"},
		"no authority at all":  {server.URL, []string{"--issuer-ca-file", "/nowhere/ca.pem"}, ExitMisused, "--issuer-ca-file: "},
		"another address":      {server.URL, []string{"--listen", "0.0.0.0:0"}, ExitMisused, "want a loopback address"},
		"a name that is none":  {server.URL, []string{"--context", "a b"}, ExitMisused, `"a b" is not the name of a context`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, nil)
			s.env["MUSTER_ADDR"] = c.addr
			code, out, complaint := s.logIn(t, p, c.args...)
			if code != c.code || !strings.Contains(complaint, c.says) {
				t.Errorf("exit %d: %s%s, want %q", code, out, complaint, c.says)
			}
			if _, err := os.Stat(filepath.Clean(s.env["MUSTER_CONTEXT"])); err == nil {
				t.Error("a context was made")
			}
		})
	}
	t.Run("nobody logs in", func(t *testing.T) {
		s := newShell(t, nil)
		s.env["MUSTER_ADDR"] = server.URL
		ctx, gone := context.WithCancel(t.Context())
		var out bytes.Buffer
		stop := writerFunc(func(b []byte) (int, error) {
			if strings.Contains(string(b), "Log in at:") {
				gone()
			}
			return out.Write(b)
		})
		if code := (Program{Stdin: strings.NewReader(""), Stdout: &out, Stderr: stop, Env: func(k string) string { return s.env[k] }, Args: []string{"login", "--no-browser", "--issuer-ca-file", p.CAFile()}}).Run(ctx); code != ExitFailed {
			t.Errorf("exit %d: %s", code, out.String())
		}
	})
}

// writerFunc is a function as a writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
