package lead

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/life"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
)

// keepsHouse lets time pass in steps of a second at most for the last, and has the store
// answer.
func (x *scene) keepsHouse(d time.Duration) {
	x.t.Helper()
	x.pass(d)
	x.give(SecondPassed{})
	x.answers()
}

// takesOver has another leader go on.
func (x *scene) takesOver() *scene {
	x.t.Helper()
	next := x.succeeded()
	next.give(ResumeWork{})
	next.answers()
	next.hearsHosts()
	return next
}

// A job is removed ttlSecondsAfterFinished after its end and not earlier, whichever leader
// does it, and its name is free then.
func TestAJobIsRemovedSomeTimeAfterItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		keep time.Duration
	}{
		"by default after a day": {"", life.KeptAfterEnd + work.ClockError},
		"after a minute":         {`"ttlSecondsAfterFinished":60,`, time.Minute + work.ClockError},
		"at once":                {`"ttlSecondsAfterFinished":0,`, 0},
		"after the longest time": {`"ttlSecondsAfterFinished":2147483647,`, (1<<31-1)*time.Second + work.ClockError},
	} {
		for _, leaders := range []int{1, 2} {
			t.Run(fmt.Sprint(name, "/leaders ", leaders), func(t *testing.T) {
				x := newWorkScene(t)
				u := x.submitLife("j", 3, `"backoffLimit":0,`+c.spec, `"gangScheduling":{"minMembers":2},`)
				x.holdsAll(u)
				x.ends(u, 0, 0, "Completed")
				x.fails(u, 1, 0, "Completed")
				if got := x.work.Jobs["default/j"].Record.Phase; got != string(api.Succeeded) {
					t.Fatalf("the job is %s", got)
				}
				if leaders == 2 {
					x = x.takesOver()
				}
				if c.keep > 0 {
					x.keepsHouse(c.keep - time.Millisecond)
					if x.work.Jobs["default/j"] == nil {
						t.Fatal("the job is removed before its time")
					}
				}
				x.keepsHouse(time.Millisecond)
				if x.work.Jobs["default/j"] != nil {
					t.Error("the job is there after its time")
				}
				if kvs := x.listed(record.UnitsPrefix); kvs != 0 {
					t.Errorf("%d units are left in the store", kvs)
				}
				x.submitLife("j", 1, "", "")
				x.check()
			})
		}
	}
}

// listed counts the keys below a prefix.
func (x *scene) listed(prefix string) int {
	x.t.Helper()
	kvs, _, err := x.kv.Range(x.t.Context(), prefix, store.RangeOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	return len(kvs)
}

// An allocation ends with its ttl, is Succeeded, and is removed a day later, also over
// leaders.
func TestAnAllocationEndsWithItsTTL(t *testing.T) {
	for _, takeover := range []string{"never", "while it runs", "while it ends", "after its end"} {
		t.Run("another leader "+takeover, func(t *testing.T) {
			x := newScene(t)
			u := x.submit("a", 2, `"ttl":"90s",`)
			x.holdsAll(u)
			at := func(when string) {
				if when == takeover {
					x = x.takesOver()
					u = x.work.Units[u.Path]
				}
			}
			at("while it runs")
			x.keepsHouse(90*time.Second + work.ClockError - time.Millisecond)
			if u.Phase() != api.Running {
				t.Fatalf("before its time it is %s", u.Phase())
			}
			x.keepsHouse(time.Millisecond)
			if u.Phase() != api.Terminating {
				t.Fatalf("after its time it is %s", u.Phase())
			}
			at("while it ends")
			x.settles(u, grant.Tombstone)
			at("after its end")
			if got := x.stored(u); got.Phase != string(api.Succeeded) || got.EndedBy() != record.TTLExpired || got.EndedMillis == 0 {
				t.Errorf("it is %s by %q at %d", got.Phase, got.EndedBy(), got.EndedMillis)
			}
			x.check()
			x.keepsHouse(life.KeptAfterEnd)
			if x.work.Units[u.Path] == nil {
				t.Error("it is removed before its time")
			}
			x.keepsHouse(work.ClockError)
			if x.work.Units[u.Path] != nil || x.listed(record.UnitsPrefix) != 0 {
				t.Error("it is there after its time")
			}
			x.check()
		})
	}
}

// A deletion while an allocation ends with its ttl removes it at its end.
func TestADeletionAmidTheEndOfATTL(t *testing.T) {
	x := newScene(t)
	u := x.submit("a", 2, `"ttl":"90s",`)
	x.holdsAll(u)
	x.keepsHouse(90*time.Second + work.ClockError)
	x.leaves("a")
	if u.Life.Gone() || x.refusedWith() != "" {
		t.Fatalf("gone %t, refused with %q", u.Life.Gone(), x.refusedWith())
	}
	x.settles(u, grant.Tombstone)
	if !u.Life.Gone() || x.listed(record.UnitsPrefix) != 0 {
		t.Error("it is still there")
	}
	x.check()
}

// Many objects go at a bounded rate, the oldest first, and each once, also where the
// answers of the store are lost.
func TestRemovalsHaveARate(t *testing.T) {
	rules := sceneRules()
	rules.NamespaceAllocations = 1000
	x := newSceneOf(t, rules)
	const many = 3 * 50
	for i := range many {
		u := x.accepted(fmt.Sprintf("a%03d", i), 2, `"suspend":true,`)
		x.do(func() {
			x.writeFailed(u, record.WaitTimeout, "WaitTimeout: x", func() {}, func() { x.finishOverdue(u) })
		})
		x.answers()
	}
	x.clear()
	x.pass(life.KeptAfterEnd + work.ClockError)
	for second := 1; second <= 3; second++ {
		x.give(SecondPassed{})
		lost := 0
		for len(x.asked) > 0 {
			if lost++; lost%10 == 0 && x.asked[0].Kind == post.WriteKeys {
				x.loses(true)
			} else {
				x.answer()
			}
		}
		if left := x.listed(record.UnitsPrefix); left != many-second*50 || len(x.work.Units) != left {
			t.Fatalf("after %d seconds %d are in the store and %d known, want %d", second, left, len(x.work.Units), many-second*50)
		}
		x.pass(time.Second)
	}
	x.check()
}

// A removal that the store refuses is tried again, and one that its owner overtakes is not.
func TestARemovalThatIsRefused(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitLife("j", 1, `"backoffLimit":0,"ttlSecondsAfterFinished":5,`, "")
	x.holdsAll(u)
	x.fails(u, 0, 0, "Completed")
	x.pass(5*time.Second + work.ClockError)
	x.give(SecondPassed{})
	for e := x.next(); ; e = x.next() { // the store has no space for the removal
		if e.Kind == post.WriteKeys {
			x.give(WriteAnswer{e.Token, txn.Conflict, 0, errors.New("no space")})
			break
		}
	}
	x.answers()
	if x.work.Jobs["default/j"] == nil {
		t.Fatal("the job is removed though the store has refused")
	}
	x.keepsHouse(removalAgain)
	if x.work.Jobs["default/j"] != nil {
		t.Error("the job is not removed later")
	}
	x.check()
}

// A deletion that the store refuses while the time of the removal comes leaves the
// allocation for a later removal.
func TestADeletionThatIsRefusedDelaysTheRemoval(t *testing.T) {
	x := newScene(t)
	u := x.accepted("a", 2, `"suspend":true,`)
	x.do(func() {
		x.writeFailed(u, record.WaitTimeout, "WaitTimeout: x", func() {}, func() { x.finishOverdue(u) })
	})
	x.answers()
	x.pass(life.KeptAfterEnd + work.ClockError)
	x.clear()
	x.ask(DeleteAllocation{Namespace: "default", Name: "a"})
	x.give(SecondPassed{})
	for e := x.next(); ; e = x.next() { // the store has no space for the deletion
		if e.Kind == post.WriteKeys {
			x.give(WriteAnswer{e.Token, txn.Conflict, 0, errors.New("no space")})
			break
		}
	}
	x.answers()
	if u.Life.Gone() || u.Life.EndAsked() {
		t.Fatalf("gone %t, ending %+v: want the allocation as before the deletion", u.Life.Gone(), u.Life.Ending())
	}
	x.keepsHouse(removalAgain)
	if !u.Life.Gone() || x.listed(record.UnitsPrefix) != 0 {
		t.Error("it is not removed later")
	}
	x.check()
}

// Each end of a unit has its instant, also of one that has never run.
func TestTheEndOfAUnitThatWaitedHasAnInstant(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitLife("j", 1, `"suspend":true,`, "")
	x.answers()
	x.cancels(u.Job, false)
	if got := x.stored(u); got.Phase != string(api.Cancelled) || got.EndedMillis != x.post.Millis() {
		t.Errorf("the unit is %s at %d, want Cancelled at %d", got.Phase, got.EndedMillis, x.post.Millis())
	}
	x.check()
}
