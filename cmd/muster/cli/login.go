package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/cmd/muster/internal/clicontext"
	"github.com/musterd/muster/cmd/muster/internal/login"
	"github.com/musterd/muster/sdk"
)

// loginFlags are the flags of muster login.
type loginFlags struct {
	device, noBrowser bool
	listen            string
	issuerCAFile      string
	timeout           time.Duration
}

// Bounds of --timeout of muster login.
const (
	leastLogin = time.Second
	mostLogin  = time.Hour
)

func (a *app) loginCommand() *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Log in at the cluster's identity provider",
		Long: "login opens a browser at the identity provider that the coordinators name, and keeps the token in the\n" +
			"context, in a file of mode 0600. Later commands use the token, and renew it quietly while the provider\n" +
			"allows that. On a host without a browser, --device shows a page and a code for a browser anywhere.\n" +
			"--context NAME keeps the login in another context than the current one, and --addr names the cluster\n" +
			"of a new context.",
		Example: "  muster login\n  muster login --device\n  muster login --context prod --addr https://head-1:8470 --ca-file ca.pem",
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.logIn(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.device, "device", false, "show a page and a code for a browser on another host")
	flags.BoolVar(&f.noBrowser, "no-browser", false, "print the URL, and open no browser")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "loopback address that the browser comes back to; port 0 is a free one")
	flags.StringVar(&f.issuerCAFile, "issuer-ca-file", "", "PEM file of the authorities that the provider is trusted by (default: the system's)")
	flags.DurationVar(&f.timeout, "timeout", 5*time.Minute, "how long to wait for the person, 1s to 1h")
	return cmd
}

// check refuses flags that cannot be meant.
func (f *loginFlags) check() error {
	host, port, err := net.SplitHostPort(f.listen)
	ip, ipErr := netip.ParseAddr(host)
	switch {
	case err != nil || port == "" || ipErr != nil || !ip.IsLoopback():
		return usagef("--listen %q: want a loopback address and a port, such as 127.0.0.1:8000", f.listen)
	case f.timeout < leastLogin || f.timeout > mostLogin:
		return usagef("--timeout: %s is outside %s..%s", f.timeout, leastLogin, mostLogin)
	case f.issuerCAFile == "":
		return nil
	}
	if _, err := sdk.Trust(f.issuerCAFile); err != nil {
		return usagef("--issuer-ca-file: %w", err)
	}
	f.issuerCAFile, err = absolute(f.issuerCAFile)
	return err
}

// logIn logs a person in and keeps the session in a context.
func (a *app) logIn(ctx context.Context, f loginFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	name, kept, err := a.loginContext()
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	said, err := a.client.LoginMethod(asking)
	cancel()
	if err != nil {
		return err
	}
	method := login.Method{Issuer: said.Issuer, ClientID: said.ClientID, Scopes: said.Scopes, CAFile: f.issuerCAFile}
	if method.CAFile == "" && kept.Login != nil && kept.Login.Issuer == said.Issuer {
		method.CAFile = kept.Login.CertificateAuthority
	}
	waiting, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	var session login.Session
	if f.device {
		session, err = login.Device(waiting, method, func(page, code string) {
			a.notef("Open this page in a browser, on any host:\n  %s\nand enter the code %s\n", page, code)
		})
	} else {
		session, err = login.Browser(waiting, method, f.listen, func(at string) { a.openBrowser(at, f.noBrowser) })
	}
	if err != nil {
		return err
	}
	kept.Token, kept.Login, kept.Dev = session.IDToken, keptLogin(method, session), nil
	if err := a.changeContexts(func(file *clicontext.File) error {
		file.Contexts[name] = kept
		file.Current = cmp.Or(file.Current, name)
		if a.contextName == "" {
			file.Current = name
		}
		return nil
	}); err != nil {
		return err
	}
	return a.welcome(ctx, name)
}

// loginContext finds the context that a login is kept in, and connects without a token. A
// context that does not exist yet is made of --addr.
func (a *app) loginContext() (name string, kept clicontext.Context, err error) {
	f, err := a.contexts()
	if err != nil {
		return "", kept, err
	}
	addr := strings.Join(endpoints(cmp.Or(a.addr, a.Env("MUSTER_ADDR"))), ",")
	name = a.contextName
	if name == "" && f.Current != "" && (addr == "" || among(addr, f.Contexts[f.Current].Addr)) {
		name = f.Current
	}
	if name == "" && addr != "" {
		name = nameOf(addr)
	}
	if name == "" {
		return "", kept, a.noServer()
	}
	if err := clicontext.CheckName(name); err != nil {
		return "", kept, usagef("--context: %w", err)
	}
	kept = f.Contexts[name]
	kept.Addr = cmp.Or(addr, kept.Addr)
	if kept.Addr == "" {
		return "", kept, usagef("--context: there is no context %q: name the cluster with --addr", name)
	}
	if ca := cmp.Or(a.caFile, a.Env("MUSTER_CA_FILE")); ca != "" {
		if kept.CertificateAuthority, err = absolute(ca); err != nil {
			return "", kept, err
		}
	}
	if a.namespace != "" {
		kept.Namespace = a.namespace
	}
	return name, kept, a.dial(kept.Addr, "", kept.CertificateAuthority, sdk.Certificate{})
}

// nameOf is the name of a context for an address: its host.
func nameOf(addr string) string {
	if u, err := url.Parse(endpoints(addr)[0]); err == nil && clicontext.CheckName(u.Hostname()) == nil {
		return u.Hostname()
	}
	return "muster"
}

func keptLogin(m login.Method, s login.Session) *clicontext.Login {
	return &clicontext.Login{
		Issuer: m.Issuer, ClientID: m.ClientID, Scopes: m.Scopes, CertificateAuthority: m.CAFile, RefreshToken: s.RefreshToken, Expires: s.Expires.UTC().Format(time.RFC3339),
	}
}

// openBrowser shows the URL, and opens a browser there unless the person wants none.
func (a *app) openBrowser(at string, none bool) {
	a.notef("Log in at:\n  %s\n", at)
	program := cmp.Or(a.Env("BROWSER"), "xdg-open")
	if none {
		return
	}
	browser := exec.Command(program, at)
	if browser.Start() == nil {
		go func() { _ = browser.Wait() }() // the person sees the browser's own messages
	}
}

// welcome says who the person is to the cluster.
func (a *app) welcome(ctx context.Context, name string) error {
	a.contextName = name
	a.addr, a.token = "", ""
	if err := a.connect(); err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	me, err := a.client.WhoAmI(asking)
	if err != nil {
		return fmt.Errorf("the provider has let you in, and the cluster does not: %w", err)
	}
	a.printf("Logged in as %s, context %q.\n", me.User, name)
	if len(me.Roles) == 0 {
		a.notef("%s has no role here: an administrator gives roles by a RoleBinding to the user or a group (%s)\n", me.User, cmp.Or(strings.Join(me.Groups, ", "), "the token names no groups"))
	}
	return nil
}

// renewBefore is how long before the end of a token the next one is got.
const renewBefore = 30 * time.Second

// renewed is the token of a context. A token of a login that has ended, or is about to, is
// renewed first, by one program at a time: a refresh token is often good once.
func (a *app) renewed(c clicontext.Context) (string, error) {
	if !needsRenewal(c, time.Now()) {
		return c.Token, nil
	}
	token, ended := c.Token, false
	err := a.changeContexts(func(f *clicontext.File) error {
		name := cmp.Or(a.contextName, f.Current)
		now, found := f.Contexts[name]
		if !found || !needsRenewal(now, time.Now()) {
			token = cmp.Or(now.Token, token) // another program was faster
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		method := login.Method{Issuer: now.Login.Issuer, ClientID: now.Login.ClientID, Scopes: now.Login.Scopes, CAFile: now.Login.CertificateAuthority}
		session, err := login.Renew(ctx, method, now.Login.RefreshToken)
		if ended = errors.Is(err, login.ErrEnded); ended {
			kept := *now.Login
			kept.RefreshToken = ""
			now.Login = &kept
			f.Contexts[name] = now
			return nil
		}
		if err != nil {
			return err
		}
		now.Token, now.Login = session.IDToken, keptLogin(method, session)
		f.Contexts[name], token = now, session.IDToken
		return nil
	})
	switch {
	case ended:
		a.notef("the identity provider has ended the login: log in again with muster login\n")
	case err != nil:
		a.notef("the login could not be renewed: %v\n", err)
	}
	return token, nil // the server judges a token that was not renewed
}

// needsRenewal reports whether a context's token is renewed before its use.
func needsRenewal(c clicontext.Context, now time.Time) bool {
	if c.Login == nil || c.Login.RefreshToken == "" {
		return false
	}
	end, err := time.Parse(time.RFC3339, c.Login.Expires)
	return err != nil || now.Add(renewBefore).After(end)
}

func (a *app) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "Forget the login of a context",
		Long: "logout removes the token of a login from the context, and ends the refresh token at the identity\n" +
			"provider where the provider has a way for that. Other tokens stay.",
		Example: "  muster logout\n  muster logout --context prod",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, was, err := a.forget()
			if err != nil {
				return err
			}
			if was.RefreshToken != "" {
				ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
				defer cancel()
				method := login.Method{Issuer: was.Issuer, ClientID: was.ClientID, CAFile: was.CertificateAuthority}
				if err := login.End(ctx, method, was.RefreshToken); err != nil {
					a.notef("the refresh token could not be ended at the provider: %v\n", err)
				}
			}
			a.printf("Logged out of context %q.\n", name)
			return nil
		},
	}
}

// forget removes the login of a context and returns it.
func (a *app) forget() (name string, was clicontext.Login, err error) {
	if _, found, err := a.selected(); err != nil || !found {
		return "", was, cmp.Or(err, errors.New("no context is current: muster config use-context NAME chooses one"))
	}
	err = a.changeContexts(func(f *clicontext.File) error {
		name = cmp.Or(a.contextName, f.Current)
		c := f.Contexts[name]
		if c.Login == nil {
			return fmt.Errorf("context %q has no login: its token was set by hand; remove the token with muster config set-context %s --token ''", name, name)
		}
		was = *c.Login
		c.Token, c.Login = "", nil
		f.Contexts[name] = c
		return nil
	})
	return name, was, err
}
