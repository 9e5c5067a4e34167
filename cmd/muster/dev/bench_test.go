package dev

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
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
	before := c.stages(b)
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
	after := c.stages(b)
	for name, unit := range map[string]string{"muster_reserve_seconds": "reserve-ms", "muster_commit_seconds": "commit-ms"} {
		sum, count := after[name+"_sum"]-before[name+"_sum"], after[name+"_count"]-before[name+"_count"]
		b.ReportMetric(1000*sum/count, unit)
	}
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

// stages reads the coordinator's own timers: the mean of each stage of the
// path, to hold against the floor of one round trip and one commit.
func (d *Cluster) stages(b *testing.B) map[string]float64 {
	answer, err := http.Get(d.Addresses.REST + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	values := map[string]float64{}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			values[name] = v
		}
	}
	return values
}
