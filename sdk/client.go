// Package sdk is the Go client of Muster's REST API. It speaks the documents
// of package api, and every refusal of the server is an error that errors.As
// finds to be an *api.Status.
//
// Each kind has All, an iterator over the pages of a list, Watch, which goes on at
// another server where one is away, and WaitFor. Package sdk/allocator is a short
// client for allocations alone.
//
// It decides five things itself: a token never travels in plain text beyond
// this machine; a create is repeated after a broken connection, under one
// idempotency key, so that it happens once; of several servers the next one
// is asked where the last one was not reached, or sends a read or a create away
// (502, 503); a request that a busy server refuses with 429 and a Retry-After is
// sent again after that time, four times at most; and reads, creates, and
// requests that had no effect for certain (NotLeader) are sent again for 15 s where no
// leader answers the coordinator (503 with NotLeader, LeaderLost or
// LeaderUnreachable). Nothing else is retried. The caller's context ends all of
// it.
package sdk

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/musterd/muster/api"
)

// maxAnswer bounds how much of an answer is read, in bytes. The largest is a snapshot: each
// byte of its document takes two at most where it stands as text in JSON.
const maxAnswer = 2*api.MaxSnapshot + 64<<10

// createAttempts is how often a create is sent before a broken connection is
// reported.
const createAttempts = 3

// Config is the settings of a client.
type Config struct {
	// Endpoint is the server's base URL, e.g. http://127.0.0.1:8470, or several
	// with commas in between: any of a cluster's coordinators will do. Plain
	// http is for loopback addresses only.
	Endpoint string
	// Token is the bearer token; "" sends none.
	Token string
	// CAFile is a PEM file of the authorities by which servers are trusted; "" is
	// the system's. It is for the HTTPClient that is made here.
	CAFile string
	// Certificate is the client certificate that proves who calls, where there is no
	// token. It is for the HTTPClient that is made here, and for https.
	Certificate Certificate
	// HTTPClient sends the requests; nil = a client that keeps connections open and
	// uses no proxy.
	// It is copied; redirects are never followed, since the token would be.
	HTTPClient *http.Client
	// Warnings takes the warnings of all answers, and the refusal of a request that is
	// sent again because the server is busy; nil drops them.
	Warnings WarningHandler
	// AllowUnknownResources keeps misspelt names of resources in resource quotas and
	// quota trees, which the server refuses otherwise.
	AllowUnknownResources bool
}

// Client calls one cluster's servers. It is safe for concurrent use.
type Client struct {
	endpoints []string // without a trailing slash
	last      atomic.Int32
	token     string
	http      http.Client
	warnings  WarningHandler
	// ofQuota are the parameters of each change of a resource quota or quota tree.
	ofQuota url.Values
}

// ErrBadToken refuses a token that no request can carry. The message does not show
// the token.
var ErrBadToken = errors.New("the token holds a space or a character outside ASCII: was it copied whole?")

// NewClient checks the configuration; it connects to nothing.
func NewClient(c Config) (*Client, error) {
	if strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, ErrBadToken
	}
	client := &Client{token: c.Token, warnings: c.Warnings}
	if c.AllowUnknownResources {
		client.ofQuota = url.Values{"allowUnknownResources": {"true"}}
	}
	for one := range strings.SplitSeq(c.Endpoint, ",") {
		endpoint, err := checkEndpoint(strings.TrimSpace(one), c.Token != "")
		if err != nil {
			return nil, err
		}
		client.endpoints = append(client.endpoints, endpoint)
	}
	if c.HTTPClient != nil {
		client.http = *c.HTTPClient
	} else {
		trust, err := Trust(c.CAFile)
		if err == nil {
			trust, err = c.Certificate.AddTo(trust)
		}
		if err != nil {
			return nil, err
		}
		transport := newTransport()
		transport.TLSClientConfig = trust
		client.http.Transport = transport
	}
	client.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client, nil
}

// checkEndpoint returns a server's URL without a trailing slash.
func checkEndpoint(endpoint string, token bool) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", fmt.Errorf("endpoint %q: %w", endpoint, err)
	}
	switch {
	case u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return "", fmt.Errorf("endpoint %q: want http://HOST:PORT or https://HOST:PORT", endpoint)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("endpoint %q: want no user, query or fragment", u.Redacted())
	case token && u.Scheme == "http" && !isLoopback(u.Hostname()):
		return "", fmt.Errorf("endpoint %q: a token is sent to this machine or over https only: use https://%s", endpoint, u.Host)
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// newTransport keeps enough idle connections for a busy submitter.
func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConns:        256,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     90 * time.Second,
	}
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Endpoint returns the base URL of the server that is asked first.
func (c *Client) Endpoint() string { return c.endpoints[c.last.Load()] }

// Version asks the server which program it is.
func (c *Client) Version(ctx context.Context) (*api.Version, error) {
	return call[api.Version](ctx, c, request{method: http.MethodGet, path: "/version"})
}

// request is one call to be made.
type request struct {
	method, path string
	query        url.Values
	contentType  string
	key          string // idempotency key
	body         []byte
}

// call sends a request once and decodes the answer. Fields that this client
// does not know are skipped: the server may be newer.
func call[T any](ctx context.Context, c *Client, r request) (*T, error) {
	body, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(body, v); err != nil {
		return nil, fmt.Errorf("%s %s%s: the answer is not what was asked for: %w", r.method, c.Endpoint(), r.path, err)
	}
	return v, nil
}

// sendTo asks one server, once.
func (c *Client) sendTo(ctx context.Context, endpoint string, r request) ([]byte, error) {
	target := endpoint + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	hr, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, target, err)
	}
	hr.Header.Set("Accept", "application/json")
	if c.token != "" {
		hr.Header.Set("Authorization", "Bearer "+c.token)
	}
	if len(r.body) > 0 {
		hr.Header.Set("Content-Type", r.contentType)
	}
	if r.key != "" {
		hr.Header.Set("Idempotency-Key", r.key)
	}
	answer, err := c.http.Do(hr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return nil, &url.Error{Op: r.method, URL: target, Err: err}
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("%s %s: the answer is larger than %d bytes: ask for pages with a limit", r.method, target, maxAnswer)
	}
	c.warnings.deliver(answer.Header)
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return nil, refusal(answer, statusOf(answer, body))
	}
	return body, nil
}

// statusOf reads a refusal, or makes a refusal from the answer of a proxy.
func statusOf(answer *http.Response, body []byte) *api.Status {
	var s api.Status
	if json.Unmarshal(body, &s) == nil && s.Kind == "Status" && s.Code != 0 {
		return &s
	}
	text := strings.Join(strings.Fields(string(body[:min(len(body), 200)])), " ")
	s = *api.Errorf(answer.StatusCode, "%s %s answered %s, not as a Muster server does: %s",
		answer.Request.Method, answer.Request.URL.Path, answer.Status, strings.ToValidUTF8(text, ""))
	return &s
}

// create posts a document under an idempotency key, and again where the
// connection broke before an answer came.
func create[T any](ctx context.Context, c *Client, path string, document any, o CreateOptions) (*T, error) {
	body, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", document, err)
	}
	r := request{method: http.MethodPost, path: path, query: waitQuery(o.Wait), contentType: "application/json", key: o.IdempotencyKey, body: body}
	if r.key == "" {
		r.key = rand.Text()
	}
	for attempt := 1; ; attempt++ {
		v, err := call[T](ctx, c, r)
		var broken *url.Error
		if err == nil || attempt == createAttempts || !errors.As(err, &broken) || ctx.Err() != nil {
			return v, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(time.Duration(attempt) * 50 * time.Millisecond):
		}
	}
}
