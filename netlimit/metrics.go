package netlimit

import "github.com/prometheus/client_golang/prometheus"

// Collector shows the listener's counters to Prometheus:
// PREFIX_connections{listener,state} and
// PREFIX_connections_closed_total{listener,reason}.
func (l *Listener) Collector(prefix string, labels prometheus.Labels) prometheus.Collector {
	all := prometheus.Labels{"listener": l.name}
	for name, value := range labels {
		all[name] = value
	}
	return &collector{
		listener: l,
		open:     prometheus.NewDesc(prefix+"_connections", "Open connections, by whether their peers have proven who they are.", []string{"state"}, all),
		closed:   prometheus.NewDesc(prefix+"_connections_closed_total", "Connections closed at a limit, by limit; see docs/limits.md.", []string{"reason"}, all),
	}
}

type collector struct {
	listener     *Listener
	open, closed *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	to <- c.open
	to <- c.closed
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	l := c.listener
	l.mu.Lock()
	unproven, proven := l.unproven.Len(), l.total-l.unproven.Len()
	l.mu.Unlock()
	to <- prometheus.MustNewConstMetric(c.open, prometheus.GaugeValue, float64(unproven), "unproven")
	to <- prometheus.MustNewConstMetric(c.open, prometheus.GaugeValue, float64(proven), "proven")
	for r := range reasons {
		to <- prometheus.MustNewConstMetric(c.closed, prometheus.CounterValue, float64(l.closed[r].Load()), r.String())
	}
}
