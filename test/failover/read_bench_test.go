package failover

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/cluster"
)

// getsEach is the time between two gets: 1,000 a second.
const getsEach = time.Millisecond

// cpuOf is the processor time that a process has taken.
func cpuOf(b *testing.B, p *cluster.Process) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		b.Fatal(err)
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	var ticks int64
	for _, f := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// cpuOfSelf is the processor time that the process of the clients has taken.
func cpuOfSelf(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkGetFromAFollower gets allocations from a follower of three
// coordinators, 1,000 a second, over TLS: the newest state, for which the store confirms its
// revision, and the state that the follower has. A latency counts from the instant at
// which the get was due. Each op is a get. The processor time of a get is reported of the
// follower, of the store's three members and of the clients: on two cores it says how much of
// the latency is the wait for a processor.
func BenchmarkGetFromAFollower(b *testing.B) {
	b.Run("the newest state", func(b *testing.B) { getFromAFollower(b, sdk.GetOptions{}) })
	b.Run("the state of the follower", func(b *testing.B) { getFromAFollower(b, sdk.GetOptions{ResourceVersion: "0"}) })
}

func getFromAFollower(b *testing.B, o sdk.GetOptions) {
	c := cluster.Start(b, cluster.Options{Etcd: 3, Agents: 1, Quiet: true})
	leader, _ := c.AwaitLeader(0)
	follower := c.Followers(leader)[0]
	const allocations = 20
	k := c.At(follower)
	for i := range allocations {
		a := one(fmt.Sprint("a", i))
		a.Spec.Resources.Requests = map[resource.Name]string{"cpu": "10m"}
		c.Run(k, a)
	}
	const workers = 64
	due := make(chan time.Time, workers)
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for at := range due {
				_, err := k.GetAllocation(context.Background(), "default", fmt.Sprint("a", at.UnixMilli()%allocations), o)
				passed := time.Since(at)
				if err != nil {
					b.Error(err)
				}
				mu.Lock()
				took = append(took, passed)
				mu.Unlock()
			}
		})
	}
	idle := cpuOf(b, leader)
	<-time.After(5 * time.Second)
	idle = cpuOf(b, leader) - idle
	ofStore := func() (all time.Duration) {
		for _, p := range c.Etcd {
			all += cpuOf(b, p)
		}
		return all
	}
	b.ResetTimer()
	began, busy := time.Now(), cpuOf(b, leader)
	ofFollower, ofClients, etcds := cpuOf(b, follower), cpuOfSelf(b), ofStore()
	for i := 0; b.Loop(); i++ {
		at := began.Add(time.Duration(i) * getsEach)
		if wait := time.Until(at); wait > 0 {
			<-time.After(wait)
		}
		due <- at
	}
	close(due)
	all.Wait()
	spent, passed := cpuOf(b, leader)-busy, time.Since(began)
	ofFollower, ofClients, etcds = cpuOf(b, follower)-ofFollower, cpuOfSelf(b)-ofClients, ofStore()-etcds
	slices.Sort(took)
	b.ReportMetric(float64(len(took))/passed.Seconds(), "gets/s")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(100*idle.Seconds()/5, "%core-leader-idle")
	b.ReportMetric(100*spent.Seconds()/passed.Seconds(), "%core-leader")
	for whose, cpu := range map[string]time.Duration{"follower": ofFollower, "clients": ofClients, "etcd": etcds} {
		b.ReportMetric(float64(cpu.Microseconds())/float64(len(took)), "us/get-"+whose)
	}
}
