package dev

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
)

// BenchmarkAllocate measures the main job through REST on 100 nodes of 8 GPUs,
// embedded etcd with fsync, everything in one process with the clients: POST
// with ?wait= of one GPU until it is acknowledged as Running. Each allocation
// is deleted again; the deletion is not in the latencies, but it is in ns/op
// and in the CPU time.
func BenchmarkAllocate(b *testing.B) {
	c := start(b, 100)
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { allocate(b, c, clients) })
	}
}

func allocate(b *testing.B, c *Cluster, clients int) {
	var next atomic.Int64
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	began, cpu := time.Now(), cpuTime(b)
	b.ResetTimer()
	for range clients {
		wg.Go(func() {
			client, err := sdk.NewClient(sdk.Config{Endpoint: c.Addresses.REST, Token: c.Token})
			if err != nil {
				b.Error(err)
				return
			}
			allocations := client.Allocations("bench")
			var mine []time.Duration
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				took, err := one(b.Context(), allocations, fmt.Sprintf("a-%d", i))
				if err != nil {
					b.Error(err)
					return
				}
				mine = append(mine, took)
			}
			mu.Lock()
			all = append(all, mine...)
			mu.Unlock()
		})
	}
	wg.Wait()
	b.StopTimer()
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	elapsed := time.Since(began)
	b.ReportMetric(float64(len(all))/elapsed.Seconds(), "allocs/s")
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/1000/float64(len(all)), "cpu-ms/alloc")
}

// one allocates and deletes; it returns how long the allocation took.
func one(ctx context.Context, allocations sdk.Allocations, name string) (time.Duration, error) {
	a := &api.Allocation{Metadata: api.ObjectMeta{Name: name}}
	a.Spec.Resources.Requests = map[resource.Name]string{resource.GPU: "1", resource.CPU: "4", resource.Memory: "16Gi"}
	began := time.Now()
	got, err := allocations.Create(ctx, a, sdk.CreateOptions{Wait: 10 * time.Second})
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	if got.Status.Phase != api.Running {
		return 0, fmt.Errorf("%s is %s: %s", name, got.Status.Phase, got.Status.Message)
	}
	_, err = allocations.Delete(ctx, name, api.DeleteOptions{})
	return took, err
}

// cpuTime is what this process has used, clients included.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
