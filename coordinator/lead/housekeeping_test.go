package lead

import (
	"slices"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
)

// TestWhichRecordsAreCollected: those that are older than the retention, and that no
// victim's record names.
func TestWhichRecordsAreCollected(t *testing.T) {
	const retention = time.Minute
	for name, c := range map[string]struct {
		age     time.Duration
		named   bool
		deletes bool
	}{
		"as old as the retention": {age: retention},
		"older":                   {age: retention + 1, deletes: true},
		"older, and named":        {age: retention + 1, named: true},
	} {
		x := newScene(t)
		x.retired.terminal = []terminalRecord{{transaction(1), x.clock.Add(-c.age)}}
		if c.named {
			x.running("a", 2, "").Attempt.By = transaction(1)
		}
		if x.do(x.collect); len(x.asked) > 0 != c.deletes || len(x.retired.terminal) > 0 == c.deletes {
			t.Errorf("%s: %d writes, %d are left", name, len(x.asked), len(x.retired.terminal))
		}
	}
}

// TestOnlyRecordsBeyondTheRetentionAreTaken, also where an older one is collected.
func TestOnlyRecordsBeyondTheRetentionAreTaken(t *testing.T) {
	at := time.Unix(100, 0)
	r := newRetired()
	r.terminal = []terminalRecord{{transaction(1), at.Add(-1)}, {transaction(2), at}}
	if old := r.takeOld(at, nil, 9); len(old) != 1 || old[0].tx != transaction(1) || len(r.terminal) != 1 {
		t.Errorf("%v are taken, %v are left, want the first alone", old, r.terminal)
	}
}

// TestACollectionThatDidNotLandIsTriedAgain: at most collectAtOnce records at a time,
// and the oldest first, also then.
func TestACollectionThatDidNotLandIsTriedAgain(t *testing.T) {
	x := newScene(t)
	for i := range collectAtOnce + 1 {
		x.retired.terminal = append(x.retired.terminal, terminalRecord{transaction(uint64(i)), x.clock.Add(time.Duration(i)*time.Second - time.Hour)})
	}
	all := slices.Clone(x.retired.terminal)
	x.do(x.collect)
	if ops := len(x.asked[0].Write.Ops); ops != collectAtOnce || len(x.retired.terminal) != 1 {
		t.Fatalf("%d records at once, %d are left", ops, len(x.retired.terminal))
	}
	x.give(WriteAnswer{x.next().Token, txn.Conflict, 0, nil})
	if !slices.Equal(x.retired.terminal, all) {
		t.Errorf("%d records are left, want all %d in their order", len(x.retired.terminal), len(all))
	}
	x.do(x.collect)
	if x.answer(); len(x.retired.terminal) != 1 {
		t.Errorf("%d records are left once it has landed", len(x.retired.terminal))
	}
}

// TestTheRoundsOfTheLeader: what it does once in a while, and not a moment earlier.
func TestTheRoundsOfTheLeader(t *testing.T) {
	for name, c := range map[string]struct {
		kind  post.Kind
		first bool // in the first round
		every time.Duration
	}{
		"history is compacted":        {post.CompactStore, true, compactEvery},
		"request ids get a new lease": {post.GrantLease, false, time.Hour + 1},
		"fences are looked for":       {post.ReadFenceKeys, true, time.Minute},
	} {
		x := newScene(t)
		for i, step := range []struct {
			after time.Duration
			does  bool
		}{{0, c.first}, {c.every - 1, false}, {1, true}, {0, false}} {
			x.clock = x.clock.Add(step.after)
			x.clear()
			if x.give(SecondPassed{}); x.did(c.kind) != step.does {
				t.Errorf("%s, step %d: %t", name, i, !step.does)
			}
		}
	}
}

// TestADifferenceIsActedOnWhenItLasts: the second audit in a row that finds one asks
// the agent for everything.
func TestADifferenceIsActedOnWhenItLasts(t *testing.T) {
	x := newScene(t)
	n := x.nodes["n1"]
	for i, c := range []struct {
		astray, asks bool
	}{{true, false}, {false, false}, {true, false}, {true, true}, {true, false}, {true, true}} {
		n.mirror.Told = n.mirror.Sum
		if c.astray {
			n.mirror.Told++
		}
		x.clear()
		if x.do(x.audit); slices.Contains(x.commands(), "n1 Resync") != c.asks {
			t.Errorf("audit %d: asked %t", i, !c.asks)
		}
	}
	for name, leaveOut := range map[string]func(){
		"isolated":      func() { n.accused = &record.Violation{} },
		"not connected": func() { n.connected = false },
	} {
		leaveOut()
		n.mirror.Told, x.nodes["n2"].mirror.Told = n.mirror.Sum+1, x.nodes["n2"].mirror.Sum+1
		x.do(x.audit)
		x.clear()
		if x.do(x.audit); !slices.Equal(x.commands(), []string{"n2 Resync"}) {
			t.Errorf("with n1 %s: %v, want n2 alone asked", name, x.commands())
		}
	}
}

// TestEverythingWakesAtTheEarliestTime: another alarm only replaces a later one.
func TestEverythingWakesAtTheEarliestTime(t *testing.T) {
	x := newScene(t)
	x.do(func() {
		x.wakeAt(time.Time{})
		x.wakeAt(x.clock.Add(5))
		x.wakeAt(x.clock.Add(3))
		x.wakeAt(x.clock.Add(7))
	})
	for i, wakes := range []bool{false, false, true, false, false, false, false} {
		over := sleeps(x.Leader, sched.Evidence{Code: sched.OverTree})
		if x.pass(1); over.woken() != wakes {
			t.Errorf("at %d: woken %t", i+1, !wakes)
		}
	}
}

// TestTheLeaseOfARequestIDEndsAfterADay: ids expire by whole seconds.
func TestTheLeaseOfARequestIDEndsAfterADay(t *testing.T) {
	x := newScene(t)
	key := record.DigestOfRequest("t", "id")
	x.requests.Remember(key, record.Request{}.Remembered(), x.clock)
	for _, c := range []struct {
		after time.Duration
		known bool
	}{{RequestLeaseTTL, true}, {time.Second, false}} {
		x.clock = x.clock.Add(c.after)
		x.give(SecondPassed{})
		if _, known := x.requests.Get(key); known != c.known {
			t.Errorf("after %v: known %t", c.after, known)
		}
	}
}
