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
	throttle *prometheus.CounterVec
	cuts     prometheus.Counter
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
			// Few bounds for each of the routes; native histograms have finer ones.
			Buckets:                     []float64{0.001, 0.01, 0.1, 1, 10},
			NativeHistogramBucketFactor: 1.2, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
		}, []string{"route"}),
	}
	m.throttle = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_rest_throttled_total", Help: "Requests refused with 429 for lack of room, by the bound; see docs/limits.md.",
	}, []string{"reason"})
	m.cuts = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "muster_rest_answers_cut_total", Help: "Answers given up because their reader took nothing for 5 s (1 s while others waited for room), or not all within 30 s.",
	})
	r.MustRegister(m.requests, m.seconds, m.throttle, m.cuts)
	return m
}

// refused counts a request that was refused for lack of room.
func (m *metrics) refused(at throttle) {
	if m != nil {
		m.throttle.WithLabelValues(string(at)).Inc()
	}
}

// cut counts an answer that its reader did not take.
func (m *metrics) cut() {
	if m != nil {
		m.cuts.Inc()
	}
}

// observer returns the function that records one request to a route.
func (m *metrics) observer(route string) func(code int, took time.Duration) {
	if m == nil {
		return func(int, time.Duration) {}
	}
	requests := m.requests.MustCurryWith(prometheus.Labels{"route": route})
	return func(code int, took time.Duration) {
		requests.WithLabelValues(strconv.Itoa(code)).Inc()
		m.seconds.WithLabelValues(route).Observe(took.Seconds()) // a route that nobody uses has no series
	}
}
