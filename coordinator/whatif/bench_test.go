package whatif_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/whatif"
	"github.com/musterd/muster/resource"
)

// BenchmarkAsk answers whether units that wait can ever run, and what would help, on
// a cluster that has been in use for long, each on a fork of its own, as the coordinator
// does. It reports the median and the 99th percentile, and the processor time.
func BenchmarkAsk(b *testing.B) {
	for _, size := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("nodes=%d", size), func(b *testing.B) {
			snapshot := wornSnapshot(b, size)
			units := asked()
			var took []time.Duration
			trials, before := 0, processorTime(b)
			for i := 0; b.Loop(); i++ {
				u := units[i%len(units)]
				begun := time.Now()
				w := snapshot.World()
				w.Never(&u)
				_, tried, _ := w.Help(&u)
				took = append(took, time.Since(begun))
				trials += tried
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(len(took)), "cpu-ms/op")
			slices.Sort(took)
			at := func(percent int) float64 { return float64(took[len(took)*percent/100].Microseconds()) / 1000 }
			b.ReportMetric(at(50), "p50-ms")
			b.ReportMetric(at(99), "p99-ms")
			b.ReportMetric(float64(trials)/float64(len(took)), "trials/op")
		})
	}
}

// processorTime is the time that the process had a processor, in user code.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	check(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano())
}

// asked are units of different kinds that do not fit.
func asked() []whatif.Unit {
	zone := constraint.Compile(constraint.Spec{NodeSelector: map[string]string{"zone": "z9"}})
	var units []whatif.Unit
	add := func(members int, r resource.Request, right sched.Right, set *constraint.Set) {
		u := unitOf(fmt.Sprintf("ml/job/asked%d/0", len(units)), 5, uint64(1_000_000+len(units)), members, r, "a")
		u.Right, u.Demand.Constraints = right, set
		units = append(units, u)
	}
	add(1, resource.Request{GPUs: 8, CPU: 16_000, Memory: 100 * gib}, sched.OwnQuota, nil)
	add(1, resource.Request{GPUs: 8, CPU: 16_000, Memory: 100 * gib}, sched.Lower, nil)
	add(16, resource.Request{GPUs: 8, CPU: 16_000, NUMA: resource.NUMARestricted}, sched.Lower, nil)
	add(64, resource.Request{GPUs: 4, CPU: 8000, Link: resource.LinkNVLink}, sched.OwnQuota, nil)
	add(1, resource.Request{GPUs: 2, CPU: 200_000}, sched.OwnQuota, nil)
	add(1, resource.Request{GPUs: 1, GPUModel: "B200"}, sched.OwnQuota, nil)
	add(2, resource.Request{GPUs: 8}, sched.Lower, zone)
	add(1, resource.Request{GPUs: 16}, sched.OwnQuota, nil)
	return units
}

// wornSnapshot is a cluster of hosts of eight GPUs on which units of all sizes have
// come and gone.
func wornSnapshot(b *testing.B, size int) *whatif.Snapshot {
	random := rand.New(rand.NewPCG(7, uint64(size)))
	host := hostOf(b, "dgx-a100")
	w := &whatif.World{World: sched.World{State: &cluster.State{}, Limits: quota.New(), Trees: quota.NewManager(quota.Options{}), Forest: forest, MaxOps: 2048}}
	check(b, w.Trees.SetMode(quota.Normal))
	check(b, w.Trees.AddForest(forest))
	much := resource.Vector{resource.GPU: 1 << 40}
	_, err := w.Trees.AddTree(quota.TreeSpec{Name: "T", Resources: []resource.Name{resource.GPU}, Nodes: map[string]quota.NodeSpec{
		"root": {Quota: much}, "a": {Parent: "root", Quota: much}, "b": {Parent: "root", Quota: much},
	}})
	check(b, err)
	check(b, w.Trees.AddTreeToForest(forest, "T"))
	for i := range size {
		n := &cluster.Node{ID: resource.NodeID(fmt.Sprintf("n%05d", i)), Ready: true, Host: host, Free: host.NewFree()}
		w.State.Insert(n)
		w.State.Relabel(n, map[string]string{"name": string(n.ID), "zone": fmt.Sprint("z", i%8), "rack": fmt.Sprint("r", i/32)}, nil)
	}
	for i := 0; ; i++ { // until 95 % of the devices are in use, with ends in between
		r := resource.Request{GPUs: []int{1, 1, 1, 2, 2, 4, 8}[random.IntN(7)], CPU: resource.Millicores(1+random.IntN(24)) * 1000, Memory: 16 * gib}
		u := unitOf(fmt.Sprintf("ml/job/u%06d/0", i), int32(random.IntN(8)), uint64(i+1), 1, r, []string{"a", "b"}[i%2])
		if !run(b, w, u, random.IntN(10) == 0) && i > size*8 {
			break
		}
		if o := w.State.Occupant(fmt.Sprintf("ml/job/u%06d/0", random.IntN(i+1))); o != nil && random.IntN(3) == 0 {
			for _, p := range o.Parts {
				check(b, w.State.Give(w.State.Node(p.Node), p.Assignment))
			}
			w.Trees.DeallocateForest(forest, o.Unit)
			w.Limits.Discharge(o.Tx)
			w.State.RemoveOccupant(o.Unit)
		}
	}
	return &whatif.Snapshot{Nodes: w.State.Snapshot(), Limits: w.Limits.Snapshot(), Trees: w.Trees.Snapshot(), Forest: forest, MaxOps: w.MaxOps}
}
