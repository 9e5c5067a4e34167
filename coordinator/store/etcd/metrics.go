package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
)

// metrics are a store's own.
type metrics struct {
	txn      prometheus.Histogram
	errors   *prometheus.CounterVec
	dbBytes  prometheus.Gauge
	alarms   *prometheus.GaugeVec
	members  prometheus.Gauge
	wentBack prometheus.Counter
}

// newMetrics registers them; a nil r keeps them to the store.
func newMetrics(r prometheus.Registerer, h *history) (*metrics, error) {
	m := &metrics{
		txn: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "muster_store_txn_seconds", Help: "Round trips of transactions, whatever their outcome.",
			Buckets:                     []float64{0.0005, 0.001, 0.0025, 0.01, 0.05, 0.25, 1, 5},
			NativeHistogramBucketFactor: 1.2, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
		}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_store_errors_total", Help: "Calls that failed, by kind.",
		}, []string{"kind"}),
		dbBytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "muster_store_db_bytes", Help: "Size of the largest member's database, as its quota counts it.",
		}),
		alarms: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "muster_store_alarm", Help: "1 while a member has raised the alarm.",
		}, []string{"alarm"}),
		members:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "muster_store_members", Help: "Members that answer and know a leader."}),
		wentBack: prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_store_went_back_total", Help: "Restored backups that were noticed."}),
	}
	for _, alarm := range alarmNames {
		m.alarms.WithLabelValues(alarm)
	}
	if r == nil {
		return m, nil
	}
	revision := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "muster_store_revision", Help: "The highest revision seen.",
	}, func() float64 { return float64(h.newest()) })
	for _, c := range []prometheus.Collector{m.txn, m.errors, m.dbBytes, m.alarms, m.members, m.wentBack, revision} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register the store's metrics: %w", err)
		}
	}
	return m, nil
}

// failed counts an error by its kind.
func (m *metrics) failed(err error) { m.errors.WithLabelValues(kind(err)).Inc() }

// kind is the class of a call's error. The order counts: an unknown outcome
// matters most to its caller.
func kind(err error) string {
	var (
		ops   *record.TooManyOpsError
		bytes *record.TooLargeError
	)
	switch {
	case errors.Is(err, record.ErrWentBack):
		return "went_back"
	case errors.Is(err, record.ErrUnknownOutcome):
		return "unknown_outcome"
	case errors.Is(err, record.ErrNoSpace):
		return "no_space"
	case errors.Is(err, record.ErrLeaseGone):
		return "lease_gone"
	case errors.Is(err, store.ErrClosed):
		return "closed"
	case errors.As(err, &ops), errors.As(err, &bytes):
		return "too_large"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "unanswered"
	}
	return "refused"
}
