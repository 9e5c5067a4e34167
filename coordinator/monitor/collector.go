package monitor

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/coordinator/lead"
)

// Fresh is how long figures serve: scrapes in between cost the leader nothing.
const Fresh = 10 * time.Second

// Source is the coordinator that is shown.
type Source interface {
	// Leading reports whether it leads now.
	Leading() bool
	// Figures returns a copy of the leader's figures, nil where this coordinator
	// does not lead or does not answer in time.
	Figures() *lead.Figures
}

// Collector shows figures. A coordinator that does not lead shows none.
type Collector struct {
	source Source
	now    func() time.Time
	series series

	mu      sync.Mutex
	bounds  bounds
	taken   time.Time
	metrics []prometheus.Metric
}

// New returns a collector that asks source at most once in Fresh.
func New(source Source, now func() time.Time) *Collector {
	return &Collector{source: source, now: now, series: newSeries(), bounds: newBounds()}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.series.all() {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	switch now := c.now(); {
	case !c.source.Leading():
		c.taken, c.metrics = time.Time{}, nil
	case c.taken.IsZero() || now.Sub(c.taken) >= Fresh:
		c.taken, c.metrics = time.Time{}, nil
		if f := c.source.Figures(); f != nil {
			c.taken, c.metrics = now, c.series.of(f, c.bounds)
		}
	}
	metrics := c.metrics
	c.mu.Unlock()
	for _, m := range metrics {
		to <- m
	}
}

// bounds are those of each label.
type bounds struct{ nodes, namespaces, queues, models, quotas, treeNodes *bound }

func newBounds() bounds {
	return bounds{
		newBound(MostNodes), newBound(MostNamespaces), newBound(MostQueues), newBound(MostModels), newBound(MostQuotas), newBound(MostTreeNodes),
	}
}

func (b bounds) begin() {
	for _, one := range []*bound{b.nodes, b.namespaces, b.queues, b.models, b.quotas, b.treeNodes} {
		one.begin()
	}
}
