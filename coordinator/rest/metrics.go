package rest

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts requests by pattern and status code; never by namespace or
// name, which are the tenants' own.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

// newMetrics registers with r; nil means no metrics.
func newMetrics(r prometheus.Registerer) *metrics {
	if r == nil {
		return nil
	}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_rest_requests_total", Help: "Requests answered, by route and status code.",
		}, []string{"route", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "muster_rest_request_seconds", Help: "Time to answer, waits included, by route.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 14),
		}, []string{"route"}),
	}
	r.MustRegister(m.requests, m.seconds)
	return m
}

// observer returns what records one request to a route.
func (m *metrics) observer(route string) func(code int, took time.Duration) {
	if m == nil {
		return func(int, time.Duration) {}
	}
	requests := m.requests.MustCurryWith(prometheus.Labels{"route": route})
	seconds := m.seconds.WithLabelValues(route)
	return func(code int, took time.Duration) {
		requests.WithLabelValues(strconv.Itoa(code)).Inc()
		seconds.Observe(took.Seconds())
	}
}
