package lead

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// readyKeys are the transactions that the store calls ready.
func (x *scene) readyKeys() []string {
	x.t.Helper()
	kvs, _, err := x.kv.Range(x.t.Context(), record.ReadyPrefix, store.RangeOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	var keys []string
	for _, kv := range kvs {
		keys = append(keys, strings.TrimPrefix(kv.Key, record.ReadyPrefix))
	}
	return keys
}

// conditionOf is a condition of an allocation as the leader shows it.
func (x *scene) conditionOf(u *work.Unit, kind string) api.Condition {
	for _, c := range x.allocation(u, 0).Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return api.Condition{}
}

func TestAUnitIsReadyWhenTheStoreSaysSo(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 2, "")
	before := x.allocation(a, 0).Metadata.ResourceVersion
	x.clock = x.clock.Add(1500 * time.Millisecond)
	x.says(a, grant.Held)
	if c := x.conditionOf(a, "Ready"); c.Status != "False" || c.Reason != "Confirming" {
		t.Errorf("before the store has it: %+v", c)
	}
	if got, want := x.compares(), "tx/a unchanged"; got != want {
		t.Errorf("the write compares %q, want %q", got, want)
	}
	x.answers()
	if c := x.conditionOf(a, "Ready"); c.Status != "True" || c.LastTransitionTime != post.Stamp(x.clock) {
		t.Errorf("once the store has it: %+v, want it at %s", c, post.Stamp(x.clock))
	}
	if after := x.allocation(a, 0).Metadata.ResourceVersion; after == before {
		t.Errorf("resourceVersion %s stands for two contents", after)
	}
	x.says(a, grant.Held) // once more
	if len(x.asked) > 0 {
		t.Errorf("it is written again: %+v", x.asked)
	}
}

func TestAUnitThatIsReleasedAtOnceIsNeverReady(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 2, "")
	x.do(func() { x.end(a, txn.ReleaseAsked{}) })
	x.says(a, grant.Held)
	if len(x.asked) != 1 {
		t.Errorf("%d writes, want the release alone", len(x.asked))
	}
	if x.answers(); len(x.readyKeys()) > 0 {
		t.Errorf("%v", x.readyKeys())
	}
}

// TestReadinessNeverLandsBesideAnotherState of the record: the write was sent
// before the release, and arrives after it.
func TestReadinessNeverLandsBesideAnotherState(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 2, "")
	x.says(a, grant.Held)
	x.do(func() { x.end(a, txn.ReleaseAsked{}) })
	x.asked[0], x.asked[1] = x.asked[1], x.asked[0]
	if x.answers(); len(x.readyKeys()) > 0 || a.Attempt.Ready.Revision != 0 {
		t.Errorf("%v, %+v", x.readyKeys(), a.Attempt.Ready)
	}
}

func TestReadinessThatTheStoreRefusesIsWrittenLater(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 2, "")
	x.says(a, grant.Held)
	x.give(WriteAnswer{x.next().Token, txn.Conflict, 0, record.ErrNoSpace})
	if len(x.asked) > 0 {
		t.Fatalf("it is written again at once: %+v", x.asked)
	}
	x.give(SecondPassed{})
	if x.answers(); len(x.readyKeys()) != 1 {
		t.Errorf("%v", x.readyKeys())
	}
	b := x.running("b", 2, "")
	x.says(b, grant.Held)
	x.loses(true)
	if x.answers(); len(x.readyKeys()) != 2 || b.Attempt.Ready.Revision == 0 {
		t.Errorf("after an unknown outcome: %v, %+v", x.readyKeys(), b.Attempt.Ready)
	}
}

func TestReadinessGoesWithItsRecord(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 2, "")
	x.settles(a, grant.Held)
	x.finish(func() { x.end(a, txn.ReleaseAsked{}) })
	if c := x.conditionOf(a, "Ready"); c.Status != "False" || c.Reason != "Terminating" {
		t.Errorf("while it ends: %+v", c)
	}
	x.settles(a, grant.Tombstone)
	if len(x.readyKeys()) != 1 {
		t.Fatalf("%v: it is to stay beside its record", x.readyKeys())
	}
	x.clock = x.clock.Add(2 * time.Minute)
	x.do(x.collect)
	if x.answers(); len(x.readyKeys()) > 0 || len(x.retired.ready) > 0 {
		t.Errorf("after the collection: %v, %v", x.readyKeys(), x.retired.ready)
	}
}

// TestTheNextLeaderWritesOnlyWhatIsNotWritten: and that not faster than it may.
func TestTheNextLeaderWritesOnlyWhatIsNotWritten(t *testing.T) {
	x := newScene(t)
	a, b := x.running("a", 1, ""), x.running("b", 1, "")
	at := x.clock
	x.settles(a, grant.Held)
	stray := resource.NewTxID("gone", 1, 1, resource.Nonce{})
	x.put(record.ReadyKey(stray), record.MustEncode(record.Ready{AtMillis: 1}))
	x.clock = x.clock.Add(time.Hour)
	next := x.succeeded()
	next.give(ResumeWork{})
	for _, id := range []resource.NodeID{"n1", "n2"} {
		next.hear(next.hosts[id])
	}
	next.answers()
	a, b = next.work.Units[a.Path], next.work.Units[b.Path]
	if c := next.conditionOf(a, "Ready"); c.Status != "True" || c.LastTransitionTime != post.Stamp(at) {
		t.Errorf("a after the election: %+v", c)
	}
	if c := next.conditionOf(b, "Ready"); c.Status != "False" {
		t.Errorf("b after the election: %+v", c)
	}
	for range readyRate.Burst {
		next.readyPace.Take(next.clock, readyRate)
	}
	next.asked = nil
	for _, u := range []*work.Unit{a, b} {
		next.says(u, grant.Held)
	}
	if next.answers(); len(next.readyKeys()) != 2 {
		t.Errorf("%v are written at once", next.readyKeys())
	}
	next.clock = next.clock.Add(time.Second)
	next.give(SecondPassed{})
	next.answers()
	if keys := next.readyKeys(); len(keys) != 2 || strings.Contains(fmt.Sprint(keys), string(stray)) {
		t.Errorf("%v, want those of a and b", keys)
	}
	if c := next.conditionOf(b, "Ready"); c.Status != "True" {
		t.Errorf("b in the end: %+v", c)
	}
}

// TestAUnitThatIsReleasedWhileItsReadinessWaitsIsNeverReady: the rate let the write
// not through before the release.
func TestAUnitThatIsReleasedWhileItsReadinessWaitsIsNeverReady(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 1, "")
	x.do(func() {
		x.unwritten = append(x.unwritten, a.Attempt.Machine.ID())
		x.end(a, txn.ReleaseAsked{})
	})
	x.asked = nil
	x.do(x.writeUnwritten)
	if len(x.asked) > 0 {
		t.Errorf("%+v is written", x.asked)
	}
}

func TestAChangeFromBeforeAWriteOfTheStatusIsNoConflict(t *testing.T) {
	for name, c := range map[string]struct {
		from func(before, after string) string
		want string
	}{
		"the version before the allocation was ready": {func(before, _ string) string { return before }, "ml"},
		"the version of now":                          {func(_, after string) string { return after }, "ml"},
		"a version from before it ran":                {func(string, string) string { return "1" }, "409"},
		"a version of the future":                     {func(string, string) string { return "999999" }, "409"},
		"no number":                                   {func(string, string) string { return "x1" }, "409"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			a := x.running("a", 2, "")
			before := x.allocation(a, 0).Metadata.ResourceVersion
			x.settles(a, grant.Held)
			x.clear()
			patch := team("ml")
			patch.ResourceVersion = c.from(before, x.allocation(a, 0).Metadata.ResourceVersion)
			x.ask(PatchAllocation{"default", "a", patch})
			if x.answers(); x.answered() != c.want {
				t.Errorf("%q, want %q", x.answered(), c.want)
			}
		})
	}
}

// TestAUnitStartedWhenItsCommitSays: not when the leader hears of the answer.
func TestAUnitStartedWhenItsCommitSays(t *testing.T) {
	x := newScene(t)
	a := x.submit("a", 2, "")
	x.says(a, grant.Reserved)
	sent := x.clock
	x.clock = x.clock.Add(3 * time.Second)
	x.answers()
	if stored := x.stored(a); stored.Started != post.Stamp(sent) || a.Record.Started != stored.Started {
		t.Errorf("the store has %s, the leader %s, want %s", stored.Started, a.Record.Started, post.Stamp(sent))
	}
}

// TestAMemberShowsThatItIsFreed: while another member of the gang stops.
func TestAMemberShowsThatItIsFreed(t *testing.T) {
	x := newScene(t)
	u := x.gangOf(2, "", "")
	x.finish(func() { x.end(u, txn.ReleaseAsked{}) })
	freed := u.Attempt.Machine.Nodes()[0]
	x.hear(x.reply(u, grant.Tombstone))
	x.seconds(3)
	for i := range 2 {
		if got := x.showMember(u, i).Freed; got != (x.memberNode(u, i) == freed) {
			t.Errorf("%s has freed its member; member %d on %s: freed %t", freed, i, x.memberNode(u, i), got)
		}
	}
}
