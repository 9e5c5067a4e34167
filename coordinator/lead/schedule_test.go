package lead

import (
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestTheBackoffOfARefusedUnit: it doubles up to two seconds, and the unit is tried
// again when it is over.
func TestTheBackoffOfARefusedUnit(t *testing.T) {
	x := newScene(t)
	u := x.submit("a", 2, "")
	x.says(u, grant.No) // the first time it is stored instead
	x.answers()
	for i, want := range []time.Duration{40, 80, 160, 320, 640, 1280, 2000, 2000} {
		want *= time.Millisecond
		if u.Attempt == nil {
			t.Fatalf("refusal %d: it is not tried", i+2)
		}
		x.settles(u, grant.No)
		if got := u.Wait.Rested.Sub(x.clock); got != want {
			t.Errorf("refusal %d: it rests for %v, want %v", i+2, got, want)
		}
		if x.pass(want - 1); u.Attempt != nil {
			t.Errorf("refusal %d: it is tried too early", i+2)
		}
		x.pass(1)
	}
}

// TestAReserveSaysHowManyMembersItsUnitHas: those of the unit that is tried, not
// those that its job grows to.
func TestAReserveSaysHowManyMembersItsUnitHas(t *testing.T) {
	for name, c := range map[string]struct {
		submit func(*scene)
		want   int
	}{
		"an allocation":            {func(x *scene) { x.submit("a", 2, "") }, 1},
		"a gang of two of a job":   {func(x *scene) { x.submitJob("j", 5, 1) }, 2},
		"a gang that is the whole": {func(x *scene) { x.submitJob("j", 2, 1) }, 2},
	} {
		x := newScene(t)
		c.submit(x)
		x.answers()
		asked := 0
		for _, e := range x.left {
			r, is := e.Command.(grant.Reserve)
			if !is {
				continue
			}
			if asked += len(r.Members); r.UnitMembers != c.want {
				t.Errorf("%s: a unit of %d members, want %d", name, r.UnitMembers, c.want)
			}
		}
		if asked != c.want {
			t.Errorf("%s: %d members are asked for, want %d", name, asked, c.want)
		}
	}
}

// TestWhatEndsWhileItRestsIsNotTriedAgain: neither an end that is under way nor one
// that has come.
func TestWhatEndsWhileItRestsIsNotTriedAgain(t *testing.T) {
	x := newScene(t)
	u := x.submit("a", 2, "")
	for range 2 {
		x.settles(u, grant.No)
	}
	x.do(func() { x.end(u, txn.ReleaseAsked{}) })
	if x.pass(lastBackoff); u.Attempt != nil || x.room.Order().Len() != 0 {
		t.Errorf("it is tried while it ends, or waits in the queue of %d", x.room.Order().Len())
	}
}

// TestAPlanThatNoTxnCanCommit: as many nodes as leave room for the rest of a commit.
func TestAPlanThatNoTxnCanCommit(t *testing.T) {
	x := newScene(t)
	plan := []place.Choice{{Node: &x.nodes["n1"].view}, {Node: &x.nodes["n2"].view}, {Node: &x.nodes["n2"].view}}
	for most, wide := range map[int]bool{sched.CommitOps + 1: true, sched.CommitOps + 2: false} {
		x.post = post.New(x.post.Epoch(), most, x.clock, [32]byte{})
		if got := x.world().TooWide(plan); got != "" != wide {
			t.Errorf("of %d operations: %q", most, got)
		}
	}
}

// TestWhatFailedIsNotSearchedAgain: until something is free.
func TestWhatFailedIsNotSearchedAgain(t *testing.T) {
	x := newScene(t)
	u := x.accepted("a", 9, "")
	tries := u.Wait.Attempts
	if x.pass(time.Second); u.Wait.Attempts != tries || x.room.Asleep(u.Path) == nil {
		t.Errorf("tried %d times, then %d times though nothing has happened", tries, u.Wait.Attempts)
	}
	if x.do(x.wakeAll); u.Wait.Attempts != tries+1 || x.room.Asleep(u.Path) == nil {
		t.Errorf("tried %d times, then %d times when all are woken", tries, u.Wait.Attempts)
	}
}

// TestNobodyGivesWayForWhatIsNotStored: the next leader must know for whom it was.
func TestNobodyGivesWayForWhatIsNotStored(t *testing.T) {
	x := newScene(t)
	for _, name := range []string{"a", "c"} {
		x.running(name, 8, "")
	}
	b := x.submit("b", 8, `"priority":5,"preemptionPolicy":"PreemptLowerPriority",`)
	if b.Attempt != nil || b.Right() != sched.Nobody {
		t.Error("others give way for a unit that is not stored")
	}
	if x.answers(); b.Attempt == nil || len(b.Attempt.Victims) != 1 {
		t.Error("nobody gives way for a unit that is stored")
	}
}

// TestWhoGivesWay: who runs, is of lower priority, and neither leaves nor is claimed
// already.
func TestWhoGivesWay(t *testing.T) {
	preempts := `"preemptionPolicy":"PreemptLowerPriority","priority":`
	for name, c := range map[string]struct {
		a, b  string // their specifications
		ends  bool   // a is asked to end
		gives bool
	}{
		"of lower priority":        {`"priority":4,`, preempts + "5,", false, true},
		"of the same":              {`"priority":5,`, preempts + "5,", false, false},
		"of higher priority":       {`"priority":6,`, preempts + "5,", false, false},
		"one that ends":            {`"priority":4,`, preempts + "5,", true, false},
		"one that stays":           {`"priority":4,"quota":{"unPreemptable":true},`, preempts + "5,", false, false},
		"for who does not ask":     {`"priority":4,`, `"priority":5,`, false, false},
		"for who never wants that": {`"priority":4,`, `"preemptionPolicy":"Never","priority":5,`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			a := x.running("a", 8, c.a)
			x.running("c", 8, `"priority":9,`)
			if c.ends {
				x.do(func() { x.end(a, txn.ReleaseAsked{}) })
			}
			b := x.accepted("b", 8, c.b)
			if gives := b.Attempt != nil; gives != c.gives {
				t.Errorf("gives way %t: %s", gives, x.whyNoVictims(b))
			}
		})
	}
}

// TestAVictimThatHasChangedIsNotEvicted: nothing is sent then, and nobody has notice.
func TestAVictimThatHasChangedIsNotEvicted(t *testing.T) {
	for name, change := range map[string]func(*scene, *work.Unit){
		"its owner ends it":   func(x *scene, a *work.Unit) { x.do(func() { x.end(a, txn.ReleaseAsked{}) }); x.answers() },
		"it ends for nobody":  func(x *scene, a *work.Unit) { x.do(func() { x.evict(a, txn.EvictAsked{}) }); x.answers() },
		"its wish is asked":   func(_ *scene, a *work.Unit) { a.Life.AskEnd(txn.ReleaseAsked{}, 0, nil) },
		"another has claimed": func(_ *scene, a *work.Unit) { a.Attempt.SetPreemptor(&work.Attempt{}) },
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			a, b := x.preemptor()
			change(x, a)
			state := a.Attempt.Machine.State()
			at := b.Attempt
			x.says(b, grant.Waiting)
			for _, e := range x.asked {
				if e.Kind == post.WriteKeys && len(e.Write.Compares) > 1 {
					t.Errorf("an eviction is written: %d compares", len(e.Write.Compares))
				}
			}
			if x.answers(); a.Attempt != nil && a.Attempt.Machine.State() != state || at.Machine.Undecided() && b.Attempt == at {
				t.Errorf("the victim is %v and was %v, the preemptor goes on", a.Attempt.Machine.State(), state)
			}
		})
	}
}

// TestAPreemptorCommitsWhenAllHaveLeft: not while a victim is there, or is back.
func TestAPreemptorCommitsWhenAllHaveLeft(t *testing.T) {
	x := newScene(t)
	a, b := x.claimed()
	if x.says(b, grant.Reserved); len(x.asked) != 0 || x.mayDisplace(b.Attempt) {
		t.Error("it commits while its victim is there")
	}
	x.says(a, grant.Tombstone)
	if len(x.asked) != 1 || !x.mayDisplace(b.Attempt) {
		t.Error("it does not commit though its victim has left")
	}
	if x.answers(); b.Phase() != api.Running || a.Phase() != api.Preempted {
		t.Errorf("it is %s, its victim %s", b.Phase(), a.Phase())
	}
}

// TestWhatEndsIsNotEvicted: nor is what holds nothing.
func TestWhatEndsIsNotEvicted(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 2, "")
	x.do(func() { x.end(a, txn.ReleaseAsked{GraceSeconds: 7}) })
	x.clear()
	x.do(func() { x.evict(a, txn.EvictAsked{Reason: "drained"}) })
	if x.did(post.LogEvent) {
		t.Errorf("the log says that it is evicted: %+v", x.left)
	}
	x.answers()
	if a.Attempt.Notice != nil || a.Evictable() {
		t.Error("what its owner ends has notice, or may be chosen")
	}
	u := x.submit("b", 9, "")
	x.do(func() { x.evict(u, txn.EvictAsked{}) })
	c := x.running("c", 2, "")
	c.Life.AskEnd(txn.ReleaseAsked{}, 0, nil) // before its transaction has heard of it
	if c.Evictable() {
		t.Error("what its owner ends may be chosen")
	}
}

// TestTheSpecOfANode: the store's revisions decide which is newer.
func TestTheSpecOfANode(t *testing.T) {
	x := newScene(t)
	n := x.nodes["n1"]
	for rev, takes := range map[resource.Revision]bool{n.specRev - 1: false, n.specRev: false, n.specRev + 1: true} {
		m := *n
		if m.setSpec(record.NodeSpec{}, rev) != takes {
			t.Errorf("at %d of %d: taken over %t", rev, n.specRev, !takes)
		}
	}
}
