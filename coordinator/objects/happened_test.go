package objects_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/events"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// unit is an allocation that waits for a reason, as its keys have it.
func unit(i int, reason string) []record.KV {
	name := fmt.Sprint("allocation-", i)
	u := record.Unit{
		UID: resource.UnitUID("alloc-" + name), Kind: record.AllocUnit, Namespace: "default", Name: name, Tenant: "default", Queue: "default", Phase: string(api.Pending), Members: 1,
		Sequence: record.Sequence{Epoch: 1, Counter: uint64(i)}, Document: fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"resources":{"requests":{"nvidia.com/gpu":"1"}}}}`, name),
	}
	order := record.Order{UnitUID: u.UID, Waiting: &record.Waiting{Code: reason, Message: "no place now; `muster why " + name + "` says why", SinceMillis: 1}}
	return []record.KV{{Key: u.Path().Key(), Value: record.MustEncode(u)}, {Key: u.Order().Key(), Value: record.MustEncode(order)}}
}

// TestAFloodOfEventsStaysWithinItsMemory: 10,000 objects wait for one reason after the
// other. The events with their places in the log and in the table take no more than is
// counted, and no more than the limit.
func TestAFloodOfEventsStaysWithinItsMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("not permitted here: a flood of 100,000 changes is for the long run")
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, kvs, rev := objects.New(), map[string]record.KV{}, resource.Revision(1)
	log := events.New(events.Default, now)
	round := func(reason string) {
		rev++
		for i := range 10_000 {
			for _, kv := range unit(i, reason) {
				kv.ModRev, kv.CreateRev = rev, 2
				kvs[kv.Key] = kv
				c.Touch(kv.Key)
			}
		}
		now = now.Add(time.Second)
		if err := c.Refresh(kvs, rev, now); err != nil {
			t.Fatal(err)
		}
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	round("First")
	before := heap()
	c.KeepEvents(log, "c1", rev, now)
	for i := range 10 {
		round(fmt.Sprint("Reason", i))
		if log.Bytes() > events.Default.Bytes {
			t.Fatalf("round %d: %d bytes, the limit is %d", i, log.Bytes(), events.Default.Bytes)
		}
	}
	taken, shown := heap()-before, c.View(rev, now).Len(objects.Events)
	t.Logf("%d events, %d MiB by the estimate, %d MiB of the heap", shown, log.Bytes()>>20, taken>>20)
	if shown != log.Len() || shown < 50_000 {
		t.Errorf("the table has %d events, the log %d", shown, log.Len())
	}
	if taken > uint64(log.Bytes()) {
		t.Errorf("%d events take %d bytes of the heap and are counted as %d", shown, taken, log.Bytes())
	}
	runtime.KeepAlive(c)
}

// BenchmarkRefresh is a change of one of 10,000 allocations, with and without events.
func BenchmarkRefresh(b *testing.B) {
	for _, with := range []string{"none", "events"} {
		b.Run(with, func(b *testing.B) {
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			c, kvs := objects.New(), map[string]record.KV{}
			change := func(i int, reason string, rev resource.Revision) {
				for _, kv := range unit(i, reason) {
					kv.ModRev, kv.CreateRev = rev, 1
					kvs[kv.Key] = kv
					c.Touch(kv.Key)
				}
			}
			for i := range 10_000 {
				change(i, "First", 1)
			}
			if err := c.Refresh(kvs, 1, now); err != nil {
				b.Fatal(err)
			}
			if with == "events" {
				c.KeepEvents(events.New(events.Default, now), "c1", 1, now)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				rev := resource.Revision(i + 2)
				change(i%10_000, fmt.Sprint("Reason", i/10_000%40), rev)
				if err := c.Refresh(kvs, rev, now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
