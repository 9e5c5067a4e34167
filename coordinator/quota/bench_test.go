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
// leaf groups; all soft; three resources; one pair is an Allocate and a
// Deallocate.

var benchResources = []resource.Name{resource.CPU, resource.Memory, resource.GPU}

func all(amount int) resource.Vector {
	v := resource.Vector{}
	for _, name := range benchResources {
		v[name] = int64(amount)
	}
	return v
}

// benchTree has groups leaves of the given quota; the nodes above have the sum
// of theirs, the root at least the given one.
func benchTree(groups, leaf, root int) quota.TreeSpec {
	departments := int(math.Sqrt(float64(groups)))
	s := quota.TreeSpec{Name: "T", Resources: benchResources, Nodes: map[string]quota.NodeSpec{
		"root": {Quota: all(root)},
	}}
	leaves := make([]int, departments)
	for g := range groups {
		d := g % departments
		leaves[d]++
		s.Nodes[fmt.Sprint("g", g)] = quota.NodeSpec{Parent: fmt.Sprint("d", d), Quota: all(leaf)}
	}
	for d, n := range leaves {
		s.Nodes[fmt.Sprint("d", d)] = quota.NodeSpec{Parent: "root", Quota: all(n * leaf)}
	}
	return s
}

// world is a manager under load.
type world struct {
	m    *quota.Manager
	live []string
}

func newWorld(b testing.TB, groups, leaf, root, live int) *world {
	b.Helper()
	w := &world{m: quota.NewManager(quota.Options{})}
	if err := w.m.SetMode(quota.Normal); err != nil {
		b.Fatal(err)
	}
	if _, err := w.m.AddTree(benchTree(groups, leaf, root)); err != nil {
		b.Fatal(err)
	}
	for i := range live {
		id := fmt.Sprint("live", i)
		w.add(b, id, i%groups)
		w.allocate(b, id)
		w.live = append(w.live, id)
	}
	return w
}

func (w *world) add(b testing.TB, id string, group int) {
	w.demand(b, id, quota.Demand{Group: fmt.Sprint("g", group), Request: all(1)})
}

func (w *world) demand(b testing.TB, id string, d quota.Demand) {
	d.Tree = "T"
	if err := w.m.AddConsumer(quota.ConsumerSpec{ID: id, Demands: []quota.Demand{d}}); err != nil {
		b.Fatal(err)
	}
}

func (w *world) allocate(b testing.TB, id string) {
	if r, err := w.m.Allocate("T", id); err != nil || !r.OK {
		b.Fatalf("allocate %s: %v, %v", id, r.Refusal, err)
	}
}

func (w *world) release(b testing.TB, id string) {
	if !w.m.Deallocate("T", id) {
		b.Fatalf("deallocate %s: it was not allocated", id)
	}
}

// cpuTime is the processor time the process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// grid measures pairs in each cell and reports their processor time too: on a
// busy machine it says more than the clock.
func grid(b *testing.B, cells [][2]int, prepare func(b testing.TB, groups, live int) func(i int)) {
	for _, c := range cells {
		b.Run(fmt.Sprintf("groups=%d/live=%d", c[0], c[1]), func(b *testing.B) {
			pair := prepare(b, c[0], c[1])
			for i := range 100 {
				pair(i)
			}
			runtime.GC()
			b.ReportAllocs()
			b.ResetTimer()
			begin := cpuTime()
			for i := range b.N {
				pair(i)
			}
			b.ReportMetric(float64(cpuTime()-begin)/float64(b.N), "cpu-ns/pair")
		})
	}
}

var fullGrid = [][2]int{
	{10, 1000},
	{10, 10000},
	{10, 100000},
	{100, 1000},
	{100, 10000},
	{100, 100000},
	{1000, 1000},
	{1000, 10000},
	{1000, 100000},
	{10000, 1000},
	{10000, 10000},
	{10000, 100000},
}

// newcomers registers consumers in up to 64 groups.
func (w *world) newcomers(b testing.TB, groups int) []string {
	ids := make([]string, min(groups, 64))
	for i := range ids {
		ids[i] = fmt.Sprint("new", i)
		w.add(b, ids[i], i)
	}
	return ids
}

// Everyone fits in the own leaf; a newcomer arrives in its leaf and leaves.
func inQuota(b testing.TB, groups, live int) (pair func(i int)) {
	leaf := live/groups + 2
	w := newWorld(b, groups, leaf, leaf*groups, live)
	ids := w.newcomers(b, groups)
	return func(i int) {
		w.allocate(b, ids[i%len(ids)])
		w.release(b, ids[i%len(ids)])
	}
}

// Half of the live fill the leaves, half share at the root; a newcomer borrows
// at the root and leaves.
func borrow(b testing.TB, groups, live int) (pair func(i int)) {
	leaf := live / groups / 2
	if groups >= live {
		leaf = 0
	}
	w := newWorld(b, groups, leaf, live+1, live)
	ids := w.newcomers(b, groups)
	return func(i int) {
		w.allocate(b, ids[i%len(ids)])
		w.release(b, ids[i%len(ids)])
	}
}

// As borrow, but an owner leaves its leaf, a sharer slides down, and the owner
// comes back and pushes it up again.
func leafChurn(b testing.TB, groups, live int) (pair func(i int)) {
	w := newWorld(b, groups, max(1, live/groups/2), live+1, live)
	owners := w.live[:min(groups, 64, live)]
	return func(i int) {
		w.release(b, owners[i%len(owners)])
		w.allocate(b, owners[i%len(owners)])
	}
}

// The root is full of sharers of as many priorities as there are consumers; a
// newcomer evicts the oldest below it, and it is undone.
func evict(b testing.TB, groups, live int) (pair func(i int)) {
	w := newWorld(b, groups, 0, live, 0)
	for i := range live {
		id := fmt.Sprint("live", i)
		w.demand(b, id, quota.Demand{Group: fmt.Sprint("g", i%groups), Request: all(1), Priority: (i * 7919) % live})
		w.allocate(b, id)
	}
	w.demand(b, "new", quota.Demand{Group: "g0", Request: all(1), Priority: live / 2})
	return func(int) {
		if r, err := w.m.TryAllocate("T", "new"); err != nil || len(r.Preempted) != 1 {
			b.Fatalf("try: %+v, %v", r, err)
		}
		if err := w.m.UndoAllocate("T", "new"); err != nil {
			b.Fatal(err)
		}
	}
}

// A newcomer of high priority asks for more than all lower ones could free.
func refuse(b testing.TB, groups, live int) (pair func(i int)) {
	w := newWorld(b, groups, 0, live, live)
	w.demand(b, "new", quota.Demand{Group: "g0", Request: all(live + 1), Priority: 9})
	return func(int) {
		if r, err := w.m.Allocate("T", "new"); err != nil || r.OK {
			b.Fatalf("allocate: %+v, %v", r, err)
		}
	}
}

var smallGrid = [][2]int{{100, 1000}, {100, 10000}, {100, 100000}}

func BenchmarkInQuota(b *testing.B)   { grid(b, fullGrid, inQuota) }
func BenchmarkBorrow(b *testing.B)    { grid(b, fullGrid, borrow) }
func BenchmarkLeafChurn(b *testing.B) { grid(b, fullGrid, leafChurn) }
func BenchmarkEvict(b *testing.B)     { grid(b, smallGrid, evict) }
func BenchmarkRefuse(b *testing.B)    { grid(b, smallGrid, refuse) }

// As borrow, but within a checkpoint that is rolled back: an owner leaves, a
// newcomer comes and goes, and the owner comes back.
func whatIf(b testing.TB, groups, live int) (pair func(i int)) {
	w := newWorld(b, groups, max(1, live/groups/2), live+1, live)
	owners, ids := w.live[:min(groups, 64, live)], w.newcomers(b, groups)
	return func(i int) {
		mark := w.m.Checkpoint()
		w.release(b, owners[i%len(owners)])
		w.allocate(b, ids[i%len(ids)])
		if err := w.m.Rollback(mark); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWhatIf(b *testing.B) { grid(b, smallGrid, whatIf) }

func TestNothingIsAllocatedInTheSteadyState(t *testing.T) {
	for name, prepare := range map[string]func(b testing.TB, groups, live int) func(int){
		"in quota": inQuota, "borrow": borrow, "leaf churn": leafChurn, "evict": evict, "refuse": refuse, "what if": whatIf,
	} {
		t.Run(name, func(t *testing.T) {
			pair := prepare(t, 16, 512)
			i := 0
			if n := testing.AllocsPerRun(500, func() { pair(i); i++ }); n != 0 {
				t.Errorf("%v allocations a pair", n)
			}
		})
	}
}

// memory measures what 100,000 consumers in 10,000 groups occupy.
func memory(b testing.TB) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w := newWorld(b, 10000, 12, 120000, 100000)
	w.live = nil
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(w)
	return float64(after.HeapAlloc-before.HeapAlloc) / (1 << 20)
}

func BenchmarkMemory(b *testing.B) {
	for range b.N {
		b.ReportMetric(memory(b), "MiB")
	}
}

func TestAHundredThousandConsumersFitIn64MiB(t *testing.T) {
	if mib := memory(t); mib > 64 {
		t.Errorf("they take %.1f MiB", mib)
	}
}

func BenchmarkUpdateTree(b *testing.B) {
	grid(b, smallGrid, func(b testing.TB, groups, live int) func(int) {
		w := newWorld(b, groups, live/groups/2, live, live)
		return func(int) {
			if _, err := w.m.UpdateTree("T"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
