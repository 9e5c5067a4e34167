package gossip

import "github.com/prometheus/client_golang/prometheus"

// collector reads a member's counters.
type collector struct {
	rings                     *Rings
	refused, dropped, putBack *prometheus.Desc
}

// Collector is the member's metrics: muster_gossip_refused_total,
// muster_gossip_dropped_total and muster_gossip_keyring_put_back_total, with
// the given labels.
func (r *Rings) Collector(labels prometheus.Labels) prometheus.Collector {
	return collector{
		rings: r,
		refused: prometheus.NewDesc("muster_gossip_refused_total",
			"Messages, members and streams of the rings that were refused, by ring and reason.", []string{"ring", "reason"}, labels),
		dropped: prometheus.NewDesc("muster_gossip_dropped_total",
			"Queries and events of the ring that were not served because 64 others waited.", nil, labels),
		putBack: prometheus.NewDesc("muster_gossip_keyring_put_back_total",
			"Changes of the gossip keyring that did not come from a coordinator and were undone; more than 0 is a fault.", nil, labels),
	}
}

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.refused
	ch <- c.dropped
	ch <- c.putBack
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	for _, reason := range allRefusals {
		counter(c.refused, c.rings.Serf.refused.count(reason), string(SerfRing), string(reason))
		counter(c.refused, c.rings.Capacity.refused.count(reason), string(CapacityRing), string(reason))
	}
	counter(c.dropped, c.rings.Serf.Dropped())
	if k := c.rings.Serf.keyring; k != nil {
		counter(c.putBack, k.PutBack())
	}
}

// Refused counts messages, members and streams of the serf ring that this
// member refused for the reason.
func (s *Serf) Refused(reason Refusal) uint64 { return s.refused.count(reason) }
