package monitor_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/monitor"
	"github.com/musterd/muster/resource"
)

// source is a coordinator with figures that a test sets.
type source struct {
	leads   bool
	figures *lead.Figures
	asked   int
}

func (s *source) Leading() bool          { return s.leads }
func (s *source) Figures() *lead.Figures { s.asked++; return s.figures }

// small is a cluster of two nodes, of which one is cordoned and has no stream.
func small() *lead.Figures {
	return &lead.Figures{
		Nodes: []lead.NodeFigures{
			{
				ID: "n1", Version: "0.1.0", Known: true, Conditions: lead.NodeConditions{Ready: true},
				Capacity:    resource.Vector{resource.CPU: 64_000, resource.Memory: 1 << 40, resource.GPU: 2000},
				Allocatable: resource.Vector{resource.CPU: 62_000, resource.Memory: 1 << 39, resource.GPU: 2000},
				Free:        cluster.Amounts{CPU: 1500, Memory: 1 << 30, GPU: 500},
				GPUs:        lead.GPUFigures{Devices: 3, Unhealthy: 1, Free: 1500, Pooled: 1000},
			},
			{ID: "n2", Version: "0.1.0", Conditions: lead.NodeConditions{Cordoned: true, Disconnected: true}, Allocatable: resource.Vector{resource.CPU: 4000}},
		},
		Models:    map[string]lead.GPUFigures{"A100": {Devices: 3, Unhealthy: 1, Free: 1500, Pooled: 1000}},
		Units:     map[lead.UnitKind]int{{Namespace: "ml", Phase: api.Running}: 3, {Namespace: "ml", Phase: api.Pending}: 2},
		Allocated: map[string]cluster.Amounts{"ml": {CPU: 60_500, Memory: 1 << 20, GPU: 500}},
		Waiting:   map[string]int{"default": 2},
		Quotas:    []lead.QuotaFigures{{Namespace: "ml", Quota: "team", Resource: resource.GPU, Hard: 16_000, Used: 500}},
		Trees: []lead.TreeFigures{
			{Tree: "Org", Node: "all", Resource: resource.CPU, Quota: resource.Unlimited, Allocated: 60_500},
		},
	}
}

func TestFiguresAreShownInUnitsOfPeople(t *testing.T) {
	c := monitor.New(&source{leads: true, figures: small()}, time.Now)
	want := `
muster_gpus_allocated{model="A100"} 0.5
muster_gpus_free{model="A100"} 1.5
muster_gpus_kubelet{model="A100"} 1
muster_gpus_unhealthy{model="A100"} 1
muster_gpus{model="A100"} 3
muster_namespace_allocated{namespace="ml",resource="cpu",unit="core"} 60.5
muster_namespace_allocated{namespace="ml",resource="memory",unit="byte"} 1.048576e+06
muster_namespace_allocated{namespace="ml",resource="nvidia.com/gpu",unit="device"} 0.5
muster_node_allocatable{node="n1",resource="cpu",unit="core"} 62
muster_node_allocated{node="n1",resource="cpu",unit="core"} 60.5
muster_node_allocated{node="n1",resource="nvidia.com/gpu",unit="device"} 0.5
muster_node_capacity{node="n1",resource="cpu",unit="core"} 64
muster_node_condition{condition="Cordoned",node="n2"} 1
muster_node_condition{condition="Disconnected",node="n2"} 1
muster_node_free{node="n1",resource="cpu",unit="core"} 1.5
muster_node_free{node="n1",resource="nvidia.com/gpu",unit="device"} 0.5
muster_node_info{node="n1",version="0.1.0"} 1
muster_node_ready{node="n1"} 1
muster_node_ready{node="n2"} 0
muster_nodes 2
muster_queue_waiting_units{queue="default"} 2
muster_quota_limit{namespace="ml",quota="team",resource="nvidia.com/gpu",unit="device"} 16
muster_quota_tree_limit{group="all",resource="cpu",tree="Org",unit="core"} +Inf
muster_quota_tree_used{group="all",resource="cpu",tree="Org",unit="core"} 60.5
muster_quota_used{namespace="ml",quota="team",resource="nvidia.com/gpu",unit="device"} 0.5
muster_units{namespace="ml",phase="Pending"} 2
muster_units{namespace="ml",phase="Running"} 3
`
	text := scrape(t, c)
	for line := range strings.Lines(strings.TrimPrefix(want, "\n")) {
		if !strings.Contains("\n"+text, "\n"+line) {
			t.Errorf("no line %s", line)
		}
	}
	for _, absent := range []string{`muster_node_free{node="n2"`, `muster_node_allocated{node="n2"`, `muster_node_condition{condition="Cordoned",node="n1"}`} {
		if strings.Contains(text, absent) {
			t.Errorf("%s is shown", absent)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("promtool's rules: %v, %v", problems, err)
	}
}

func TestScrapesAskTheLeaderOncePerTenSeconds(t *testing.T) {
	now := time.Unix(1000, 0)
	s := &source{leads: true, figures: small()}
	c := monitor.New(s, func() time.Time { return now })
	series := func() int { return count(c) }
	first := series()
	s.figures = &lead.Figures{}
	if again := series(); again != first || s.asked != 1 {
		t.Errorf("%d series after %d, the leader was asked %d times", again, first, s.asked)
	}
	now = now.Add(monitor.Fresh)
	if later := series(); later != 1 || s.asked != 2 {
		t.Errorf("%d series of an empty cluster, the leader was asked %d times", later, s.asked)
	}
	s.leads = false
	if n := series(); n != 0 || s.asked != 2 {
		t.Errorf("a follower shows %d series, and was asked %d times", n, s.asked)
	}
	s.leads, s.figures = true, nil // its loop does not answer
	if n := series(); n != 0 || s.asked != 3 {
		t.Errorf("%d series without figures, asked %d times", n, s.asked)
	}
	if s.figures = small(); series() != first {
		t.Error("an answer that was late once is not asked for again")
	}
}

// However many names there are, the number of series is bounded, and sums stay
// what they are.
func TestNamesBeyondTheBoundsAreOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		namespaces := rapid.IntRange(0, monitor.MostNamespaces+200).Draw(t, "namespaces")
		f := &lead.Figures{Units: map[lead.UnitKind]int{}, Models: map[string]lead.GPUFigures{}, Waiting: map[string]int{}}
		for i := range namespaces {
			f.Units[lead.UnitKind{Namespace: fmt.Sprint("ns-", i), Phase: api.Running}] = i
		}
		for i := range rapid.IntRange(0, monitor.MostModels+20).Draw(t, "models") {
			f.Models[fmt.Sprint("model-", i)] = lead.GPUFigures{Devices: 1}
			f.Waiting[fmt.Sprint("queue-", i)] = 1
		}
		values := map[string]float64{}
		counts := map[string]int{}
		for line := range strings.Lines(scrape(t, monitor.New(&source{leads: true, figures: f}, time.Now))) {
			var value float64
			name, rest, found := strings.Cut(line, "{")
			if _, number, _ := strings.Cut(rest, "} "); found && number != "" {
				if _, err := fmt.Sscan(number, &value); err != nil {
					t.Fatal(err)
				}
				values[name] += value
				counts[name]++
			}
		}
		if want := float64(namespaces * (namespaces - 1) / 2); values["muster_units"] != want {
			t.Errorf("%v units in all, want %v", values["muster_units"], want)
		}
		if values["muster_gpus"] != float64(len(f.Models)) || values["muster_queue_waiting_units"] != float64(len(f.Waiting)) {
			t.Errorf("%v devices and %v waiting, want %d", values["muster_gpus"], values["muster_queue_waiting_units"], len(f.Models))
		}
		for name, most := range map[string]int{"muster_units": monitor.MostNamespaces, "muster_gpus": monitor.MostModels, "muster_queue_waiting_units": monitor.MostQueues} {
			if counts[name] > most+1 {
				t.Errorf("%d series of %s, want at most %d", counts[name], name, most+1)
			}
		}
	})
}

// A namespace that has a series keeps it, whoever comes; one that has gone leaves
// its place to the next.
func TestASeriesKeepsItsMeaning(t *testing.T) {
	now := time.Unix(1000, 0)
	s := &source{leads: true}
	c := monitor.New(s, func() time.Time { return now })
	has := func(from, to int) string {
		now = now.Add(monitor.Fresh)
		s.figures = &lead.Figures{Waiting: map[string]int{}}
		for i := from; i < to; i++ {
			s.figures.Waiting[fmt.Sprintf("q-%04d", i)] = 1
		}
		return scrape(t, c)
	}
	has(50, 50+monitor.MostQueues)
	if text := has(0, 50+monitor.MostQueues); !strings.Contains(text, `queue="q-0149"} 1`) || !strings.Contains(text, `queue="other"} 50`) || strings.Contains(text, `queue="q-0000"`) {
		t.Errorf("newcomers took the places of others:\n%s", text)
	}
	has(0, 50)
	if text := has(0, 50); !strings.Contains(text, `queue="q-0000"} 1`) || strings.Contains(text, "other") {
		t.Errorf("places that are free are not taken:\n%s", text)
	}
}

// Ten thousand nodes, a thousand namespaces.
func large() *lead.Figures {
	f := &lead.Figures{Models: map[string]lead.GPUFigures{"A100": {Devices: 80_000}}, Units: map[lead.UnitKind]int{}, Allocated: map[string]cluster.Amounts{}, Waiting: map[string]int{"default": 1}}
	v := resource.Vector{resource.CPU: 128_000, resource.Memory: 1 << 41, resource.GPU: 8000}
	for i := range 10_000 {
		f.Nodes = append(f.Nodes, lead.NodeFigures{
			ID: resource.NodeID(fmt.Sprintf("gpu-%05d.example.org", i)), Version: "0.1.0", Known: true, Capacity: v, Allocatable: v,
			Free: cluster.Amounts{CPU: 1000, Memory: 1 << 30, GPU: 1000}, GPUs: lead.GPUFigures{Devices: 8, Free: 1000}, Conditions: lead.NodeConditions{Ready: true},
		})
	}
	for i := range 1000 {
		namespace := fmt.Sprintf("team-%04d", i)
		for _, p := range []api.Phase{api.Pending, api.Running, api.Terminating, api.Succeeded} {
			f.Units[lead.UnitKind{Namespace: namespace, Phase: p}] = i
		}
		f.Allocated[namespace] = cluster.Amounts{CPU: 1}
		f.Quotas = append(f.Quotas, lead.QuotaFigures{Namespace: namespace, Quota: "team", Resource: resource.GPU, Hard: 16_000, Used: 8000})
	}
	return f
}

// The bound of docs/metrics.md: 14 series for a node, 9 for a namespace with one
// quota of one resource, and a few.
func TestTheScrapeOfALargeCluster(t *testing.T) {
	c := monitor.New(&source{leads: true, figures: large()}, time.Now)
	if n := count(c); n > 14*10_000+9*1000+10 {
		t.Errorf("%d series", n)
	}
	if size := len(scrape(t, c)); size > 16<<20 {
		t.Errorf("%d MiB", size>>20)
	}
}

// BenchmarkLargeScrape makes the metrics of 10,000 nodes anew and writes them as
// text.
func BenchmarkLargeScrape(b *testing.B) {
	f := large()
	size := 0
	for b.Loop() {
		size = len(scrape(b, monitor.New(&source{leads: true, figures: f}, time.Now)))
	}
	b.ReportMetric(float64(size)/(1<<20), "MiB")
	b.ReportMetric(float64(count(monitor.New(&source{leads: true, figures: f}, time.Now))), "series")
}

// fatal is a test of either kind.
type fatal interface{ Fatal(...any) }

// scrape is what Prometheus reads.
func scrape(t fatal, c prometheus.Collector) string {
	registry := prometheus.NewRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatal(answer.Body.String())
	}
	return answer.Body.String()
}

// count is the number of series.
func count(c prometheus.Collector) int {
	metrics, n := make(chan prometheus.Metric), 0
	go func() { defer close(metrics); c.Collect(metrics) }()
	for range metrics {
		n++
	}
	return n
}
