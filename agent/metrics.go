package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
)

// scrapeTimeout bounds how long a scrape waits for the owner.
const scrapeTimeout = time.Second

// metrics counts the owner's actions; gauges are read from the ledger when they
// are scraped.
type metrics struct {
	registerer prometheus.Registerer // nil without metrics
	collectors []prometheus.Collector
	labels     prometheus.Labels

	decisions *prometheus.CounterVec
	latency   prometheus.Observer
	appends   prometheus.Counter
	syncs     prometheus.Counter
	alarms    prometheus.Counter
	events    *prometheus.CounterVec
}

func newMetrics(a *Agent) (*metrics, error) {
	labels := prometheus.Labels{"node": string(a.config.Node)}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels})
	}
	latency := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "muster_agent_decide_seconds", Help: "Time to decide and apply one command, without the journal.", ConstLabels: labels,
		Buckets: prometheus.ExponentialBuckets(1e-6, 4, 9),
	})
	m := &metrics{
		labels: labels,
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_agent_decisions_total", Help: "Commands decided, by kind and outcome.", ConstLabels: labels,
		}, []string{"command", "outcome"}),
		latency: latency,
		appends: counter("muster_agent_journal_records_total", "Records appended to the journal."),
		syncs:   counter("muster_agent_journal_syncs_total", "Times the journal was made durable."),
		alarms:  counter("muster_agent_alarms_total", "Things that must not happen; the log says which."),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_agent_device_events_total", Help: "What devices and their driver told, by kind.", ConstLabels: labels,
		}, []string{"kind"}),
	}
	if a.deps.Metrics == nil {
		return m, nil
	}
	m.registerer = a.deps.Metrics
	for _, c := range []prometheus.Collector{m.decisions, latency, m.appends, m.syncs, m.alarms, m.events, newGauges(a, labels), newWorkGauges(a, labels)} {
		if err := m.add(c); err != nil {
			m.unregister()
			return nil, fmt.Errorf("agent %s: metrics: %w", a.config.Node, err)
		}
	}
	return m, nil
}

// add registers one more collector, until unregister.
func (m *metrics) add(c prometheus.Collector) error {
	if m.registerer == nil {
		return nil
	}
	if err := m.registerer.Register(c); err != nil {
		return err
	}
	m.collectors = append(m.collectors, c)
	return nil
}

// addRings adds the counters of the rings.
func (m *metrics) addRings(r *gossip.Rings) error {
	if err := m.add(r.Collector(m.labels)); err != nil {
		return fmt.Errorf("metrics of the rings: %w", err)
	}
	return nil
}

func (m *metrics) unregister() {
	for _, c := range m.collectors {
		m.registerer.Unregister(c)
	}
	m.collectors = nil
}

func (m *metrics) decided(c ledger.Command, r ledger.Reply, took time.Duration) {
	outcome := "accepted"
	if r.Refused() {
		outcome = r.Reasons[0].Code
	}
	m.decisions.WithLabelValues(kindOf(c), outcome).Inc()
	m.latency.Observe(took.Seconds())
}

// kindOf names a command without allocating.
func kindOf(c ledger.Command) string {
	switch c.(type) {
	case grant.Reserve:
		return "reserve"
	case grant.Commit:
		return "commit"
	case grant.Abort:
		return "abort"
	case grant.Release:
		return "release"
	case grant.Evict:
		return "evict"
	case grant.Forget:
		return "forget"
	case ledger.Resolved:
		return "resolved"
	case ledger.Registered:
		return "registered"
	case grant.Cordon:
		return "cordon"
	case grant.KubeletPool:
		return "kubelet_pool"
	case ledger.SetHealth:
		return "set_health"
	case ledger.Start:
		return "start"
	case ledger.Tick:
		return "tick"
	case grant.Reconcile:
		return "reconcile"
	}
	return "other"
}

// gauges reads the ledger at each scrape.
type gauges struct {
	agent                                *Agent
	total, free, grants, registered, bad *prometheus.Desc
	journal, quarantined, full, memory   *prometheus.Desc
	contact, stopped                     *prometheus.Desc
	use, memoryUsed                      *prometheus.Desc
	gpuFree, gpuHealthy                  *prometheus.Desc
	pool, units, kubelet                 *prometheus.Desc
}

func newGauges(a *Agent, labels prometheus.Labels) *gauges {
	desc := func(name, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, variable, labels)
	}
	return &gauges{
		agent:      a,
		total:      desc("muster_agent_allocatable", "Amount of a resource that the host can hand out, without the pool of its kubelet.", "resource", "unit"),
		free:       desc("muster_agent_free", "Amount of a resource that nobody holds.", "resource", "unit"),
		grants:     desc("muster_agent_grants", "Transactions by state.", "state"),
		registered: desc("muster_agent_registered", "1 once this incarnation has registered."),
		bad:        desc("muster_agent_unhealthy_devices", "Devices that take no new work."),
		gpuFree:    desc("muster_agent_gpu_free", "Part of a GPU that nobody holds, 1 for all of it; 0 in MIG mode, where muster_agent_free counts instances.", "device", "uuid", "model"),
		gpuHealthy: desc("muster_agent_gpu_healthy", "1 while a GPU takes new work, else 0.", "device", "uuid", "model"),
		journal:    desc("muster_agent_journal_bytes", "Size of the journal's records."),

		memory: desc("muster_agent_memory_pressure", "1 while new work is refused because the host is short of memory; see the condition MemoryPressure."),
		full:   desc("muster_agent_disk_full", "1 while new work is refused because the journal or the assignment files have no room; see the condition DiskPressure."),

		quarantined: desc("muster_agent_quarantined", "1 while the store is older than what this agent has heard of; see muster reconcile."),
		contact:     desc("muster_agent_contact_age_seconds", "Time since the last contact with a coordinator that had the store; with the assume-dead policy only."),
		use:         desc("muster_agent_device_use_ratio", "Part of the driver's last sample period during which the device computed, 0 to 1; absent where the driver does not report it.", "device", "uuid", "model"),
		memoryUsed:  desc("muster_agent_device_memory_used_bytes", "Memory in use of a device or MIG instance; absent where the driver does not report it.", "device", "uuid", "model"),
		pool:        desc("muster_agent_kubelet_devices", "Devices of the kubelet's pool, by state: free, or lent to a container.", "state"),
		units:       desc("muster_agent_kubelet_units", "Units that the kubelet may hand out, by their resource name in Kubernetes.", "resource"),
		kubelet:     desc("muster_agent_kubelet_reachable", "1 while the kubelet and its PodResources API answer; see the condition KubeletPool."),
		stopped:     desc("muster_agent_stopped_transactions", "Transactions whose assignments are taken away for lack of contact."),
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		g.total, g.free, g.grants, g.registered, g.bad, g.journal, g.full, g.memory, g.quarantined, g.contact, g.stopped, g.use, g.memoryUsed, g.gpuFree, g.gpuHealthy, g.pool, g.units, g.kubelet,
	} {
		c <- d
	}
}

// Collect implements prometheus.Collector. An agent that has ended, or is too
// busy to answer in time, has no gauges.
func (g *gauges) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	var size int64
	view, err := g.agent.view(ctx, func(o *owner) { size = o.journal.Size() })
	if err != nil {
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	total, free := allocatable(view), view.Host.FreeVector(view.Free)
	for _, name := range total.Names() {
		gauge(g.total, name.Measure(total[name]), string(name), name.Unit())
		gauge(g.free, name.Measure(free[name]), string(name), name.Unit())
	}
	states := map[grant.State]int{}
	for _, granted := range view.Grants {
		states[granted.State]++
	}
	for s := grant.Waiting; s <= grant.Tombstone; s++ {
		gauge(g.grants, float64(states[s]), s.String())
	}
	bad, registered, quarantined, full, memory := 0, 0.0, 0.0, 0.0, 0.0
	models := g.agent.Host().Inventory().Devices
	for _, d := range view.GPUs {
		healthy := 1.0
		if !d.Health.Allocatable() {
			bad, healthy = bad+1, 0
		}
		model := ""
		if d.Index < len(models) { // the hardware may have changed since the view
			model = models[d.Index].Model
		}
		gauge(g.gpuFree, resource.GPU.Measure(int64(d.Milli)), strconv.Itoa(d.Index), d.UUID, model)
		gauge(g.gpuHealthy, healthy, strconv.Itoa(d.Index), d.UUID, model)
	}
	if view.Registered > 0 {
		registered = 1
	}
	if !view.Quarantine.IsZero() {
		quarantined = 1
	}
	if view.DiskFull {
		full = 1
	}
	if view.MemoryPressure {
		memory = 1
	}
	contact, _ := g.agent.contact.state()
	if contact.after > 0 {
		gauge(g.contact, g.agent.deps.Now().Sub(contact.at).Seconds())
	}
	stopped := 0
	if contact.stopped {
		_, stopped = g.agent.owner.assignments.ClosedTo()
	}
	gauge(g.stopped, float64(stopped))
	g.collectKubelet(view, gauge)
	for _, part := range g.agent.measured(view) {
		if part.Percent != devices.UnknownUse {
			gauge(g.use, float64(part.Percent)/100, part.Index, part.UUID, part.Model)
		}
		if part.Memory != devices.UnknownUse {
			gauge(g.memoryUsed, float64(part.Memory), part.Index, part.UUID, part.Model)
		}
	}
	gauge(g.full, full)
	gauge(g.memory, memory)
	gauge(g.quarantined, quarantined)
	gauge(g.bad, float64(bad))
	gauge(g.registered, registered)
	gauge(g.journal, float64(size))
}

// handler serves /metrics; /livez, which is "ok" while the owner answers; and
// /healthz, which is "ok" while the agent is part of a cluster as well.
func (a *Agent) handler() http.Handler {
	mux := http.NewServeMux()
	if g, ok := a.deps.Metrics.(prometheus.Gatherer); ok {
		mux.Handle("GET /metrics", a.scraped(promhttp.HandlerFor(g, promhttp.HandlerOpts{MaxRequestsInFlight: scrapes})))
	}
	probe := func(problem func() string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), scrapeTimeout)
			defer cancel()
			if err := a.Alive(ctx); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			if text := problem(); text != "" {
				http.Error(w, text, http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, "ok")
		}
	}
	mux.HandleFunc("GET /livez", probe(func() string { return "" }))
	mux.HandleFunc("GET /healthz", probe(a.Problem))
	return mux
}

// scraped answers 401 to a scraper without the token of the configuration, where
// one is set.
func (a *Agent) scraped(metrics http.Handler) http.Handler {
	token := a.config.MetricsToken
	if token.IsZero() {
		return metrics
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		given, err := rpcauth.NewToken(strings.TrimSpace(text))
		if err != nil || !strings.EqualFold(scheme, "Bearer") || !token.Equal(given) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="muster"`)
			http.Error(w, "the metrics of this node need the token of metricsTokenFile: send the header Authorization: Bearer TOKEN", http.StatusUnauthorized)
			return
		}
		metrics.ServeHTTP(w, r)
	})
}

// errBusy means that the owner did not answer in time.
var errBusy = errors.New("the agent's owner loop does not answer")

// Alive waits until the owner has answered once, or ctx ends: a watchdog's
// question.
func (a *Agent) Alive(ctx context.Context) error {
	err := a.owner.ask(ctx, func(*owner) {})
	if errors.Is(err, context.DeadlineExceeded) {
		return errBusy
	}
	return err
}
