// Package login logs a person in at an OpenID Connect provider: by the browser of this
// host (authorization code with PKCE, RFC 7636, and a redirect to a loopback address, RFC
// 8252) or by a browser anywhere (device flow, RFC 8628). It renews tokens by a refresh
// token. It decides nothing about rights: the coordinator judges each token.
package login

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Method is the provider, and the cluster's name there.
type Method struct {
	Issuer, ClientID string
	// CAFile is a PEM file of the authorities by which the provider is trusted; "" is
	// the system's.
	CAFile string
	Scopes []string
}

// Session is a person that is logged in.
type Session struct {
	// IDToken is shown to coordinators until Expires.
	IDToken string
	Expires time.Time
	// RefreshToken gets the next ID token; "" where the provider gives none.
	RefreshToken string
}

// askWithin bounds one request to the provider.
const askWithin = 10 * time.Second

// provider is the provider as its discovery describes it.
type provider struct {
	method   Method
	client   *http.Client
	found    *oidc.Provider
	revokeAt string
}

// open asks the provider for its description.
func open(ctx context.Context, m Method) (*provider, error) {
	if u, err := url.Parse(m.Issuer); err != nil || u.Scheme != "https" {
		return nil, fmt.Errorf("the identity provider %q: want an https URL", m.Issuer)
	}
	p := &provider{method: m, client: &http.Client{Timeout: askWithin}}
	if m.CAFile != "" {
		pem, err := os.ReadFile(m.CAFile)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate in PEM", m.CAFile)
		}
		p.client.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	}
	var err error
	if p.found, err = oidc.NewProvider(p.context(ctx), m.Issuer); err != nil {
		var unknown x509.UnknownAuthorityError
		if errors.As(err, &unknown) {
			return nil, fmt.Errorf("cannot trust the identity provider %s: its certificate is signed by an authority that is not known here: name the authority with muster login --issuer-ca-file FILE", m.Issuer)
		}
		return nil, fmt.Errorf("the identity provider %s does not answer as one: %v", m.Issuer, err) //nolint:errorlint // its errors are not those of the coordinator
	}
	var more struct {
		Revocation string `json:"revocation_endpoint"`
	}
	if err := p.found.Claims(&more); err != nil {
		return nil, err
	}
	p.revokeAt = more.Revocation
	return p, nil
}

// context has the client for the libraries.
func (p *provider) context(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.client)
}

// config is the request for tokens; redirect is "" for flows without one.
func (p *provider) config(redirect string) oauth2.Config {
	return oauth2.Config{
		ClientID: p.method.ClientID, Endpoint: p.found.Endpoint(), RedirectURL: redirect,
		Scopes: append([]string{oidc.ScopeOpenID}, p.method.Scopes...),
	}
}

// session checks the answer of the provider and makes a session of it; nonce is that of
// the request, "" for none. before is the refresh token of the session that was renewed.
func (p *provider) session(ctx context.Context, t *oauth2.Token, nonce, before string) (Session, error) {
	raw, _ := t.Extra("id_token").(string)
	if raw == "" {
		return Session{}, fmt.Errorf("%s gave no ID token: is openid among the scopes that it allows the client %q?", p.method.Issuer, p.method.ClientID)
	}
	id, err := p.found.VerifierContext(p.context(ctx), &oidc.Config{ClientID: p.method.ClientID}).Verify(ctx, raw)
	if err != nil {
		return Session{}, fmt.Errorf("%s gave an ID token that is not good: %w", p.method.Issuer, err)
	}
	if id.Nonce != nonce {
		return Session{}, errors.New("the ID token is the answer to another login: log in again")
	}
	s := Session{IDToken: raw, Expires: id.Expiry, RefreshToken: t.RefreshToken}
	if s.RefreshToken == "" {
		s.RefreshToken = before
	}
	return s, nil
}

// Renew gets the next ID token by a refresh token. A provider that has ended the session
// answers with ErrEnded.
func Renew(ctx context.Context, m Method, refresh string) (Session, error) {
	p, err := open(ctx, m)
	if err != nil {
		return Session{}, err
	}
	config := p.config("")
	t, err := config.TokenSource(p.context(ctx), &oauth2.Token{RefreshToken: refresh}).Token()
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.ErrorCode == "invalid_grant" {
		return Session{}, ErrEnded
	}
	if err != nil {
		return Session{}, worded(m.Issuer, err)
	}
	return p.session(ctx, t, "", refresh)
}

// ErrEnded says that a refresh token is not good any more.
var ErrEnded = errors.New("the login has ended")

// End ends a refresh token at the provider (RFC 7009), where the provider has that.
func End(ctx context.Context, m Method, refresh string) error {
	p, err := open(ctx, m)
	if err != nil || p.revokeAt == "" {
		return err
	}
	body := url.Values{"token": {refresh}, "token_type_hint": {"refresh_token"}, "client_id": {m.ClientID}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.revokeAt, strings.NewReader(body.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s answers %s", m.Issuer, answer.Status)
	}
	return nil
}

// worded words a refusal of the provider, without the texts that a request had.
func worded(issuer string, err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		return err
	}
	if refused.ErrorCode == "" {
		return fmt.Errorf("%s answers %s", issuer, refused.Response.Status)
	}
	text := refused.ErrorCode
	if refused.ErrorDescription != "" {
		text += ": " + refused.ErrorDescription
	}
	return fmt.Errorf("%s refuses the login: %s", issuer, text)
}
