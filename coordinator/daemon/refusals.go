package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"

	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/wire/limits"
)

// refusals counts and logs the messages and acts of agents that this
// coordinator refuses for their size, content or number (docs/limits.md).
// Methods may be called by any goroutine and do not block.
type refusals struct {
	log      *slog.Logger
	lines    rate.Sometimes // of messages, in the log
	budgets  *prometheus.CounterVec
	messages *prometheus.CounterVec
	// methods are those that the server serves, set before it does: the only
	// labels of messages, beside otherMethod.
	methods map[string]bool
}

// otherMethod is the label of a method that is not served.
const otherMethod = "other"

func newRefusals(log *slog.Logger, registry prometheus.Registerer) *refusals {
	r := &refusals{
		log: log, lines: rate.Sometimes{First: 10, Interval: time.Second},
		budgets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_coordinator_over_budget_total",
			Help: "Acts of nodes that were refused because the node had used up its budget, by budget.",
		}, []string{"budget"}),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_coordinator_messages_refused_total",
			Help: "Messages that were refused because a value is beyond its limit, by gRPC method.",
		}, []string{"method"}),
	}
	registry.MustRegister(r.budgets, r.messages)
	return r
}

// know takes the methods of servers on which every service is registered; a nil
// server has none.
func (r *refusals) know(servers ...*grpc.Server) {
	r.methods = map[string]bool{}
	for _, s := range servers {
		if s == nil {
			continue
		}
		for service, info := range s.GetServiceInfo() {
			for _, m := range info.Methods {
				r.methods["/"+service+"/"+m.Name] = true
			}
		}
	}
}

// overBudget counts an act beyond a budget. Package rpc logs it.
func (r *refusals) overBudget(_ resource.NodeID, b rpc.Budget) {
	r.budgets.WithLabelValues(b.Name).Inc()
}

// message counts a message beyond its limits and logs its caller, a few lines at
// once and then one a second: a hostile host could fill the log.
func (r *refusals) message(ctx context.Context, method string, v *limits.Violation) {
	label := otherMethod
	if r.methods[method] {
		label = method
	}
	r.messages.WithLabelValues(label).Inc()
	r.lines.Do(func() {
		who := "a holder of the token"
		if caller, err := rpcauth.CallerOf(ctx); err == nil {
			who = caller.Identity.String()
		}
		r.log.Warn("message_refused", "method", method, "caller", who, "problem", v.Error())
	})
}
