package daemon

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/netlimit"
	"github.com/musterd/muster/rpcauth"
)

// scrapes bounds the requests for metrics that are served at a time: they need no
// token. Others are answered with 503.
const scrapes = 8

// limitConnections bounds the connections of both listeners, each by a budget of
// its own: a flood of one leaves the other reachable.
func (d *Daemon) limitConnections(registry prometheus.Registerer) {
	web := netlimit.New(d.restLis, "rest", rest.Connections(), d.log)
	agents := netlimit.New(d.grpcLis, "grpc", rpcauth.CoordinatorConnections(), d.log)
	d.restLis, d.grpcLis = web, agents
	registry.MustRegister(web.Collector("muster", nil), agents.Collector("muster", nil))
}
