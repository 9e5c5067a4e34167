package agent

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/netlimit"
	"github.com/musterd/muster/rpcauth"
)

// scrapers bounds the connections of the metrics listener, scrapes the requests
// for metrics that are served at a time; others are answered with 503.
const (
	scrapers = 64
	scrapes  = 8
)

// limitConnections bounds the connections of a listener and shows them as
// metrics.
func (a *Agent) limitConnections(name string, l net.Listener, limits netlimit.Limits) (net.Listener, error) {
	limited := netlimit.New(l, name, limits, a.log)
	if err := a.metrics.add(limited.Collector("muster_agent", prometheus.Labels{"node": string(a.config.Node)})); err != nil {
		return nil, errors.Join(fmt.Errorf("agent %s: metrics of listener %s: %w", a.config.Node, name, err), l.Close())
	}
	return limited, nil
}

// webListener is the metrics listener. Beyond loopback it speaks TLS with the node's
// certificate; its address was accepted only with one.
func (a *Agent) webListener() net.Listener {
	if i := a.deps.Identity; i != nil && rpcauth.CheckLoopback("", a.http.Addr().String()) != nil {
		return tls.NewListener(a.http, i.tls.WebConfig())
	}
	return a.http
}

// webServer serves metrics: small requests, and answers within 30 s.
func webServer(h http.Handler, log *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler: h, Protocols: protocols, ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
