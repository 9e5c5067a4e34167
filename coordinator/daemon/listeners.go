package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"

	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/netlimit"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/wire"
	"github.com/musterd/muster/wire/limits"
)

// listeners are the addresses that a coordinator serves.
//
// Invariant: metrics is nil where REST serves the metrics, enroll is nil where
// agents enrol at grpc.
type listeners struct {
	rest, grpc, metrics, enroll net.Listener
}

// bound lists the listeners that are open, by the key of the configuration.
func (l *listeners) bound() map[string]net.Listener {
	all := map[string]net.Listener{}
	for key, one := range map[string]net.Listener{"restListen": l.rest, "grpcListen": l.grpc, "metricsListen": l.metrics, "enrollListen": l.enroll} {
		if one != nil {
			all[key] = one
		}
	}
	return all
}

// bindAll binds every address of the configuration. Each listener limits its
// connections by a budget of its own: a flood at one address leaves the others
// reachable.
func (d *Daemon) bindAll(registry prometheus.Registerer) error {
	c := d.config
	for _, a := range []struct {
		key, address, name string
		into               *net.Listener
		limits             netlimit.Limits
		optional           bool
	}{
		{key: "restListen", address: c.RESTListen, name: "rest", into: &d.listen.rest, limits: rest.Connections()},
		{key: "grpcListen", address: c.GRPCListen, name: "grpc", into: &d.listen.grpc, limits: rpcauth.CoordinatorConnections()},
		{key: "metricsListen", address: c.MetricsListen, name: "metrics", into: &d.listen.metrics, limits: netlimit.Limits{Total: scrapers}, optional: true},
		{key: "enrollListen", address: c.EnrollListen, name: "enroll", into: &d.listen.enroll, limits: rpcauth.EnrollmentConnections(), optional: true},
	} {
		if a.optional && a.address == "" {
			continue
		}
		l, err := bind(c, a.key, a.address)
		if err != nil {
			return err
		}
		limited := netlimit.New(l, a.name, a.limits, d.log)
		*a.into = limited
		registry.MustRegister(limited.Collector("muster", nil))
	}
	return nil
}

const (
	// scrapes bounds the requests for metrics that are served at a time; others are
	// answered with 503.
	scrapes = 8
	// scrapers bounds the connections to metricsListen.
	scrapers = 64
)

// serveMetrics adds /metrics and /metrics/cluster to REST or, with metricsListen,
// serves them on that address alone.
func (d *Daemon) serveMetrics(web *http.ServeMux, own prometheus.Gatherer) {
	mux := web
	if d.listen.metrics != nil {
		mux = http.NewServeMux()
		d.metrics = rest.NewServer(mux, d.log)
	}
	serve := func(from prometheus.Gatherer) http.Handler {
		return promhttp.HandlerFor(from, promhttp.HandlerOpts{MaxRequestsInFlight: scrapes})
	}
	process, callers := serve(own), d.callers
	if !d.config.MetricsToken.IsZero() {
		callers = service.AnyOf(service.StaticToken(d.config.MetricsToken.Secret()), d.callers)
		process = rest.AdminOnly(callers, d.audit, process)
	}
	mux.Handle("GET /metrics", process)
	mux.Handle("GET /metrics/cluster", rest.AdminOnly(callers, d.audit, serve(d.cluster)))
}

// serveEnrolment serves enrolment alone at enrollListen, to hosts that have no
// certificate yet. At grpcListen every peer then needs a certificate; nodes renew
// their certificates there.
func (d *Daemon) serveEnrolment() {
	if d.listen.enroll == nil {
		return
	}
	options := append(d.security.serverOptions(rpcauth.EnrollmentRules()), limits.ServerOptions(d.refusals.message)...)
	options = append(options, grpc.ChainUnaryInterceptor(d.limitEnrolment))
	d.enrolment = grpc.NewServer(append(options, rpcauth.Limits()...)...)
	musterv1.RegisterEnrollmentServer(rpcauth.Register(d.enrolment), d.security.enroll)
}

// limitEnrolment bounds a host's wait for the store (service.Limit). The agent asks again.
func (d *Daemon) limitEnrolment(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if !strings.HasPrefix(info.FullMethod, "/"+musterv1.Enrollment_ServiceDesc.ServiceName+"/") {
		return next(ctx, req)
	}
	limited, end := service.Limit(ctx, d.condition, service.Bound{Changes: true, Waits: true})
	defer end()
	answer, err := next(limited, req)
	if ended := service.Refused(limited); ended != nil && err != nil {
		err = wire.ToRefusal(ended)
	}
	return answer, err
}

// secured puts TLS around a listener for HTTP that is not on loopback or, with
// tls.rest, wherever it is.
func (d *Daemon) secured(l net.Listener) net.Listener {
	if d.config.TLS == nil || !d.config.TLS.REST && isLoopback(l.Addr()) {
		return l
	}
	return tls.NewListener(l, d.security.enroll.TLS().APIConfig())
}

// MetricsAddr is where /metrics is served.
func (d *Daemon) MetricsAddr() string {
	if d.listen.metrics == nil {
		return d.RESTAddr()
	}
	return d.reachable(d.listen.metrics)
}

// EnrollAddr is where hosts enrol.
func (d *Daemon) EnrollAddr() string {
	if d.listen.enroll == nil {
		return d.GRPCAddr()
	}
	return d.reachable(d.listen.enroll)
}

// listen binds a loopback address and names the field that holds it.
func listen(field, address string) (net.Listener, error) {
	if err := rpcauth.CheckLoopback(field, address); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot listen on %s: %w", field, address, err)
	}
	return l, nil
}
