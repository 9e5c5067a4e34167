package etcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"
)

// refusal marks an error that waiting will not mend: something is configured
// wrongly on this side or on the other.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func refused(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

// hello is the first message of an HTTP/2 client: the preface and empty
// settings.
var hello = append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 0, 0, 0, 4, 0, 0, 0, 0, 0)

// knock finds out why members cannot be spoken to, which gRPC keeps to itself
// and tries again for ever. It succeeds if one member can be; it is a refusal
// if each that answers can never be.
func knock(ctx context.Context, c Config) error {
	errs := make([]error, len(c.Endpoints))
	var wg sync.WaitGroup
	for i, endpoint := range c.Endpoints {
		wg.Go(func() { errs[i] = knockAt(ctx, c, endpoint) })
	}
	wg.Wait()
	var refusals []error
	for i, err := range errs {
		if err == nil {
			return nil
		}
		errs[i] = fmt.Errorf("etcdEndpoints[%d] %s: %w", i, c.Endpoints[i], err)
		var r refusal
		if errors.As(err, &r) {
			refusals = append(refusals, errs[i])
		}
	}
	if len(refusals) > 0 {
		return refusal{errors.Join(refusals...)}
	}
	return errors.Join(errs...)
}

// knockAt sends hello to one member, over TLS or not as the endpoint wants;
// without an answer it finds out whether the other way is understood.
func knockAt(ctx context.Context, c Config, endpoint string) error {
	address, secure := endpoint, false
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		address, secure = u.Host, u.Scheme == "https"
	}
	if !secure {
		err := visit(ctx, c.DialTimeout, address, greet)
		if err != nil && visit(ctx, c.DialTimeout, address, speaksTLS) == nil {
			return refused("it speaks TLS: write the endpoint as https://%s", address)
		}
		return err
	}
	config, err := c.TLS.config(time.Now())
	if err != nil {
		return refusal{err}
	}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	config.NextProtos = []string{"h2"}
	err = c.TLS.explain(visit(ctx, c.DialTimeout, address, func(conn net.Conn) error {
		// A server that does not take this side's certificate refuses it only
		// after the handshake.
		return greet(tls.Client(conn, config))
	}), address)
	var r refusal
	if err != nil && !errors.As(err, &r) && visit(ctx, c.DialTimeout, address, greet) == nil {
		return plainServer(address)
	}
	return err
}

func plainServer(address string) error {
	return refused("it does not speak TLS: write the endpoint as http://%s", address)
}

// visit connects for as long as one attempt may take.
func visit(ctx context.Context, timeout time.Duration, address string, talk func(net.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	return talk(conn)
}

// greet sends hello and waits for the first byte of the answer.
func greet(conn net.Conn) error {
	if _, err := conn.Write(hello); err != nil {
		return fmt.Errorf("say hello: %w", err)
	}
	answer := make([]byte, 5)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return fmt.Errorf("wait for an answer: %w", err)
	}
	if bytes.HasPrefix(answer, []byte("HTTP/")) {
		return errors.New("it speaks HTTP/1")
	}
	return nil
}

// speaksTLS begins a handshake and succeeds as soon as there is a certificate.
func speaksTLS(conn net.Conn) error {
	answered := false
	err := tls.Client(conn, &tls.Config{
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, // no call is made over it
		VerifyConnection: func(tls.ConnectionState) error { answered = true; return nil },
	}).Handshake()
	if answered {
		return nil
	}
	return err
}

// explain names the file or field that a failed handshake is about.
func (t TLS) explain(err error, address string) error {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		alert   *net.OpError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown):
		return refused("etcdTLS.caFile: %s does not vouch for it: %w", orHost(t.CAFile), err)
	case errors.As(err, &name):
		return refused("etcdTLS.serverName: %q is not in its certificate: %w", t.ServerName, err)
	case errors.As(err, &invalid):
		return refused("its certificate is not good: %w", err)
	case errors.As(err, &record):
		return plainServer(address)
	case errors.As(err, &alert) && alert.Op == "remote error":
		if t.CertFile == "" {
			return refused("etcdTLS.certFile: not set, and it asks for a certificate: %w", err)
		}
		return refused("etcdTLS.certFile: it does not take %s: %w", t.CertFile, err)
	}
	return err
}

func orHost(file string) string {
	if file == "" {
		return "what this host trusts"
	}
	return strings.TrimSpace(file)
}
