package projector

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/spool"
	"github.com/musterd/muster/resource"
)

// Phase is what a projector does.
type Phase string

// The phases.
const (
	Waiting    Phase = "Waiting"    // another coordinator is elected
	Starting   Phase = "Starting"   // it is elected and looks for its place
	Projecting Phase = "Projecting" // it follows the store
)

// Status is a projector as others see it.
type Status struct {
	Phase Phase
	// Position is the revision that the database has, as far as this coordinator knows;
	// Followed the last one that its rows are made of.
	Position, Followed resource.Revision
	// SpoolBytes and SpoolBatches are the spool of this coordinator.
	SpoolBytes   int64
	SpoolBatches int
	// Away is why the database does not answer, "" while it does.
	Away      string
	AwaySince time.Time
	// Reason is what a projector waits for that is Starting.
	Reason string
}

// Status is the present one.
func (p *Projector) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// tell updates the status and the gauges.
func (p *Projector) tell(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.status
	s.Phase, s.Reason, s.Position = Waiting, "", p.position
	s.SpoolBytes, s.SpoolBatches = p.spool.Bytes(), p.spool.Len()
	lag, late := 0.0, 0.0
	if t := p.term; t != nil {
		s.Phase, s.Reason = Starting, t.why
		if t.narrator != nil {
			s.Phase, s.Reason, s.Followed = Projecting, "", t.narrator.Revision()
			lag = float64(s.Followed - s.Position)
			if t.narrator.Rows() > 0 || s.SpoolBatches > 0 || p.inflight != nil {
				late = now.Sub(p.metrics.lastWrite(now)).Seconds()
			}
		}
	}
	p.metrics.lag.Set(lag)
	p.metrics.late.Set(late)
	p.metrics.spool.Set(float64(s.SpoolBytes))
	p.metrics.position.Set(float64(s.Position))
	p.metrics.elected.Set(0)
	if p.term != nil {
		p.metrics.elected.Set(1)
	}
}

func (p *Projector) spoolBytes() int64 {
	if p.config.SpoolBytes > 0 {
		return p.config.SpoolBytes
	}
	return spool.DefaultMost
}

type metrics struct {
	elected, lag, late, spool, position prometheus.Gauge
	rows, errors, gaps, unreadable      prometheus.Counter
	last                                time.Time
}

func newMetrics(r prometheus.Registerer) *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "muster", Subsystem: "history", Name: name, Help: help})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "muster", Subsystem: "history", Name: name, Help: help})
	}
	m := &metrics{
		elected:    gauge("projector", "1 while this coordinator writes the history, else 0."),
		lag:        gauge("lag_revisions", "Revisions of the store that this coordinator has followed and the database does not have yet."),
		late:       gauge("lag_seconds", "Seconds since the last write to the database, while rows wait for it."),
		spool:      gauge("spool_bytes", "Bytes of history that wait in this coordinator's spool for the database."),
		position:   gauge("position", "Revision of the store up to which the database has the history."),
		rows:       counter("rows_total", "Rows written to the database."),
		errors:     counter("errors_total", "Failed writes and reads of the database and of the spool."),
		gaps:       counter("gaps_total", "Gaps of the history that this coordinator has recorded."),
		unreadable: counter("unreadable_keys_total", "Keys of the store that made no rows because they could not be read."),
	}
	if r != nil {
		r.MustRegister(m.elected, m.lag, m.late, m.spool, m.position, m.rows, m.errors, m.gaps, m.unreadable)
	}
	return m
}

// wrote counts the rows of a batch.
func (m *metrics) wrote(b *history.Batch) {
	m.last = time.Now()
	m.rows.Add(float64(len(b.Nodes) + len(b.Jobs) + len(b.Units) + len(b.Grants) + len(b.Waits) + len(b.Quotas) + len(b.Preemptions) +
		len(b.Conditions) + len(b.Audit) + len(b.Slices) + len(b.Slots)))
}

// lastWrite is when a batch was written last.
func (m *metrics) lastWrite(now time.Time) time.Time {
	if m.last.IsZero() {
		m.last = now
	}
	return m.last
}
