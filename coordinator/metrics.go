package coordinator

import "github.com/prometheus/client_golang/prometheus"

// metrics are the coordinator's own; registered once per process part.
type metrics struct {
	commits, aborts prometheus.Counter
	latency         prometheus.Histogram
	queued, nodes   prometheus.Gauge
	running         prometheus.Gauge
	leads           prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		commits: prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_commits_total", Help: "Transactions that became COMMITTED."}),
		aborts:  prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_aborts_total", Help: "Attempts that became ABORTED."}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "muster_allocation_seconds", Help: "From acceptance to COMMITTED, of units that had room at once.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 2, 16),
		}),
		queued:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "muster_queue_units", Help: "Units that wait."}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{Name: "muster_live_transactions", Help: "Transactions under way or live."}),
		nodes:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "muster_nodes_ready", Help: "Nodes that take new work."}),
		leads:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "muster_leader", Help: "1 while this coordinator leads."}),
	}
	if r != nil {
		r.MustRegister(m.commits, m.aborts, m.latency, m.queued, m.running, m.nodes, m.leads)
	}
	return m
}
