package coordinator

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the coordinator's own; registered once per process part.
type metrics struct {
	commits, aborts prometheus.Counter
	evictions       prometheus.Counter
	preemptions     prometheus.Counter
	missedWakes     prometheus.Counter
	latency         prometheus.Histogram
	waits           prometheus.Histogram
	reserve, commit prometheus.Histogram // the stages of an attempt that committed
	queued, nodes   prometheus.Gauge
	running         prometheus.Gauge
	unapproved      prometheus.Gauge
	leads, cached   prometheus.Gauge
	terms           prometheus.Counter
	astray          prometheus.Counter
	violations      *prometheus.CounterVec // by reason
	faults          *prometheus.CounterVec // by fault
	suspect         prometheus.Gauge
	mailWaits       prometheus.Counter
	ignored         *prometheus.CounterVec // gossip, by reason
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		commits: prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_commits_total", Help: "Transactions that became COMMITTED."}),
		aborts:  prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_aborts_total", Help: "Attempts that became ABORTED."}),
		evictions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "muster_evictions_total", Help: "Transactions that became EVICTING: for a unit that takes their place, a drain, an operator.",
		}),
		preemptions: prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_preemptions_total", Help: "Units that were committed in the place of others."}),
		missedWakes: prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_missed_wakes_total", Help: "Waiting units that had room and were overlooked until the backstop tried them. More than 0 is a fault of Muster."}),
		latency:     histogram("muster_allocation_seconds", "From acceptance to COMMITTED, of units that had room at once.", fast),
		waits:       histogram("muster_queue_wait_seconds", "From acceptance to COMMITTED, of all units; counted in whole seconds of acceptance.", slow),
		reserve:     histogram("muster_reserve_seconds", "From the first Reserve sent to the last Yes, of attempts that committed.", fast),
		commit:      histogram("muster_commit_seconds", "From the last Yes to COMMITTED: the wait for a shared Txn, and the store.", fast),
		queued:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "muster_queue_units", Help: "Units that wait."}),
		running:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "muster_live_transactions", Help: "Transactions under way or live."}),
		nodes:       prometheus.NewGauge(prometheus.GaugeOpts{Name: "muster_nodes_ready", Help: "Nodes that take new work."}),
		unapproved: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "muster_nodes_awaiting_approval", Help: "Nodes that take no new work until an operator approves what they have registered.",
		}),
		astray: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "muster_views_astray_total", Help: "Times an agent's ledger was not what the leader had been told; it then asked for everything.",
		}),
		violations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_coordinator_protocol_violations_total", Help: "Messages of agents that no agent of this program sends; their nodes are isolated.",
		}, []string{"reason"}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_coordinator_reserve_faults_total", Help: "Attempts that a node has failed, by fault: silent, refused, wrong_vote, registered.",
		}, []string{"fault"}),
		suspect: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "muster_coordinator_nodes_suspect", Help: "Nodes that are the last choice because they do not answer reserves as they should.",
		}),
		mailWaits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "muster_coordinator_agent_mail_waits_total", Help: "Times a stream waited because the events of its node filled its mailbox.",
		}),
		ignored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_coordinator_gossip_ignored_total", Help: "Gossip about agents that was not followed, by reason: unregistered, other_address, other_name.",
		}, []string{"reason"}),
		leads: prometheus.NewGauge(prometheus.GaugeOpts{Name: "muster_leader", Help: "1 while this coordinator leads, 0 while it follows."}),
		terms: prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_terms_total", Help: "Terms in which this coordinator has led."}),
		cached: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "muster_cache_revision", Help: "The store's revision that this coordinator's cache is at.",
		}),
	}
	if r != nil {
		r.MustRegister(m.commits, m.aborts, m.evictions, m.preemptions, m.missedWakes, m.latency, m.waits, m.reserve, m.commit, m.queued, m.running, m.nodes, m.leads, m.astray, m.terms, m.cached,
			m.violations, m.faults, m.suspect, m.unapproved, m.mailWaits, m.ignored)
	}
	return m
}

// The bounds of histograms: few, since each is a series. Prometheus' native
// histograms have finer ones.
var (
	fast = []float64{0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1, 5}
	slow = []float64{1, 10, 60, 600, 3600, 6 * 3600, 24 * 3600}
)

func histogram(name, help string, bounds []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: bounds,
		NativeHistogramBucketFactor: 1.2, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	})
}
