package agent_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/rpcauth"
)

// With TLS an agent serves its metrics beyond loopback, by https with its own
// certificate. A stock client that trusts the cluster's authority reads them under
// the name that every node has, and under no other.
func TestMetricsLeaveTheHostWithTLS(t *testing.T) {
	authority, err := pki.NewAuthority(cluster, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, err := pki.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := authority.Issue(key.Public(), pki.Identity{Cluster: cluster, Role: pki.Node, ID: node}, nil, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	identity, err := agent.NewIdentity(rpcauth.Material{Chain: authority.Chain(leaf), Key: key, Roots: pki.Bundle{authority.Certificate}}, [][]byte{[]byte("0123456789abcdef")})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	c, d := r.config()
	c.MetricsListen, d.Metrics, d.Identity, d.Token = "0.0.0.0:0", prometheus.NewRegistry(), identity, rpcauth.Token{}
	a, err := agent.New(c, d)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	_, port, err := net.SplitHostPort(a.MetricsAddress())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate)
	get := func(name string) (string, error) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: name}}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: transport}).Get("https://" + net.JoinHostPort("127.0.0.1", port) + "/metrics")
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return string(text), err
	}
	if text, err := get(pki.NodeServerName); err != nil || !strings.Contains(text, "muster_agent_registered") {
		t.Errorf("%v\n%.200s", err, text)
	}
	if _, err := get(node); err == nil {
		t.Error("the certificate is good for the node's id as host name")
	}
	plain, err := http.Get("http://" + net.JoinHostPort("127.0.0.1", port) + "/metrics")
	if err == nil {
		defer plain.Body.Close()
		if plain.StatusCode == http.StatusOK {
			t.Error("metrics are served in plain text")
		}
	}
}
