package decisions_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/topology"
	"github.com/musterd/muster/resource"
)

func key(priority int32, counter uint64) queue.Key {
	return queue.Key{Priority: priority, Epoch: 7, Counter: counter, Path: fmt.Sprintf("ns/alloc/u%d/0", counter)}
}

var (
	noPlace   = sched.Evidence{Code: sched.NoPlace}
	overLimit = sched.Evidence{Code: sched.OverLimit}
	overTree  = sched.Evidence{Code: sched.OverTree, Trees: []string{"teams"}}
	claim     = sched.Evidence{Code: sched.Claim, Trees: []string{"teams"}}
	noVictims = sched.Evidence{Code: sched.NoVictims}
	leaving   = sched.Evidence{Code: sched.Leaving}
)

// TestLeaders: a big unit has failed, and a leader places the small one behind it.
func TestLeaders(t *testing.T) {
	big, small := key(3, 1), key(0, 2)
	none := func(*cluster.Node, int64) cluster.Amounts { return cluster.Amounts{} }
	node, away := newNode("n1", nil), newNode("n2", map[string]string{"zone": "away"})
	cordoned := newNode("n3", nil)
	cordoned.Unschedulable = true
	for _, n := range []*cluster.Node{node, away, cordoned} {
		n.Refresh()
	}
	inZone := place.Unit{Members: 1, Request: resource.Request{GPUs: 1}, Constraints: constraint.Compile(constraint.Spec{NodeSelector: map[string]string{"zone": "here"}})}
	joining := place.Unit{Members: 1, Request: resource.Request{GPUs: 8}, Subject: &constraint.Subject{Namespace: "ns", Group: "job/a"}, Topology: &topology.Rules{}}
	borrows := noVictims
	borrows.Borrows, borrows.Trees = true, []string{"teams"}
	untried, stale := []decisions.Rule{decisions.RuleUntried}, []decisions.Rule{decisions.RuleStale}
	for name, test := range map[string]struct {
		demand place.Unit // of the big unit; none: 8 GPUs
		why    *sched.Evidence
		then   func(s *scene)
		want   []decisions.Rule
	}{
		"it was tried in vain":                                {why: &noPlace},
		"it was never tried":                                  {want: untried},
		"a node has grown":                                    {why: &noPlace, then: func(s *scene) { s.room.Grew(node, none) }, want: stale},
		"a node has grown, and it was tried again":            {why: &noPlace, then: func(s *scene) { s.room.Grew(node, none); s.pass() }},
		"a cordoned node has grown":                           {why: &noPlace, then: func(s *scene) { s.room.Grew(cordoned, none) }},
		"a node of another zone has grown":                    {demand: inZone, why: &noPlace, then: func(s *scene) { s.room.Grew(away, none) }},
		"a node without enough devices has grown":             {demand: place.Unit{Members: 1, Request: resource.Request{GPUs: 9}}, why: &noPlace, then: func(s *scene) { s.room.Grew(node, none) }},
		"the same, and all on it may be evicted":              {demand: place.Unit{Members: 1, Request: resource.Request{GPUs: 9}}, why: &noVictims, then: func(s *scene) { s.room.Grew(node, holds(1000)) }, want: stale},
		"the same, and not enough of it may be":               {demand: place.Unit{Members: 1, Request: resource.Request{GPUs: 9}}, why: &noVictims, then: func(s *scene) { s.room.Grew(node, holds(999)) }},
		"it asks for a profile that the node has not":         {demand: place.Unit{Members: 1, Request: resource.Request{MIG: 1, MIGProfile: "1g.5gb"}}, why: &noPlace, then: func(s *scene) { s.room.Grew(node, none) }},
		"it asks for huge pages that the node has not":        {demand: place.Unit{Members: 1, Request: resource.Request{Hugepages: 1 << 40, HugepageSize: 2 << 20}}, why: &noPlace, then: func(s *scene) { s.room.Grew(node, none) }},
		"a node has grown, and it is over its limit":          {why: &overLimit, then: func(s *scene) { s.room.Grew(node, none) }},
		"a charge to its namespace has ended":                 {why: &overLimit, then: func(s *scene) { s.room.Freed("ns", nil) }, want: stale},
		"a charge to another namespace has ended":             {why: &overLimit, then: func(s *scene) { s.room.Freed("other", nil) }},
		"a charge to its tree has ended":                      {why: &overTree, then: func(s *scene) { s.room.Freed("other", []string{"a", "teams"}) }, want: stale},
		"a charge to another tree has ended":                  {why: &overTree, then: func(s *scene) { s.room.Freed("ns", []string{"a"}) }},
		"a charge has ended, and it has no place":             {why: &noPlace, then: func(s *scene) { s.room.Freed("ns", []string{"teams"}) }},
		"a charge to the tree that it claims has begun":       {why: &claim, then: func(s *scene) { s.room.Charged([]string{"teams"}) }, want: stale},
		"a charge to another tree has begun":                  {why: &claim, then: func(s *scene) { s.room.Charged([]string{"a"}) }},
		"a charge to the tree that refuses it has begun":      {why: &overTree, then: func(s *scene) { s.room.Charged([]string{"teams"}) }},
		"a charge to the tree that refuses it moved others":   {why: &overTree, then: func(s *scene) { s.room.Moved([]string{"teams"}) }, want: stale},
		"a charge to another tree has moved others":           {why: &overTree, then: func(s *scene) { s.room.Moved([]string{"a"}) }},
		"a charge to its tree moved others, no place":         {why: &noPlace, then: func(s *scene) { s.room.Moved([]string{"teams"}) }},
		"it would borrow, and a charge to its tree has ended": {why: &borrows, then: func(s *scene) { s.room.Freed("other", []string{"teams"}) }, want: stale},
		"it would borrow, and a charge elsewhere has ended":   {why: &borrows, then: func(s *scene) { s.room.Freed("ns", []string{"a"}) }},
		"it would borrow, and others have moved anywhere":     {why: &borrows, then: func(s *scene) { s.room.Moved([]string{"a"}) }, want: stale},
		"it would borrow nothing, and others have moved":      {why: &noVictims, then: func(s *scene) { s.room.Moved([]string{"teams"}) }},
		"a member of the gang that it joins has come":         {demand: joining, why: &noPlace, then: func(s *scene) { s.room.Neighbour(&constraint.Subject{Namespace: "ns", Group: "job/a"}) }, want: stale},
		"a member of another gang has come":                   {demand: joining, why: &noPlace, then: func(s *scene) { s.room.Neighbour(&constraint.Subject{Namespace: "ns", Group: "job/b"}) }},
		"a member of such a gang of another namespace":        {demand: joining, why: &noPlace, then: func(s *scene) { s.room.Neighbour(&constraint.Subject{Namespace: "other", Group: "job/a"}) }},
		"a unit of lower priority can give way":               {why: &noVictims, then: func(s *scene) { s.room.Evictable(2, []*cluster.Node{node}, holds(0)) }, want: stale},
		"a unit of lower priority elsewhere can give way":     {demand: inZone, why: &noVictims, then: func(s *scene) { s.room.Evictable(2, []*cluster.Node{away}, holds(0)) }},
		"a unit of its own priority can give way":             {why: &noVictims, then: func(s *scene) { s.room.Evictable(3, []*cluster.Node{node}, holds(0)) }},
		"nobody gives way for it, and a unit can give way":    {why: &noPlace, then: func(s *scene) { s.room.Evictable(2, []*cluster.Node{node}, holds(0)) }},
		"it claims what is lent, and any unit can give way":   {why: &claim, then: func(s *scene) { s.room.Evictable(9, nil, holds(0)) }, want: stale},
		"a unit has left on whose room it counted":            {why: &leaving, then: func(s *scene) { s.room.Unleft() }, want: stale},
		"a unit has left on whose room it did not count":      {why: &noVictims, then: func(s *scene) { s.room.Unleft() }},
		"a time has come":                                     {why: &overTree, then: func(s *scene) { s.room.Due() }, want: stale},
		"a time has come, and it is over a limit":             {why: &overLimit, then: func(s *scene) { s.room.Due() }},
		"a limit has changed":                                 {why: &overLimit, then: func(s *scene) { s.room.All() }, want: stale},
		"it has a backoff":                                    {then: func(s *scene) { s.hold(big, decisions.Evidence{Why: decisions.InBackoff, Until: 5}) }},
		"its backoff has ended":                               {then: func(s *scene) { s.hold(big, decisions.Evidence{Why: decisions.InBackoff, Until: 5}); s.offer(big, 1) }, want: untried},
		"another one like it has come":                        {why: &noPlace, then: func(s *scene) { s.offer(key(3, 9), 8) }},
		"another one that wants less has come":                {why: &noPlace, then: func(s *scene) { s.offer(key(3, 9), 1) }, want: untried},
		"another one has come behind the small one":           {why: &noPlace, then: func(s *scene) { s.offer(key(-1, 9), 1) }},
		"an earlier unit that wants the same as the small":    {why: &noPlace, then: func(s *scene) { s.offer(key(0, 0), 1) }, want: untried},
		"its class has emptied, and begins anew":              {why: &noPlace, then: func(s *scene) { s.room.Remove(big); s.offer(big, 8) }, want: untried},
		"it has left":                                         {then: func(s *scene) { s.room.Remove(big) }},
		"the end of a charge was told to it":                  {why: &overLimit, then: func(s *scene) { s.tracker.Ended("x", "ns/alloc/x/0", ""); s.room.Freed("ns", nil); s.pass() }},
		"the end of a charge was not":                         {why: &overLimit, then: func(s *scene) { s.tracker.Ended("x", "ns/alloc/x/0", "") }, want: stale},
		"the end of a charge to another namespace was not":    {why: &overLimit, then: func(s *scene) { s.tracker.Ended("x", "other/alloc/x/0", "") }},
		"the end of a charge was not, and it has no place":    {why: &noPlace, then: func(s *scene) { s.tracker.Ended("x", "ns/alloc/x/0", "") }},
		"it has failed again since the charge ended":          {why: &overLimit, then: func(s *scene) { s.room.All(); s.tracker.Ended("x", "ns/alloc/x/0", ""); s.pass() }},
		"the small one gives way to nobody, and is evicting": {why: &noPlace, then: func(s *scene) {
			s.room.Remove(big)
			s.offer(key(0, 3), 1)
			s.place(small, "p", decisions.Victim{Unit: "v"})
		}, want: []decisions.Rule{decisions.RulePriority, decisions.RuleOrder, decisions.RuleRunning}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			if test.demand.Members == 0 {
				test.demand = place.Unit{Members: 1, Request: resource.Request{GPUs: 8}}
			}
			s.offerDemand(big, test.demand)
			if test.why != nil {
				s.fail(big, *test.why)
				s.pass()
			}
			s.offer(small, 1)
			s.fail(small, noPlace) // a pass leaves it alone
			if test.then != nil {
				test.then(s)
			}
			s.place(small, "b")
			if diff := cmp.Diff(test.want, s.broken()); diff != "" {
				t.Errorf("rules broken (-want +got):\n%s\n%s", diff, text(s.log))
			}
		})
	}
}

// TestClassComesBackWithAnotherGroup: a class has lost a job, and got another job of equal
// traits. Only members of the second job are neighbours of the class.
func TestClassComesBackWithAnotherGroup(t *testing.T) {
	job := func(name string) place.Unit {
		return place.Unit{Members: 2, Request: resource.Request{GPUs: 8}, Subject: &constraint.Subject{Namespace: "ns", Group: name}, Topology: &topology.Rules{}}
	}
	for name, test := range map[string]struct {
		moves string // the job of which members leave
		want  []decisions.Rule
	}{
		"members of the job that was there": {moves: "job/a"},
		"members of the job that waits":     {moves: "job/b", want: []decisions.Rule{decisions.RuleStale}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			first, second, small := key(3, 1), key(3, 2), key(0, 3)
			traits := sched.Traits{Demand: "2 of 8 GPUs", Relation: "labels ", Namespace: "ns", Priority: 3}
			was, is := job("job/a"), job("job/b")
			s.room.Offer(first, traits, &was)
			s.pass()
			s.fail(second, noPlace)
			s.room.Offer(second, traits, &is)
			s.pass()
			s.offer(small, 1)
			s.room.Neighbour(&constraint.Subject{Namespace: "ns", Group: test.moves})
			s.place(small, "b")
			if diff := cmp.Diff(test.want, s.broken()); diff != "" {
				t.Errorf("rules broken (-want +got):\n%s\n%s", diff, text(s.log))
			}
		})
	}
}

// TestAGroupIsTriedThoughAnotherSleeps: units of two groups ask for the same, and rules of
// others select a group. The unit of the second group has not been tried.
func TestAGroupIsTriedThoughAnotherSleeps(t *testing.T) {
	s := newScene()
	offer := func(k queue.Key, group string) {
		u := place.Unit{Members: 1, Request: resource.Request{GPUs: 8}, Subject: &constraint.Subject{Namespace: "ns", Group: group}}
		s.room.Offer(k, sched.Traits{Demand: "8 GPUs", Relation: u.Subject.Key(true), Namespace: "ns", Priority: k.Priority}, &u)
	}
	first, second, small := key(3, 1), key(3, 2), key(0, 3)
	offer(first, constraint.MixedGroup+"a")
	s.fail(first, noPlace)
	s.pass()
	offer(second, constraint.MixedGroup+"b")
	s.offer(small, 1)
	s.place(small, "b")
	if diff := cmp.Diff([]decisions.Rule{decisions.RuleUntried}, s.broken()); diff != "" {
		t.Errorf("rules broken (-want +got):\n%s\n%s", diff, text(s.log))
	}
}

// holds has others hold GPUs on every node, and enough of all else.
func holds(gpu resource.Milli) sched.Held {
	return func(*cluster.Node, int64) cluster.Amounts {
		return cluster.Amounts{CPU: 1 << 40, Memory: 1 << 50, GPU: gpu}
	}
}

func TestAQueueOfOneClassCostsOneLine(t *testing.T) {
	s := newScene()
	for i := range uint64(1000) {
		s.offer(key(0, i+1), 8)
	}
	before := len(s.log)
	s.fail(key(0, 1), noPlace)
	s.pass()
	want := decisions.Sleep{Class: 1, Code: decisions.NoPlace, Detail: "want 8 GPUs"}
	if diff := cmp.Diff(&want, s.log[before].Sleep); diff != "" || len(s.log) != before+1 {
		t.Fatalf("%d records, the first (-want +got):\n%s", len(s.log)-before, diff)
	}
	before = len(s.log)
	for i := range uint64(50) {
		s.room.All()
		s.offer(key(-1, 5000+i), 1)
		s.pass()
	}
	if n := len(s.log) - before; n != 50*5+1 { // an event, a sleep without its reasons, and a unit that comes and is placed
		t.Errorf("%d records for 50 units that came and were placed behind them, want 251:\n%s", n, text(s.log[before:]))
	}
	if r := check(s.log); !r.OK() || r.LongestRow != 1000 || r.PassedOver.Asleep != 50_000 {
		t.Errorf("report %+v", r)
	}
}

// TestEventsAreOfInterestToSleepersOnly: nothing is logged that no class waits for.
func TestEventsAreOfInterestToSleepersOnly(t *testing.T) {
	s := newScene()
	grew := func() { s.room.Grew(newNode("n1", nil), holds(0)) }
	s.offer(key(0, 1), 1)
	before := len(s.log)
	for _, event := range []func(){grew, s.room.All, s.room.Due, s.room.Unleft} {
		event()
	}
	if n := len(s.log) - before; n != 0 {
		t.Errorf("%d records while no class sleeps", n)
	}
	s.fail(key(0, 1), overLimit)
	s.pass()
	before = len(s.log)
	for _, event := range []func(){grew, s.room.Due, s.room.Unleft} {
		event()
	}
	if n := len(s.log) - before; n != 0 {
		t.Errorf("%d records while a class waits for a limit", n)
	}
}

// TestDescriptionsOfClassesAreBounded: classes that come and go do not fill the
// leader's memory, and those that come back need no line.
func TestDescriptionsOfClassesAreBounded(t *testing.T) {
	s := newScene()
	described := 0
	for i := range 2000 {
		s.offer(key(0, uint64(i)), 1+i%2)
		s.offer(key(0, 1_000_000), 100+i) // another class each time
		s.room.Remove(key(0, uint64(i)))
		s.room.Remove(key(0, 1_000_000))
	}
	for _, r := range s.log {
		if r.Class != nil && r.Class.Request.GPUs < 100 {
			described++
		}
	}
	if r := check(s.log); !r.OK() || described > 2*2000/200 {
		t.Errorf("two classes are described %d times; %d violations", described, len(r.Violations))
	}
}

func TestNilTrackerRecordsNothing(t *testing.T) {
	var tracker *decisions.Tracker
	tracker.Placed(decisions.Placement{Key: key(0, 1)})
	tracker.Committed("a", 1)
	tracker.Aborted("a")
	tracker.Ended("a", "u", "")
	tracker.Restored(decisions.Restored{})
}

func TestHistoryOfAUnit(t *testing.T) {
	s := newScene()
	s.offer(key(1, 9), 8)
	s.hold(key(0, 1), decisions.Evidence{Why: decisions.AwaitsGang, Subject: "ns/job/g/0"})
	s.offer(key(0, 2), 4)
	s.fail(key(1, 9), noPlace)
	s.fail(key(0, 2), noPlace)
	s.pass()
	s.room.All()
	s.pass() // in vain for the same reason: no news
	s.room.All()
	s.fail(key(0, 2), overLimit)
	s.pass()
	s.offer(key(0, 3), 4)
	s.room.All()
	delete(s.fails, key(0, 2).Path)
	s.pass()
	s.tracker.Committed("t1", 12)
	s.tracker.Ended("t1", key(0, 2).Path, "Completed")
	for unit, want := range map[string][]string{
		"ns/u1": {"0: comes into the order", "2: passed over: awaits-gang: ns/job/g/0"},
		"ns/u2": {
			"0: comes into the order",
			"3: passed over with class 2: no-place: want 4 GPUs",
			"3: passed over with class 2: over-limit: want 4 GPUs",
			"3: placed as t1, ahead of it 1 awaits-gang, 1 asleep",
			"0: committed at revision 12 as t1",
			"0: t1 ended: Completed",
		},
		"ns/u3": {
			"0: comes into the order",
			"4: passed over with class 2: over-limit: want 4 GPUs",
			"3: placed as t2, ahead of it 1 awaits-gang, 1 asleep",
		},
	} {
		c := decisions.NewChecker()
		h := c.Follow(unit)
		for _, r := range s.log {
			c.Record(r)
		}
		var got []string
		for _, e := range h.Moments {
			got = append(got, fmt.Sprintf("%d: %s", e.Position, e.What))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: moments (-want +got):\n%s\n%s", unit, diff, text(s.log))
		}
	}
}

func ExampleTracker() {
	s := newScene() // a room, and a Tracker that follows it
	big, small := queue.Key{Epoch: 7, Counter: 1, Path: "ns/job/big/0"}, queue.Key{Epoch: 7, Counter: 2, Path: "ns/alloc/small/0"}
	s.offer(big, 8)
	s.fail(big, sched.Evidence{Code: sched.OverLimit})
	s.offer(small, 1)
	s.pass()
	s.tracker.Ended("t1", small.Path, "Completed")
	s.room.Freed("ns", nil) // a charge has ended, and big is not tried again
	other := queue.Key{Epoch: 7, Counter: 3, Path: "ns/alloc/other/0"}
	s.offer(other, 1)
	s.place(other, "t2")

	for _, v := range check(s.log).Violations {
		fmt.Println(v.Rule, v.Unit, v.Detail)
	}
	// Output: stale ns/alloc/other/0 placed at position 2; the classes of 1 ahead were not tried again after a charge to namespace ns has ended: ns/job/big/0
}

// rows are how many wait while a benchmark runs.
var rows = []uint64{0, 1000, 16_000, 100_000}

// BenchmarkLongQueue is one unit that comes and is placed behind many of a class
// that sleeps, after an event that wakes it: the account's cost in time and in
// bytes, beside that of the room.
func BenchmarkLongQueue(b *testing.B) {
	for _, waiting := range rows {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			bytes := 0
			s := newScene()
			for i := range waiting {
				s.offer(key(0, i+1), 8)
			}
			s.fail(key(0, 1), noPlace)
			s.tracker = decisions.NewTracker(7, s.room, s, func(r decisions.Record) bool { bytes += len(decisions.Encode(r)); return false })
			s.pass()
			last := key(-1, 1<<40)
			bytes = 0
			for b.Loop() {
				s.room.All()
				s.offer(last, 1)
				s.pass()
			}
			b.ReportMetric(float64(bytes)/float64(b.N), "logged-B/op")
		})
	}
}
