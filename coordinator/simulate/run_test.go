package simulate_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/simulate"
	"github.com/musterd/muster/resource"
)

// eight are eight nodes of four GPUs.
func eight() []simulate.Node {
	var nodes []simulate.Node
	for i := range 8 {
		nodes = append(nodes, simulate.Node{Name: fmt.Sprint("n", i), CPU: 32_000, Memory: 1 << 38, GPUs: 4, Model: "T4"})
	}
	return nodes
}

func drawPods(t *rapid.T) []simulate.Pod {
	var pods []simulate.Pod
	for i := range rapid.IntRange(1, 30).Draw(t, "pods") {
		p := simulate.Pod{Name: fmt.Sprint("p", i), CPU: resource.Millicores(1000 * rapid.IntRange(0, 9).Draw(t, "CPU")), Memory: 1 << 30}
		if i > 0 && rapid.Bool().Draw(t, "share") {
			p.Share = resource.Milli(rapid.IntRange(1, 999).Draw(t, "of a GPU"))
		} else {
			p.GPUs = rapid.IntRange(1, 4).Draw(t, "GPUs")
		}
		pods = append(pods, p)
	}
	return pods
}

// TestArrivals: the list reaches the percentage, but for one more pod, and the same seed
// draws the same.
func TestArrivals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods, percent := drawPods(t), rapid.IntRange(20, 300).Draw(t, "percent")
		seed := rapid.Int64Range(0, 99).Draw(t, "seed")
		list, err := simulate.Arrivals(eight(), pods, percent, seed)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := simulate.Arrivals(eight(), pods, percent, seed)
		if diff := cmp.Diff(list, again); diff != "" {
			t.Fatalf("the same seed draws others:\n%s", diff)
		}
		sum, target, names := 0, 320*percent, map[string]bool{}
		for _, p := range pods {
			names[p.Name] = true
		}
		for _, p := range list {
			if sum += p.GPUs*1000 + int(p.Share); !names[p.Name] {
				t.Fatalf("%s is not of the list", p.Name)
			}
		}
		if sum > target+3000 || sum < target-4000 && len(list) > 1 {
			t.Fatalf("%d milli arrive, want about %d", sum, target)
		}
	})
}

// TestPlay: a run is deterministic, allocates no more than has arrived and than there
// is, and never less than before.
func TestPlay(t *testing.T) {
	cluster, err := simulate.NewCluster(eight())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		pods, err := simulate.Arrivals(eight(), drawPods(t), 130, rapid.Int64Range(0, 9).Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		policy := rapid.SampledFrom(place.Policies()).Draw(t, "policy")
		run := cluster.Play(pods, policy, nil)
		if diff := cmp.Diff(run, cluster.Play(pods, policy, nil)); diff != "" {
			t.Fatalf("%s: another run:\n%s", policy, diff)
		}
		if run.Arrived != len(pods) || run.Placed > run.Arrived || run.Placed == 0 {
			t.Fatalf("%s: %d of %d pods placed, %d in the list", policy, run.Placed, run.Arrived, len(pods))
		}
		before := 0.0
		for x := range run.Curve {
			at := run.At(x)
			if at < before || at > float64(x)+0.51 || at > 100 {
				t.Fatalf("%s: %g %% allocated after %d %% have arrived, %g %% before", policy, at, x, before)
			}
			before = at
		}
	})
}

func TestAModelIsKept(t *testing.T) {
	nodes := eight()
	nodes[7].Model = "A10"
	cluster, err := simulate.NewCluster(nodes)
	if err != nil {
		t.Fatal(err)
	}
	pods := slices.Repeat([]simulate.Pod{{Name: "p", GPUs: 1, Models: []string{"A10"}}}, 10)
	for _, policy := range place.Policies() {
		if run := cluster.Play(pods, policy, nil); run.Placed != 4 {
			t.Errorf("%s: %d pods placed, want the 4 GPUs of the model", policy, run.Placed)
		}
	}
}

func TestARunEndsEarly(t *testing.T) {
	cluster, err := simulate.NewCluster(eight())
	if err != nil {
		t.Fatal(err)
	}
	run := cluster.Play(slices.Repeat([]simulate.Pod{{Name: "p", CPU: 1, GPUs: 1}}, 1000), "packed", func(done int) bool { return done < 512 })
	if run.Arrived != 512 {
		t.Errorf("%d pods have arrived, want 512", run.Arrived)
	}
}

func TestListsWithoutGPUsAreRefused(t *testing.T) {
	_, err := simulate.Arrivals([]simulate.Node{{Name: "a"}}, []simulate.Pod{{Name: "p", GPUs: 1}}, 100, 1)
	if want := "the nodes have 0 GPUs, and the pods ask for 1000 milli of GPUs: want both above 0"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestThePageHasEachPolicyAndNeedsNoOtherFile(t *testing.T) {
	run := simulate.Run{Arrived: 4, Placed: 3, Curve: []float64{0, -1, 2}}
	r := simulate.Report{Nodes: 8, GPUs: 32, Inflate: 2, Seeds: []int64{1}, Lists: []simulate.List{{
		Name: "<b>odd</b>", Pods: 4, Policies: []simulate.Outcome{simulate.Summarize("packed", 2, []int64{1}, []simulate.Run{run}), simulate.Summarize("spread", 2, []int64{1}, []simulate.Run{run})},
	}}}
	var page bytes.Buffer
	if err := simulate.WritePage(&page, &r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"8 nodes with 32 GPUs", "&lt;b&gt;odd", "<td>packed</td><td>2.00</td>", "<td>spread</td>", "<polyline"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not have %s", want)
		}
	}
	for _, other := range []string{"src=", "href=", "@import", "<script"} {
		if strings.Contains(page.String(), other) {
			t.Errorf("the page has %s", other)
		}
	}
}

// published are the means of FGD, the best of the six published policies, on the
// openb lists at 100 % and 130 % (docs/benchmarks.md).
var published = map[string][2]float64{
	"default": {95.227, 95.391}, "gpushare100": {86.64, 86.901}, "gpuspec33": {87.836, 94.547}, "multigpu20": {95.528, 95.651}, "multigpu50": {97.094, 97.178},
}

// openb is the folder of the trace of Alibaba.
var openb = filepath.Join("..", "..", "..", "shared", "data", "openb")

// orders are the seeds of the orders of arrival that the published figures have.
var orders = []int64{42, 43, 44, 45, 46, 47, 48, 49, 50, 51}

// playOpenb plays a list of the trace with the default policy, in the order of each seed.
func playOpenb(tb testing.TB, list string, seeds []int64) simulate.Outcome {
	nodes := readFile(tb, filepath.Join(openb, "openb_node_list_gpu_node.csv"), simulate.ReadNodes)
	cluster, err := simulate.NewCluster(nodes)
	if err != nil {
		tb.Fatal(err)
	}
	pods := readFile(tb, filepath.Join(openb, "openb_pod_list_"+list+".csv"), simulate.ReadPods)
	runs := make([]simulate.Run, len(seeds))
	for i, seed := range seeds {
		arrivals, err := simulate.Arrivals(nodes, pods, 130, seed)
		if err != nil {
			tb.Fatal(err)
		}
		runs[i] = cluster.Play(arrivals, place.NameFragmentation, nil)
	}
	return simulate.Summarize(place.NameFragmentation, 130, seeds, runs)
}

// BenchmarkOpenb is the part of the GPUs that the default policy allocates on the lists
// of the trace, at 100 % and at 130 % of the GPUs requested.
func BenchmarkOpenb(b *testing.B) {
	for list := range published {
		b.Run(list, func(b *testing.B) {
			var o simulate.Outcome
			for b.Loop() {
				o = playOpenb(b, list, orders)
			}
			b.ReportMetric(o.Levels[0].Mean, "%-allocated-at-100")
			b.ReportMetric(o.Levels[1].Mean, "%-allocated-at-130")
		})
	}
}

// TestTheDefaultPolicyOnTheTraceOfAlibaba: with nothing learned before, the default is
// at no list below the best published policy, within its figures' spread.
func TestTheDefaultPolicyOnTheTraceOfAlibaba(t *testing.T) {
	for list, fgd := range published {
		t.Run(list, func(t *testing.T) {
			seeds := orders
			if testing.Short() || list != "default" { // BenchmarkOpenb plays all
				seeds = seeds[:2]
			}
			levels := playOpenb(t, list, seeds).Levels
			t.Logf("at 100 %%: %.3f, sd %.3f; at 130 %%: %.3f, sd %.3f", levels[0].Mean, levels[0].Sd, levels[1].Mean, levels[1].Sd)
			if levels[0].Mean < fgd[0]-0.1 || levels[1].Mean < fgd[1] {
				t.Errorf("at 100 %%: %.3f, at 130 %%: %.3f, want at least %.3f and %.3f", levels[0].Mean, levels[1].Mean, fgd[0]-0.1, fgd[1])
			}
		})
	}
}

// readFile reads a list. A test skips where the list is absent, a benchmark fails.
func readFile[T any](t testing.TB, name string, read func(io.Reader) ([]T, error)) []T {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		if _, isBenchmark := t.(*testing.B); isBenchmark {
			t.Fatalf("put the lists of openb (github.com/alibaba/clusterdata, cluster-trace-gpu-v2023) into ../shared/data/openb: %v", err)
		}
		t.Skipf("no reference material: ../shared/data/openb is absent (%v)", err)
	}
	list, err := read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return list
}
