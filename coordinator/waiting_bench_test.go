package coordinator_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// waitingShapes is how many different demands wait: half of them ask for one GPU,
// the others for a whole host, which never is free.
const waitingShapes = 32

// fill stores units that wait, as copies of one that does. They alternate
// between one GPU and a host.
func fill(b *testing.B, c *rig.Cluster, like record.Unit, count int) {
	b.Helper()
	var ops []record.Op
	for i := range count {
		r := like
		r.Name, r.UID = fmt.Sprint("w", i), resource.UnitUID(fmt.Sprintf("%s-%d", like.UID, i))
		r.Sequence.Counter += uint64(i) + 1
		document := strings.Replace(string(like.Document), `"memory":"1Gi"`, fmt.Sprintf(`"memory":"%dMi"`, 512+i/2%(waitingShapes/2)), 1)
		document = strings.Replace(document, `"name":"`+like.Name+`"`, `"name":"`+r.Name+`"`, 1)
		if i%2 == 1 {
			document = strings.Replace(document, `"nvidia.com/gpu":"1"`, `"nvidia.com/gpu":"8"`, 1)
		}
		if r.Document = []byte(document); i == 1 && (!strings.Contains(document, `"nvidia.com/gpu":"8"`) || !strings.Contains(document, `"512Mi"`)) {
			b.Fatalf("the document is written otherwise: %s", document)
		}
		ops = append(ops, record.Put(r.Path().Key(), record.MustEncode(r)), record.Put(r.Order().Key(), record.MustEncode(record.Order{UnitUID: r.UID})))
		if len(ops) < 100 && i+1 < count {
			continue
		}
		if _, err := c.Store.Txn(b.Context(), record.Txn{Then: ops}); err != nil {
			b.Fatal(err)
		}
		ops = ops[:0]
	}
}

// processorTime is the process' so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEndWhileUnitsWaitInMemory ends an allocation, whose place the next unit
// takes, and at the same time submits a unit that waits: docs/benchmarks.md. Store,
// network and agent are those of the rig, in memory.
func BenchmarkEndWhileUnitsWaitInMemory(b *testing.B) {
	for _, waiting := range []int{1_000, 16_000, 100_000} {
		b.Run(fmt.Sprint("waiting=", waiting), func(b *testing.B) {
			c := rig.New(b, rig.Options{Patience: 10 * time.Minute, Configure: func(c *coordinator.Config) { c.NamespaceAllocations = 1 << 20 }})
			k := c.Bring(1)
			submit := func(name string) {
				if _, _, err := k.Allocate(b.Context(), rig.Submission{Name: name, GPUs: 1}); err != nil {
					b.Fatal(err)
				}
			}
			isRunning := func(name string) bool {
				a, err := k.GetAllocation(b.Context(), rig.Namespace, name, 0)
				return err == nil && a.Status.Phase == api.Running
			}
			var running []string
			for i := range 8 {
				running = append(running, fmt.Sprint("r", i))
				submit(running[i])
			}
			submit("like")
			kvs, _, err := c.Store.Range(b.Context(), record.UnitsPrefix, store.RangeOptions{})
			if err != nil {
				b.Fatal(err)
			}
			at := slices.IndexFunc(kvs, func(kv record.KV) bool { return strings.Contains(kv.Key, "/like/") })
			like, err := record.Decode[record.Unit](kvs[at].Key, kvs[at].Value)
			if err != nil {
				b.Fatal(err)
			}
			k.Stop()
			fill(b, c, like, waiting-1)
			k = c.StartCoordinator("c2")
			c.AwaitReady(1)
			next := []string{"like"}
			for i := 0; i < waiting-1; i += 2 {
				next = append(next, fmt.Sprint("w", i))
			}
			var took []time.Duration
			before := processorTime(b)
			for i := 0; b.Loop(); i++ {
				ended := make(chan error, 1)
				go func() {
					_, err := k.DeleteAllocation(b.Context(), rig.Namespace, running[0], api.DeleteOptions{})
					ended <- err
				}()
				start := time.Now()
				submit(fmt.Sprint("s", i))
				took = append(took, time.Since(start))
				if err := <-ended; err != nil {
					b.Fatal(err)
				}
				for !isRunning(next[0]) {
					time.Sleep(time.Millisecond)
				}
				running, next = append(running[1:], next[0]), append(next[1:], fmt.Sprint("s", i))
			}
			b.ReportMetric((processorTime(b)-before).Seconds()*1000/float64(len(took)), "cpu-ms/end")
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1000, "submit-p50-ms")
			b.ReportMetric(took[len(took)*9/10].Seconds()*1000, "submit-p90-ms")
		})
	}
}
