package dev

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
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

// perRound is how many one-GPU allocations are made before the cluster of 800
// GPUs is emptied again, which is not measured.
const perRound = 640

// BenchmarkAllocate measures the main job through REST on 100 nodes of 8 GPUs, as
// `muster dev --nodes 100` has them: embedded etcd with fsync, the history in SQLite,
// journals and assignment files in the data folder, everything in one process with the
// clients. A client sends a POST with ?wait= for one GPU, four CPUs and memory, and has
// the answer Running. The deletions are outside the measurement.
func BenchmarkAllocate(b *testing.B) { benchmarkAllocate(b, false) }

// BenchmarkAllocateWithoutHistory is BenchmarkAllocate of a cluster that keeps no history. The
// difference is the cost of the history in a SQLite file.
func BenchmarkAllocateWithoutHistory(b *testing.B) { benchmarkAllocate(b, true) }

func benchmarkAllocate(b *testing.B, noHistory bool) {
	c := asStarted(b, Config{Nodes: 100, NoHistory: noHistory})
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { allocate(b, c, clients) })
	}
}

func allocate(b *testing.B, c *Cluster, clients int) {
	var all []time.Duration
	var elapsed, cpu time.Duration
	sums := map[string]float64{}
	b.StopTimer()
	b.ResetTimer()
	for done := 0; done < b.N; {
		n := min(perRound, b.N-done)
		before, beganCPU, began := c.stages(b), cpuTime(b), time.Now()
		b.StartTimer()
		all = append(all, round(b, c, clients, n)...)
		b.StopTimer()
		elapsed += time.Since(began)
		cpu += cpuTime(b) - beganCPU
		for name, value := range c.stages(b) {
			sums[name] += value - before[name]
		}
		c.empty(b)
		done += n
	}
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	b.ReportMetric(float64(len(all))/elapsed.Seconds(), "allocs/s")
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(1000*sums["muster_reserve_seconds_sum"]/sums["muster_reserve_seconds_count"], "reserve-ms")
	b.ReportMetric(1000*sums["muster_commit_seconds_sum"]/sums["muster_commit_seconds_count"], "commit-ms")
	b.ReportMetric(float64(cpu.Microseconds())/1000/float64(len(all)), "cpu-ms/alloc")
}

// asStarted is a cluster with the settings of the command `muster dev`, after its
// rings have settled.
func asStarted(b *testing.B, c Config) *Cluster {
	b.Helper()
	was := debug.SetGCPercent(gcPercent)
	b.Cleanup(func() { debug.SetGCPercent(was) })
	var err error
	if c.Work, c.NoContainers, err = workOf("", os.Geteuid(), os.Getenv); err != nil {
		b.Fatal(err)
	}
	started := startWith(b, c)
	settle(b)
	return started
}

// settle waits until the rings have spread the news of the start: until three seconds
// in turn differ by less than a fifth of their mean in processor time.
func settle(b *testing.B) {
	b.Helper()
	const longest = 60
	var last []time.Duration
	for range longest {
		before := cpuTime(b)
		<-time.After(time.Second)
		if last = append(last, cpuTime(b)-before); len(last) < 3 {
			continue
		}
		last = last[len(last)-3:]
		if 5*(slices.Max(last)-slices.Min(last)) < (last[0]+last[1]+last[2])/3 {
			return
		}
	}
	b.Logf("the rings have not settled within %d s: the last seconds took %v of processor time", longest, last)
}

// round makes n allocations from the given number of clients and returns how
// long each took.
func round(b *testing.B, c *Cluster, clients, n int) []time.Duration {
	var next atomic.Int64
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			allocations := c.Client.Allocations("bench")
			var mine []time.Duration
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
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
	return all
}

// one allocates and returns how long that took.
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
	return took, nil
}

// empty deletes every allocation and waits until all are gone.
func (d *Cluster) empty(b *testing.B) {
	allocations := d.Client.Allocations("bench")
	for {
		list, err := allocations.List(b.Context(), sdk.ListOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if len(list.Items) == 0 {
			return
		}
		names := make(chan string)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for name := range names {
					if _, err := allocations.Delete(b.Context(), name, api.DeleteOptions{}); err != nil && !isGone(err) {
						b.Error(err)
					}
				}
			})
		}
		for _, a := range list.Items {
			names <- a.Metadata.Name
		}
		close(names)
		wg.Wait()
	}
}

func isGone(err error) bool {
	var status *api.Status
	return errors.As(err, &status) && status.Code == http.StatusNotFound
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
