package lead_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/alone"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// crowd is a cluster in which many units wait, of so many classes. A class differs
// from the others by the memory that its units ask for.
type crowd struct {
	*alone.Cluster
	b       *testing.B
	classes int
	gpus    int      // of each unit that waits
	running []string // names, in the order of their begin
	next    int      // number of the next submission
}

// newCrowd fills so many hosts with units of some GPUs, until one more has to wait.
// Then so many wait, which ask for waiterGPUs.
func newCrowd(b *testing.B, hosts, gpus, waiterGPUs, waiting, classes int) *crowd {
	b.Helper()
	c := &crowd{b: b, classes: classes, gpus: waiterGPUs}
	rules := lead.Rules{NamespaceAllocations: 1 << 20, Namespaces: map[string]lead.Namespace{"default": {Admission: "queue"}}}
	begun := func(path string) { c.running = append(c.running, strings.Split(path, "/")[2]) }
	c.Cluster = alone.New(alone.Options{Nodes: hosts, Rules: rules, Begun: begun}, time.Unix(1_700_000_000, 0))
	for i := range hosts * (8 / gpus) {
		c.submit(fmt.Sprint("r", i), gpus, 0)
	}
	if waiting > 0 {
		c.submit("like", waiterGPUs, 0)
		c.copyUnits(c.Keys(record.UnitsPrefix + "default/alloc/like/")[0], waiting-1)
		c.Lead()
	}
	c.wait(waiting)
	return c
}

// copyUnits stores units that wait as one does, each in the class of its number.
func (c *crowd) copyUnits(kv record.KV, count int) {
	like, err := record.Decode[record.Unit](kv.Key, kv.Value)
	if err != nil {
		c.b.Fatal(err)
	}
	for i := 1; i <= count; i++ {
		r := like
		r.Name, r.UID = fmt.Sprint("w", i), resource.UnitUID(fmt.Sprintf("%s-%d", like.UID, i))
		r.Sequence.Counter += uint64(i)
		r.Document = documentOfClass(r.Name, c.gpus, i%c.classes)
		c.Put(r.Path().Key(), record.MustEncode(r))
		c.Put(r.Order().Key(), record.MustEncode(record.Order{UnitUID: r.UID}))
	}
}

// documentOfClass is an allocation of a class.
func documentOfClass(name string, gpus, class int) []byte {
	return fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"resources":{"requests":{"memory":"%dMi","nvidia.com/gpu":"%d"}}}}`, name, 512+class, gpus)
}

func (c *crowd) submit(name string, gpus, class int) {
	text := documentOfClass(name, gpus, class)
	doc, status := api.DecodeAllocation(text)
	if status != nil {
		c.b.Fatal(status)
	}
	if _, status := c.Ask(lead.CreateAllocation{Submitted: lead.Submitted{Namespace: "default", Document: text}, Document: doc}); status != nil {
		c.b.Fatal(status)
	}
}

// submitNext submits a unit of the next class and returns its name.
func (c *crowd) submitNext(gpus int) string {
	c.next++
	name := fmt.Sprint("s", c.next)
	c.submit(name, gpus, c.next%c.classes)
	return name
}

func (c *crowd) end(name string) {
	request := lead.DeleteAllocation{Namespace: "default", Name: name}
	request.Options.GracePeriodSeconds = new(int64)
	if _, status := c.Ask(request); status != nil {
		c.b.Fatal(status)
	}
}

// wait checks how many wait.
func (c *crowd) wait(want int) {
	c.b.Helper()
	if _, _, _, queued := c.Leader().Sizes(); queued != want {
		c.b.Fatalf("%d units wait, want %d", queued, want)
	}
}

// stopwatch adds up the processor time of the process between on and off.
type stopwatch struct {
	total time.Duration
	since time.Duration
}

func (s *stopwatch) on()  { s.since = processorTime() }
func (s *stopwatch) off() { s.total += processorTime() - s.since }

// report reports the time for each round.
func (s *stopwatch) report(b *testing.B) {
	b.ReportMetric(float64(s.total.Nanoseconds())/1000/float64(b.N), "cpu-µs/op")
}

// processorTime is the process' so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// crowded runs a benchmark beside different numbers of waiting units and classes.
func crowded(b *testing.B, sizes []int, run func(b *testing.B, waiting, classes int)) {
	for _, waiting := range sizes {
		for _, classes := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("waiting=%d/classes=%d", waiting, classes), func(b *testing.B) { run(b, waiting, classes) })
		}
	}
}

// BenchmarkEndBesideWaitingUnits is a round of an end, the begin of the next unit
// in its place, and a submission that waits. Each unit that waits asks for one GPU,
// which is what has ended: the end wakes every class.
func BenchmarkEndBesideWaitingUnits(b *testing.B) {
	crowded(b, []int{1_000, 16_000, 100_000}, func(b *testing.B, waiting, classes int) {
		c := newCrowd(b, 1, 1, 1, waiting, classes)
		b.Run("round", func(b *testing.B) {
			var s stopwatch
			s.on()
			for b.Loop() {
				c.end(c.running[0])
				c.running = c.running[1:]
				c.submitNext(1)
			}
			s.off()
			s.report(b)
			if c.wait(waiting); len(c.running) != 8 {
				b.Fatalf("%d units run, want 8", len(c.running))
			}
		})
	})
}

// BenchmarkSubmitBesideWaitingUnits is a submission: one that waits, or one that
// begins at once on hosts where those that wait have no room.
func BenchmarkSubmitBesideWaitingUnits(b *testing.B) {
	crowded(b, []int{0, 1_000, 16_000, 100_000}, func(b *testing.B, waiting, classes int) {
		const atOnce = 24 // on 8 hosts with 3 free GPUs each
		c := newCrowd(b, 8, 5, 8, waiting, classes)
		for _, gpus := range []int{8, 1} {
			b.Run(map[int]string{8: "waits", 1: "begins"}[gpus], func(b *testing.B) {
				var s stopwatch
				var made []string
				withdraw := func() {
					s.off()
					b.StopTimer()
					for _, name := range made {
						c.end(name)
					}
					c.wait(waiting)
					made = made[:0]
					b.StartTimer()
					s.on()
				}
				s.on()
				for b.Loop() {
					if made = append(made, c.submitNext(gpus)); len(made) == atOnce {
						withdraw()
					}
				}
				withdraw()
				s.off()
				s.report(b)
			})
		}
	})
}

// BenchmarkPassWithNothingNew is a pass while units wait and nothing has happened.
func BenchmarkPassWithNothingNew(b *testing.B) {
	crowded(b, []int{1_000, 100_000}, func(b *testing.B, waiting, classes int) {
		c := newCrowd(b, 1, 1, 1, waiting, classes)
		b.Run("pass", func(b *testing.B) {
			buffer := make([]post.Effect, 0, 64)
			b.ReportAllocs()
			for b.Loop() {
				if buffer = c.Leader().Pass(c.Now(), buffer[:0]); len(buffer) > 0 {
					b.Fatalf("the pass has the effect %d", buffer[0].Kind)
				}
			}
		})
	})
}
