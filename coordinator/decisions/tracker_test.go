package decisions_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/resource"
)

func key(priority int32, counter uint64) queue.Key {
	return queue.Key{Priority: priority, Epoch: 7, Counter: counter, Path: fmt.Sprintf("ns/alloc/u%d/0", counter)}
}

var noRoom = decisions.Evidence{Why: decisions.Infeasible}

// rules are those broken by what a leader does.
func rules(act func(*decisions.Tracker)) ([]decisions.Rule, []decisions.Record) {
	var log []decisions.Record
	t := decisions.NewTracker(7, 1, nil, func(r decisions.Record) bool { log = append(log, r); return false })
	act(t)
	t.Flush()
	var broken []decisions.Rule
	for _, v := range check(log).Violations {
		broken = append(broken, v.Rule)
	}
	return broken, log
}

func TestLeaders(t *testing.T) {
	place := func(t *decisions.Tracker, k queue.Key, tx string, victims ...decisions.Victim) {
		kind := decisions.Plain
		if victims != nil {
			kind = decisions.Preemption
		}
		t.Placed(decisions.Placement{Key: k, Tx: resource.TxID(tx), Kind: kind, Victims: victims})
	}
	for name, test := range map[string]struct {
		act  func(*decisions.Tracker)
		want []decisions.Rule
	}{
		"a unit that was tried in vain may be passed over": {act: func(t *decisions.Tracker) {
			t.Arrived(key(0, 1))
			t.Skipped(key(0, 1), noRoom, nil)
			place(t, key(0, 2), "b")
			t.Committed("b", 10)
		}},
		"it must be tried again after something was freed": {act: func(t *decisions.Tracker) {
			t.Skipped(key(0, 1), noRoom, nil)
			t.Freed(2)
			place(t, key(0, 2), "b")
		}, want: []decisions.Rule{decisions.RuleStale}},
		"and may be passed over again if that was in vain": {act: func(t *decisions.Tracker) {
			t.Skipped(key(0, 1), noRoom, nil)
			t.Freed(2)
			t.Skipped(key(0, 1), noRoom, nil)
			place(t, key(0, 2), "b")
		}},
		"a unit that was never tried may not": {act: func(t *decisions.Tracker) {
			t.Arrived(key(0, 1))
			place(t, key(0, 2), "b")
		}, want: []decisions.Rule{decisions.RuleUntried}},
		"a unit behind may wait untried": {act: func(t *decisions.Tracker) {
			t.Arrived(key(0, 2))
			place(t, key(1, 3), "c")
		}},
		"the end of a unit must wake the queue": {act: func(t *decisions.Tracker) {
			place(t, key(0, 1), "a")
			t.Committed("a", 10)
			t.Ended("a", key(0, 1).Path, "done")
			place(t, key(0, 2), "b")
		}, want: []decisions.Rule{decisions.RuleGeneration}},
		"a backoff needs no new try": {act: func(t *decisions.Tracker) {
			t.Skipped(key(0, 1), decisions.Evidence{Why: decisions.InBackoff, Until: 5}, nil)
			t.Freed(2)
			place(t, key(0, 2), "b")
		}},
		"a preemption of lower priority": {act: func(t *decisions.Tracker) {
			place(t, key(3, 1), "a", decisions.Victim{Unit: "v", Priority: 2})
		}},
		"a preemption of the same priority": {act: func(t *decisions.Tracker) {
			place(t, key(3, 1), "a", decisions.Victim{Unit: "v", Priority: 3})
		}, want: []decisions.Rule{decisions.RulePriority}},
		"a unit that runs is placed again": {act: func(t *decisions.Tracker) {
			place(t, key(0, 1), "a")
			t.Committed("a", 10)
			place(t, key(0, 1), "b")
		}, want: []decisions.Rule{decisions.RuleRunning}},
	} {
		t.Run(name, func(t *testing.T) {
			got, log := rules(test.act)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("rules broken (-want +got):\n%s\n%s", diff, text(log))
			}
		})
	}
}

func TestNeighboursShareTheirEvidence(t *testing.T) {
	var log []decisions.Record
	tracker := decisions.NewTracker(7, 1, nil, func(r decisions.Record) bool { log = append(log, r); return false })
	for i := range uint64(1000) {
		tracker.Arrived(key(0, i+1))
	}
	before := len(log)
	details := 0
	for i := range uint64(1000) {
		tracker.Skipped(key(0, i+1), noRoom, func() string { details++; return "want 2, have 1" })
	}
	tracker.Flush()
	if n := len(log) - before; n != 1 || details != 1 {
		t.Fatalf("%d records with %d details, want one:\n%s", n, details, text(log[before:]))
	}
	want := &decisions.Skip{
		First: key(0, 1).Path, Last: key(0, 1000).Path, Count: 1000,
		Evidence: decisions.Evidence{Why: decisions.Infeasible, Generation: 1, Detail: "want 2, have 1"},
	}
	if diff := cmp.Diff(want, log[before].Skip); diff != "" {
		t.Errorf("skip (-want +got):\n%s", diff)
	}
	for generation := range uint64(50) {
		tracker.Freed(generation + 2)
		for i := range uint64(1000) {
			tracker.Skipped(key(0, i+1), noRoom, nil)
		}
		tracker.Placed(decisions.Placement{Key: key(-1, 5000+generation), Tx: resource.TxID(fmt.Sprint(generation)), Kind: decisions.Plain})
	}
	if n := len(log) - before - 1; n != 100 {
		t.Errorf("%d records for 50 units that came and were placed, want 100", n)
	}
	if r := check(log); !r.OK() || r.LongestRow != 1000 || r.PassedOver.Infeasible != 50_000 {
		t.Errorf("report %+v", r)
	}
}

func TestNilTrackerRecordsNothing(t *testing.T) {
	var tracker *decisions.Tracker
	tracker.Arrived(key(0, 1))
	tracker.Skipped(key(0, 1), noRoom, nil)
	tracker.Freed(1)
	tracker.Placed(decisions.Placement{Key: key(0, 1)})
	tracker.Committed("a", 1)
	tracker.Aborted("a")
	tracker.Ended("a", "u", "")
	tracker.Left(key(0, 1))
	tracker.Flush()
}

func TestHistoryOfAUnit(t *testing.T) {
	_, log := rules(func(t *decisions.Tracker) {
		t.Arrived(key(1, 9))
		t.Arrived(key(0, 1))
		t.Arrived(key(0, 2))
		t.Skipped(key(0, 1), noRoom, func() string { return "want 2, have 1" })
		t.Skipped(key(0, 2), noRoom, nil)
		t.Freed(2)
		t.Skipped(key(0, 1), decisions.Evidence{Why: decisions.AwaitsGang}, nil)
		t.Placed(decisions.Placement{Key: key(0, 2), Tx: "b", Kind: decisions.Preemption, Victims: []decisions.Victim{{Unit: "v", Priority: -1}}})
		t.Committed("b", 12)
		t.Ended("b", key(0, 2).Path, "Completed")
	})
	c := decisions.NewChecker()
	h := c.Follow("ns/u2")
	for _, r := range log {
		c.Record(r)
	}
	var got []string
	for _, e := range h.Events {
		got = append(got, fmt.Sprintf("%d: %s", e.Position, e.What))
	}
	want := []string{
		"0: comes into the order",
		"3: passed over: infeasible at generation 1: want 2, have 1",
		"3: placed as b at generation 2, ahead of it 1 untried, 1 awaits-gang; v of priority -1 gives way",
		"0: committed at revision 12 as b",
		"0: b ended: Completed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func ExampleTracker() {
	checker := decisions.NewChecker()
	t := decisions.NewTracker(7, 1, nil, func(r decisions.Record) bool { checker.Record(r); return false })
	big, small := queue.Key{Epoch: 7, Counter: 1, Path: "ml/job/big/0"}, queue.Key{Epoch: 7, Counter: 2, Path: "ml/alloc/small/0"}
	t.Arrived(big)
	t.Arrived(small)
	t.Skipped(big, decisions.Evidence{Why: decisions.Infeasible}, func() string { return "want 64 GPUs, 12 are free" })
	t.Placed(decisions.Placement{Key: small, Tx: "s1", Kind: decisions.Plain})
	t.Committed("s1", 41)
	t.Ended("s1", small.Path, "Completed") // something is free now, and big is not tried again
	t.Placed(decisions.Placement{Key: queue.Key{Epoch: 7, Counter: 3, Path: "ml/alloc/other/0"}, Tx: "o1", Kind: decisions.Plain})

	for _, v := range checker.Report().Violations {
		fmt.Println(v.Rule, v.Unit, v.Detail)
	}
	// Output: generation ml/alloc/other/0 generation 1, when it was 2 already
}

// rows are how many wait while a benchmark runs.
var rows = []uint64{1000, 16_000, 100_000}

// inVain returns a tracker of n units that were tried, and their keys.
func inVain(n uint64) (*decisions.Tracker, []queue.Key) {
	keys := make([]queue.Key, n)
	for i := range keys {
		keys[i] = key(0, uint64(i)+1)
	}
	tracker := decisions.NewTracker(7, 1, keys, func(decisions.Record) bool { return false })
	for _, k := range keys {
		tracker.Skipped(k, noRoom, nil)
	}
	tracker.Flush()
	return tracker, keys
}

// BenchmarkLongQueue is one unit that comes and is placed behind many that were
// tried again: the account's cost in time and in bytes.
func BenchmarkLongQueue(b *testing.B) {
	for _, waiting := range append(rows, 0) {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			bytes := 0
			tracker := decisions.NewTracker(7, 1, nil, func(r decisions.Record) bool { bytes += len(decisions.Encode(r)); return false })
			for i := range waiting {
				tracker.Skipped(key(0, i+1), noRoom, nil)
			}
			tracker.Flush()
			last := key(-1, 1<<40)
			bytes = 0
			for b.Loop() {
				tracker.Placed(decisions.Placement{Key: last, Tx: "t", Kind: decisions.Plain})
				tracker.Committed("t", 10)
			}
			b.ReportMetric(float64(bytes)/float64(b.N), "logged-B/op")
		})
	}
}

// BenchmarkOrder is what the account does with one unit amid many, or with each
// of them, without the encoding.
func BenchmarkOrder(b *testing.B) {
	for _, waiting := range rows {
		tracker, keys := inVain(waiting)
		generation := uint64(1)
		each := func(name string, act func(queue.Key)) {
			b.Run(fmt.Sprintf("%s/waiting=%d", name, waiting), func(b *testing.B) {
				for i := uint64(0); b.Loop(); i++ {
					act(keys[i*7919%waiting])
				}
			})
		}
		each("leave and arrive", func(k queue.Key) { tracker.Left(k); tracker.Arrived(k) })
		each("place and arrive", func(k queue.Key) {
			tracker.Placed(decisions.Placement{Key: k, Tx: "t", Kind: decisions.Plain})
			tracker.Committed("t", 10)
			tracker.Arrived(k)
		})
		each("skip", func(k queue.Key) { tracker.Skipped(k, noRoom, nil) })
		each("try one again and place", func(k queue.Key) {
			generation++
			tracker.Freed(generation)
			tracker.Skipped(k, noRoom, nil)
			tracker.Placed(decisions.Placement{Key: keys[waiting-1], Tx: "t", Kind: decisions.Plain})
			tracker.Committed("t", 10)
		})
		b.Run(fmt.Sprintf("try all again/waiting=%d", waiting), func(b *testing.B) {
			for b.Loop() {
				generation++
				tracker.Freed(generation)
				for _, k := range keys {
					tracker.Skipped(k, noRoom, nil)
				}
				tracker.Placed(decisions.Placement{Key: keys[waiting-1], Tx: "t", Kind: decisions.Plain})
				tracker.Committed("t", 10)
			}
		})
	}
}
