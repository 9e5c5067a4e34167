package quota_test

import (
	"fmt"
	"math"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// The grid of QUOTA.md section 10: a root, about sqrt(groups) departments,
// leaf groups; all soft; three resources; everybody asks for one of each. A
// pair is one allocation and one release.

var counted = []resource.Name{resource.CPU, resource.Memory, resource.GPU}

// workload is how many live where, and what the pairs are.
type workload struct {
	name string
	// quotas returns those of a leaf and of the root; departments have the sum
	// of their leaves'.
	quotas func(groups, live int) (leaf, root int)
	// owners leave and come back; otherwise newcomers come and leave.
	owners bool
}

var workloads = []workload{
	// Everyone fits in the own leaf.
	{"InQuota", func(groups, live int) (int, int) {
		leaf := live/groups + 2
		return leaf, leaf * groups
	}, false},
	// Half of the live fill the leaves, half share at the root, and so does
	// the newcomer.
	{"Borrow", func(groups, live int) (int, int) {
		if groups >= live {
			return 0, live + 1
		}
		return live / groups / 2, live + 1
	}, false},
	// The same, but a sharer slides down when the owner leaves, and is pushed
	// up when the owner comes back.
	{"LeafChurn", func(groups, live int) (int, int) { return max(1, live/groups/2), live + 1 }, true},
}

func gridTree(groups, leaf, root int) quota.TreeSpec {
	departments := int(math.Sqrt(float64(groups)))
	s := quota.TreeSpec{Name: treeName, Resources: counted, Nodes: map[string]quota.NodeSpec{"root": {Quota: all(counted, root)}}}
	leaves := make([]int, departments)
	for g := range groups {
		d := g % departments
		leaves[d]++
		s.Nodes[fmt.Sprint("g", g)] = quota.NodeSpec{Parent: fmt.Sprint("d", d), Quota: all(counted, leaf)}
	}
	for d, n := range leaves {
		s.Nodes[fmt.Sprint("d", d)] = quota.NodeSpec{Parent: "root", Quota: all(counted, n*leaf)}
	}
	return s
}

// populate fills a manager with the live and returns their names.
func populate(b testing.TB, m manager, groups, leaf, root, live int) []string {
	b.Helper()
	must(b, m.addTree(gridTree(groups, leaf, root)))
	ids := enter(b, m, "live", groups, live)
	for _, id := range ids {
		allocate(b, m, id)
	}
	return ids
}

// enter makes n consumers known, in the groups by turns.
func enter(b testing.TB, m manager, name string, groups, n int) []string {
	b.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(name, i)
		must(b, m.addConsumer(quota.ConsumerSpec{ID: ids[i], Demands: []quota.Demand{
			{Tree: treeName, Group: fmt.Sprint("g", i%groups), Request: all(counted, 1)},
		}}))
	}
	return ids
}

func allocate(b testing.TB, m manager, id string) {
	if preempted, ok := m.allocate(treeName, id); !ok || len(preempted) > 0 {
		b.Fatalf("allocate %s: %t, preempted %v", id, ok, preempted)
	}
}

func release(b testing.TB, m manager, id string) {
	if !m.release(treeName, id) {
		b.Fatalf("release %s: it was not allocated", id)
	}
}

// prepare returns the pair of calls to measure, warmed up.
func (w workload) prepare(b testing.TB, m manager, groups, live int) (pair func(i int)) {
	b.Helper()
	leaf, root := w.quotas(groups, live)
	ids := populate(b, m, groups, leaf, root, live)
	if w.owners {
		ids = ids[:min(groups, 64, live)]
		pair = func(i int) {
			release(b, m, ids[i%len(ids)])
			allocate(b, m, ids[i%len(ids)])
		}
	} else {
		ids = enter(b, m, "new", groups, min(groups, 64))
		pair = func(i int) {
			allocate(b, m, ids[i%len(ids)])
			release(b, m, ids[i%len(ids)])
		}
	}
	for i, begin := 0, cpuTime(); i < 100 && cpuTime()-begin < 100*time.Millisecond; i++ {
		pair(i)
	}
	runtime.GC()
	return pair
}

// cpuTime is the processor time the process has used: on a busy machine it
// says more than the clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cost is of one pair.
type cost struct{ cpu, allocations float64 }

// measure runs pairs for half a second of processor time, at least three.
func measure(pair func(i int)) cost {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin, n := cpuTime(), 0
	for batch := 1; n < 3 || cpuTime()-begin < 500*time.Millisecond; batch = min(2*batch, 1024) {
		for range batch {
			pair(n)
			n++
		}
	}
	used := cpuTime() - begin
	runtime.ReadMemStats(&after)
	return cost{float64(used) / float64(n), float64(after.Mallocs-before.Mallocs) / float64(n)}
}

// BenchmarkPair measures Muster, and right before it the original on the same:
// ns/op, B/op and allocs/op are Muster's. Only one of them is in memory at a
// time.
func BenchmarkPair(b *testing.B) {
	for _, w := range workloads {
		for _, groups := range []int{10, 100, 1000, 10000} {
			for _, live := range []int{1000, 10000, 100000} {
				b.Run(fmt.Sprintf("%s/groups=%d/live=%d", w.name, groups, live), func(b *testing.B) {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
					their := measure(w.prepare(b, newTheirs(), groups, live))
					pair := w.prepare(b, newOurs(), groups, live)
					b.ReportAllocs()
					begin, n := cpuTime(), 0
					for b.Loop() {
						pair(n)
						n++
					}
					our := float64(cpuTime()-begin) / float64(n)
					b.ReportMetric(our, "cpu-ns/pair")
					b.ReportMetric(their.cpu, "original-cpu-ns/pair")
					b.ReportMetric(their.allocations, "original-allocs/pair")
					b.ReportMetric(their.cpu/our, "times-faster")
				})
			}
		}
	}
}

// BenchmarkMemory is what 100,000 consumers in 10,000 groups occupy, names and
// specifications included.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(memory(b, newOurs()), "MiB")
		b.ReportMetric(memory(b, newTheirs()), "original-MiB")
	}
}

func memory(b testing.TB, m manager) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	populate(b, m, 10000, 12, 120000, 100000)
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(m)
	return float64(after.HeapAlloc-before.HeapAlloc) / (1 << 20)
}
