package follow

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/etcd"
	"github.com/musterd/muster/resource"
)

// embedded is a store as a coordinator without other members has it: etcd in this
// process, which acknowledges a write after fsync.
func embedded(b *testing.B) store.Store {
	b.Helper()
	s, err := etcd.Embed(b.Context(), etcd.EmbedConfig{Dir: filepath.Join(b.TempDir(), "etcd")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

// allocationIn is the write of an allocation of a namespace.
func allocationIn(namespace, name string) record.Op {
	unit := record.Unit{
		UID: resource.UnitUID("uid-" + name), Kind: record.AllocUnit, Namespace: namespace, Name: name, Tenant: "default", Queue: "default",
		Phase: string(api.Running), Members: 1, Document: fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"resources":{"requests":{"cpu":"1","nvidia.com/gpu":"1"}}}}`, name),
	}
	return record.Put(unit.Path().Key(), record.MustEncode(unit))
}

// put writes in one Txn and returns its revision.
func put(b *testing.B, s store.Store, ops ...record.Op) resource.Revision {
	b.Helper()
	r, err := s.Txn(b.Context(), record.Txn{Then: ops})
	if err != nil {
		b.Error(err)
	}
	return r.Revision
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPage renders and encodes a page of 500 of 10,000 allocations.
func BenchmarkPage(b *testing.B) {
	back := embedded(b)
	for batch := range 100 {
		var ops []record.Op
		for namespace := range 100 {
			ops = append(ops, allocationIn(fmt.Sprint("ns-", namespace), fmt.Sprint("a-", 100*batch+namespace)))
		}
		put(b, back, ops...)
	}
	f := startCoordinator(back)
	defer f.kill()
	for at, changed := f.At(); at == 0; at, changed = f.At() {
		<-changed
	}
	b.ReportAllocs()
	for b.Loop() {
		v, err := f.Fresh(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for i := range v.After(objects.Allocations, "", objects.Named(objects.Allocations, "ns-5/a")) {
			objects.Encode(i.Object())
			if n++; n == 500 {
				break
			}
		}
		if n != 500 {
			b.Fatal(n)
		}
	}
}

// BenchmarkWatches has 1,000 watches over 100 namespaces, at 1,000 changes a
// second. Each op is a change. A lag counts from the instant at which the change was due.
func BenchmarkWatches(b *testing.B) {
	back := embedded(b)
	f := New(options(back, slog.New(slog.DiscardHandler)))
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { f.Run(ctx) })
	put(b, back, allocationIn("ns-0", "first"))
	for at, changed := f.At(); at == 0; at, changed = f.At() {
		<-changed
	}
	type sight struct {
		revision resource.Revision
		at       time.Time
	}
	seen := make([][]sight, 1000)
	for i := range seen {
		w, err := f.Watch(ctx, objects.WatchOptions{Kind: objects.Allocations, Namespace: fmt.Sprint("ns-", i%100), After: objects.AllOf(2)})
		if err != nil {
			b.Fatal(err)
		}
		all.Go(func() {
			defer w.Close()
			for {
				c, err := w.Next(ctx)
				if err != nil {
					return
				}
				now := time.Now()
				for _, e := range c.Events {
					seen[i] = append(seen[i], sight{e.ID.Revision, now})
				}
			}
		})
	}
	type change struct {
		number int
		due    time.Time
	}
	var mu sync.Mutex
	written := map[resource.Revision]time.Time{}
	var writers sync.WaitGroup
	changes := make(chan change)
	for range 16 { // a round of fsync may take longer than the time between two changes
		writers.Go(func() {
			for c := range changes {
				rev := put(b, back, allocationIn(fmt.Sprint("ns-", c.number%100), fmt.Sprint("a-", c.number%2000)))
				mu.Lock()
				written[rev] = c.due
				mu.Unlock()
			}
		})
	}
	b.ResetTimer()
	began, cpu := time.Now(), cpuTime(b)
	for i := 0; b.Loop(); i++ {
		due := began.Add(time.Duration(i) * time.Millisecond)
		if wait := time.Until(due); wait > 0 {
			<-time.After(wait)
		}
		changes <- change{i, due}
	}
	close(changes)
	writers.Wait()
	spent, took := cpuTime(b)-cpu, time.Since(began)
	cancel()
	all.Wait()
	var lags []time.Duration
	for _, s := range slices.Concat(seen...) {
		if due, known := written[s.revision]; known {
			lags = append(lags, s.at.Sub(due))
		}
	}
	slices.Sort(lags)
	b.ReportMetric(float64(b.N)/took.Seconds(), "changes/s")
	b.ReportMetric(100*spent.Seconds()/took.Seconds(), "%core")
	if n := len(lags); n > 0 {
		b.ReportMetric(float64(lags[n/2].Microseconds())/1000, "lag-p50-ms")
		b.ReportMetric(float64(lags[n*99/100].Microseconds())/1000, "lag-p99-ms")
		b.ReportMetric(float64(n)/float64(b.N), "deliveries/op")
	}
}
