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
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
)

// storedWaiting is why a unit waits as the store has it, nil for nothing.
func (x *scene) storedWaiting(u *work.Unit) *record.Waiting {
	x.t.Helper()
	order, _ := storedAs[record.Order](x, u.Record.Order().Key())
	return order.Waiting
}

// waitsFor is the code in the store, "" for none.
func (x *scene) waitsFor(u *work.Unit) string {
	if w := x.storedWaiting(u); w != nil {
		return w.Code
	}
	return ""
}

// second lets a second pass.
func (x *scene) second() {
	x.pass(time.Second)
	x.give(SecondPassed{})
}

func TestAUnitIsStoredWithTheReasonWhyItWaits(t *testing.T) {
	x := newScene(t)
	x.second() // for the observations of the nodes
	x.answers()
	a := x.submit("a", 9, "") // more than a node has
	if x.answers(); x.waitsFor(a) != "WaitingForResources" {
		t.Errorf("the store has %+v", x.storedWaiting(a))
	}
	c := x.conditionOf(a, "Scheduled")
	if c.Reason != "WaitingForResources" || c.Message != "no place now; `muster why a -n default` says why" || c.LastTransitionTime != post.Stamp(x.clock) {
		t.Errorf("shown as %+v", c)
	}
	x.second()
	if len(x.asked) > 0 {
		t.Errorf("what is stored is written again: %+v", x.asked)
	}
}

// TestAnotherReasonIsWrittenWithinASecond, and the same one with another message
// only after a while.
func TestAnotherReasonIsWrittenWithinASecond(t *testing.T) {
	x := newScene(t)
	x.running("r1", 8, "")
	x.running("r2", 8, "")
	a := x.accepted("a", 8, "")
	since := x.storedWaiting(a).SinceMillis
	x.pass(time.Second)
	x.finish(func() { x.end(x.work.Units["default/alloc/r1/0"], txn.ReleaseAsked{}) })
	x.settles(x.work.Units["default/alloc/r1/0"], grant.Tombstone)
	refuse := func() {
		x.t.Helper()
		for a.Attempt == nil {
			x.pass(100 * time.Millisecond)
		}
		x.settles(a, grant.No)
	}
	refuse()
	x.give(SecondPassed{})
	x.answers()
	w := x.storedWaiting(a)
	if w == nil || w.Code != "Refused" || w.Refusals != 1 || w.SinceMillis <= since || !strings.Contains(w.Message, "node n") {
		t.Fatalf("after a refusal: %+v", w)
	}
	if c := x.conditionOf(a, "Scheduled"); c.Reason != "Refused" || c.Message != w.Message || c.LastTransitionTime != post.Stamp(post.InstantOf(w.SinceMillis)) {
		t.Errorf("shown as %+v", c)
	}
	written := x.clock
	for x.clock.Sub(written) < waitingEvery-2*time.Second {
		refuse()
		x.give(SecondPassed{})
		if x.answers(); x.clock.Sub(written) < waitingEvery && x.storedWaiting(a).Refusals != 1 {
			t.Fatalf("written again after %v: %+v", x.clock.Sub(written), x.storedWaiting(a))
		}
	}
	x.pass(waitingEvery)
	refuse()
	x.give(SecondPassed{})
	if x.answers(); x.storedWaiting(a).Refusals < 2 || x.storedWaiting(a).SinceMillis != w.SinceMillis {
		t.Errorf("after %v: %+v, since %d before", waitingEvery, x.storedWaiting(a), w.SinceMillis)
	}
}

// TestAReasonNeverOutlivesTheWait: its write arrives after the unit's commit.
func TestAReasonNeverOutlivesTheWait(t *testing.T) {
	x := newScene(t)
	x.second() // for the observations of the nodes
	x.answers()
	x.running("r1", 8, "")
	x.running("r2", 8, "")
	a := x.accepted("a", 8, "")
	x.do(func() { a.Wait.SetTold(work.Told{Revision: a.Wait.Told.Revision}) }) // as after an election
	x.second()
	if len(x.asked) != 1 {
		t.Fatalf("%d writes, want one", len(x.asked))
	}
	late := x.next()
	x.finish(func() { x.end(a, txn.ReleaseAsked{}) })
	r, err := x.kv.Txn(t.Context(), record.Txn{If: late.Write.Compares, Then: late.Write.Ops})
	if err != nil || r.Succeeded || x.storedWaiting(a) != nil {
		t.Errorf("%v, landed %t, the store has %+v", err, r.Succeeded, x.storedWaiting(a))
	}
}

// TestNoUnitStarvesForItsReason: of more units than one second's writes, all have
// theirs after the seconds that it takes, also while events concern the same few
// again and again; and no second has more writes than it may.
func TestNoUnitStarvesForItsReason(t *testing.T) {
	const units = 900
	rules := sceneRules()
	rules.NamespaceAllocations = 2 * units
	x := newSceneOf(t, rules)
	var all []*work.Unit
	for i := range units {
		all = append(all, x.submit(fmt.Sprint("u", i), 9, ""))
	}
	x.seconds(9) // for the verdicts
	for _, u := range all {
		u.Wait.SetTold(work.Told{Revision: u.Wait.Told.Revision}) // as units of an older version
	}
	loud := all[450:]
	perSecond := waitingRate.Burst + int(time.Second/waitingRate.Every)
	for range 12 {
		for _, u := range loud {
			if u.Wait.Told.Waiting != nil {
				w := *u.Wait.Told.Waiting
				w.Code = "Other" // what is stored is out of date at once
				u.Wait.SetTold(work.Told{Waiting: &w, Revision: u.Wait.Told.Revision})
			}
			x.noteWaiting(u)
		}
		x.second()
		if len(x.asked) > perSecond {
			t.Fatalf("%d writes in a second, want at most %d", len(x.asked), perSecond)
		}
		x.answers()
	}
	for _, u := range all[:450] {
		if u.Wait.Told.Waiting == nil {
			t.Fatalf("%s has no reason after 12 s", u.Path)
		}
	}
}

func TestTheNextLeaderShowsTheReasonThatIsStored(t *testing.T) {
	x := newScene(t)
	a := x.accepted("a", 9, "")
	want := x.conditionOf(a, "Scheduled")
	version := x.allocation(a, 0).Metadata.ResourceVersion
	next := x.succeeded()
	a = next.work.Units[a.Path]
	if got := next.conditionOf(a, "Scheduled"); got != want || next.allocation(a, 0).Metadata.ResourceVersion != version {
		t.Errorf("%+v at %s, want %+v at %s", got, next.allocation(a, 0).Metadata.ResourceVersion, want, version)
	}
}

func TestAUnitThatIsEvictedAndWaitsAnewWasNotTried(t *testing.T) {
	x := newScene(t)
	j := x.submitJob("j", 2, 1)
	x.settles(j, grant.Reserved)
	x.finish(func() { x.evict(j, txn.EvictAsked{Reason: "drill"}) })
	x.says(j, grant.Tombstone)
	for j.Phase() != api.Pending {
		x.answer()
	}
	if w := x.storedWaiting(j); w != nil {
		t.Errorf("%+v", w)
	}
	s := x.showJob(j.Job)
	if c := s.Show().Status.Conditions[0]; c.Reason != "Unscheduled" || c.Message != "waiting for the scheduler" {
		t.Errorf("%+v", c)
	}
}
