package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/restserver"
	"github.com/musterd/muster/test/resttest"
)

const (
	host  = "scheduler.internal"
	token = "s3cret"
)

// address is where the example's server is: the port is in the example, so the
// address is one of this machine's that nothing else uses.
var address = net.IPv4(127, 77, 64, 43)

// TestTheExampleOfTheDesign runs main against a server of the name that is in it.
func TestTheExampleOfTheDesign(t *testing.T) {
	certificate := vouchFor(t, host)
	resolve(t, host, address)
	t.Setenv("SCHEDULER_TOKEN", token)
	cluster := resttest.New(time.Now,
		resttest.Node{Name: "n1", CPUs: 16, Memory: 128 << 30},
		resttest.Node{Name: "n2", CPUs: 16, Memory: 128 << 30, GPUs: 8, Labels: map[string]string{"gpu-type": "nvidia-a100"}})
	handler, stop := restserver.New(cluster, token)
	t.Cleanup(stop)
	listener, err := tls.Listen("tcp", net.JoinHostPort(address.String(), "6443"), &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close(); <-served })

	if got, want := outputOf(t, main), "Allocated on node: n2\n"; got != want {
		t.Errorf("the example prints %q, want %q", got, want)
	}
	client, err := sdk.NewClient(sdk.Config{Endpoint: "https://" + host + ":6443", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	last, err := client.Allocations("ml-team").Get(t.Context(), "training-job-1", sdk.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if grace := last.Metadata.DeletionGracePeriodSeconds; last.Status.Phase != api.Terminating || grace == nil || *grace != 30 {
		t.Errorf("the example's allocation is %s with the grace %v, want Terminating: the grace that the example writes is kept", last.Status.Phase, grace)
	}
}

// outputOf is what a function prints.
func outputOf(t *testing.T, run func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stdout
	os.Stdout = w
	run()
	os.Stdout = before
	_ = w.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// vouchFor makes a certificate for a name that this process trusts: Go reads the
// system's authorities when the first connection needs them.
func vouchFor(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "authorities.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file)
	t.Setenv("SSL_CERT_DIR", folder)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// resolve has this process find a name at an address: a DNS server on a
// connection in memory answers all questions.
func resolve(t *testing.T, name string, at net.IP) {
	t.Helper()
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer func() { _ = server.Close() }()
			_ = answerDNS(server, name, at)
		}()
		return client, nil
	}}
}

// answerDNS answers the questions of one connection. Each message has its length
// before it, as over TCP.
func answerDNS(c net.Conn, name string, at net.IP) error {
	for {
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return err
		}
		question := make([]byte, int(length[0])<<8|int(length[1]))
		if _, err := io.ReadFull(c, question); err != nil {
			return err
		}
		var m dnsmessage.Message
		if err := m.Unpack(question); err != nil {
			return err
		}
		m.Response, m.Authoritative, m.Additionals = true, true, nil
		for _, q := range m.Questions {
			if q.Name.String() == name+"." && q.Type == dnsmessage.TypeA {
				m.Answers = append(m.Answers, dnsmessage.Resource{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
					Body:   &dnsmessage.AResource{A: [4]byte(at.To4())},
				})
			}
		}
		answer, err := m.Pack()
		if err != nil {
			return err
		}
		if _, err := c.Write(append([]byte{byte(len(answer) >> 8), byte(len(answer))}, answer...)); err != nil {
			return err
		}
	}
}
