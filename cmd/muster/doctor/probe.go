package doctor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/musterd/muster/api"
)

// A probe has the answers of one coordinator's REST address to callers without a
// token.
type probe struct {
	endpoint string
	broken   *Finding // why nothing more is known
	version  api.Version
	ready    bool
	notReady string // its words
	reason   string // of the refusal, as api.StoreOutOfSpace
	// ahead is the server's clock minus this host's; exact to slack.
	ahead, slack time.Duration
	certificate  *x509.Certificate // nil without TLS
}

// maxAnswer bounds an answer that is read.
const maxAnswer = 1 << 20

// ask probes one endpoint. The token is not sent.
func (o Options) ask(ctx context.Context, endpoint string) probe {
	p := probe{endpoint: endpoint}
	client := o.httpClient()
	defer client.CloseIdleConnections()
	answer, body, began, ended, err := get(ctx, client, endpoint+"/version")
	if err != nil {
		p.broken = o.explainUnreachable(endpoint, err)
		return p
	}
	if answer.TLS != nil && len(answer.TLS.PeerCertificates) > 0 {
		p.certificate = answer.TLS.PeerCertificates[0]
	}
	switch {
	case answer.StatusCode == http.StatusBadRequest && bytes.Contains(body, []byte("HTTP request to an HTTPS server")):
		p.broken = &Finding{Error, checkReach, endpoint, "the coordinator speaks HTTPS, and the address says http://", mixRemedy(endpoint, "https")}
		return p
	case json.Unmarshal(body, &p.version) != nil || p.version.APIVersion == "":
		p.broken = &Finding{
			Error, checkReach, endpoint, fmt.Sprintf("some other program answers there: GET /version gives %s, which is no version of a coordinator", answer.Status),
			"name the coordinator's restListen address: muster config set-context --current --addr http://HOST:8470",
		}
		return p
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		// The header has whole seconds, cut down.
		middle := began.Add(ended.Sub(began) / 2)
		p.ahead = date.Add(500 * time.Millisecond).Sub(middle)
		p.slack = 500*time.Millisecond + ended.Sub(began)/2
	}
	answer, body, _, _, err = get(ctx, client, endpoint+"/readyz")
	switch {
	case err != nil:
		p.notReady = plainError(err)
	case answer.StatusCode == http.StatusOK:
		p.ready = true
	default:
		var status api.Status
		_ = json.Unmarshal(body, &status) // without a Status the answer's own is shown
		p.notReady, p.reason = cmp.Or(status.Message, answer.Status), status.Reason
	}
	return p
}

func get(ctx context.Context, client *http.Client, address string) (answer *http.Response, body []byte, began, ended time.Time, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, began, ended, err
	}
	began = time.Now()
	answer, err = client.Do(request)
	ended = time.Now()
	if err != nil {
		return nil, nil, began, ended, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	return answer, body, began, ended, err
}

// httpClient trusts the authorities of the CLI, and waits for Options.Patience.
func (o Options) httpClient() *http.Client {
	return &http.Client{
		Timeout: o.patience(),
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: o.Trust, DialContext: (&net.Dialer{Timeout: o.patience()}).DialContext,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// explainUnreachable says why an address gives no answer.
func (o Options) explainUnreachable(endpoint string, err error) *Finding {
	f := &Finding{Severity: Error, Check: checkReach, Subject: endpoint}
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		f.Message, f.Remedy = "the coordinator speaks HTTP without TLS, and the address says https://", mixRemedy(endpoint, "http")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		f.Check = checkCertificates
		f.Message = fmt.Sprintf("the coordinator's certificate is of %s to %s, and this host's clock is at %s", stamp(invalid.Cert.NotBefore), stamp(invalid.Cert.NotAfter), stamp(time.Now()))
		f.Remedy = "restart the coordinator, which signs a new certificate for itself; if the clock is wrong: timedatectl set-ntp true"
	case errors.As(err, &unknown):
		f.Check = checkCertificates
		f.Message = "the coordinator's certificate is signed by an authority that this host does not trust"
		f.Remedy = "muster config set-context --current --ca-file FILE, with the ca.pem of the coordinator's tls folder"
	case errors.As(err, &host):
		f.Check = checkCertificates
		f.Message = "the coordinator's certificate is for another name: " + plainError(err)
		f.Remedy = "use a name of the certificate, or set advertise in the coordinator's configuration and restart it"
	case errors.As(err, &dns):
		f.Message, f.Remedy = fmt.Sprintf("the name %q cannot be resolved: %s", dns.Name, dns.Err), "correct the address: muster config set-context --current --addr URL"
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Message, f.Remedy = "the port is closed: connection refused", "on that host: systemctl status muster-coordinator; journalctl -u muster-coordinator -n 50"
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		f.Message = fmt.Sprintf("no answer within %s: the host is off, a firewall drops the packets, or the coordinator hangs", o.patience())
		f.Remedy = "from here: nc -vz " + hostPort(endpoint) + "; on that host: systemctl status muster-coordinator"
	default:
		f.Message, f.Remedy = "no answer: "+plainError(err), "on that host: systemctl status muster-coordinator"
	}
	return f
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// plainError is an error without the method and URL that package http adds.
func plainError(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err.Error()
	}
	return err.Error()
}

func hostPort(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint
	}
	return strings.Join([]string{u.Hostname(), u.Port()}, " ")
}

func mixRemedy(endpoint, scheme string) string {
	_, rest, _ := strings.Cut(endpoint, "://")
	return "muster config set-context --current --addr " + scheme + "://" + rest
}

// stamp prints a time as documents of the API do.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
