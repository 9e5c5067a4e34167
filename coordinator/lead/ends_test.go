package lead

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/lead/breaker"
	"github.com/musterd/muster/coordinator/lead/work"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
)

// TestTheFirstRequestToEndCounts: and it counts for a unit that is just being stored.
func TestTheFirstRequestToEndCounts(t *testing.T) {
	x := newScene(t)
	a := x.submit("a", 9, "")
	x.do(func() {
		x.end(a, txn.ReleaseAsked{GraceSeconds: 1})
		x.end(a, txn.ReleaseAsked{GraceSeconds: 7})
	})
	if a.Life.Ending().GraceSeconds != 1 {
		t.Errorf("the grace is %d", a.Life.Ending().GraceSeconds)
	}
	if x.answers(); !a.Life.Gone() {
		t.Errorf("it is %s", a.Phase())
	}
}

// TestAnEndThatWasRefusedIsNone: the unit waits as before.
func TestAnEndThatWasRefusedIsNone(t *testing.T) {
	x := newScene(t)
	a := x.accepted("a", 9, "")
	x.do(func() { x.end(a, txn.ReleaseAsked{}) })
	x.put(a.Record.Path().Key(), record.MustEncode(a.Record))
	if x.answers(); a.Life.Gone() || a.Life.EndAsked() || x.room.Order().Len() != 1 {
		t.Errorf("gone %t, ending %v, %d wait", a.Life.Gone(), a.Life.Ending(), x.room.Order().Len())
	}
}

// TestACreationThatFailedMayBeRepeated: with its request id.
func TestACreationThatFailedMayBeRepeated(t *testing.T) {
	x := newScene(t)
	s := x.submission("a", "hash", "id")
	x.accepts(s)
	x.do(func() { x.undoCreation(s.units[0]) })
	if key, _, _ := s.requested(); x.work.Units[s.units[0].Path] != nil {
		t.Error("the unit is there")
	} else if _, known := x.requests.Get(key); known {
		t.Error("the id is taken")
	}
}

// TestWhatBecomesOfAUnit: what its owner ends is gone, though it had notice.
func TestWhatBecomesOfAUnit(t *testing.T) {
	for ends, phase := range map[bool]api.Phase{false: api.Preempted, true: ""} {
		x := newScene(t)
		a := x.running("a", 2, "")
		x.finish(func() { x.evict(a, txn.EvictAsked{Reason: "drained"}) })
		if ends {
			x.do(func() { x.end(a, txn.ReleaseAsked{}) })
		}
		x.answers()
		if x.says(a, grant.Tombstone); !ends {
			x.answer() // RELEASING
		}
		if x.answer(); a.Life.Gone() != ends || phase != "" && a.Phase() != phase {
			t.Errorf("ended %t: gone %t, %s", ends, a.Life.Gone(), a.Phase())
		}
	}
}

// TestAVictimThatItsOwnerEndsIsGone: the notice of an eviction is there besides.
func TestAVictimThatItsOwnerEndsIsGone(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 2, "")
	x.finish(func() { x.evict(a, txn.EvictAsked{Reason: "drained"}) })
	a.Life.AskEnd(txn.ReleaseAsked{}, 0, nil)
	if e := x.endOfUnit(a.Attempt); api.Phase(e.Record.Phase) != api.Cancelled || !e.Removed {
		t.Errorf("%s, removed %t", e.Record.Phase, e.Removed)
	}
}

// TestARecordInDoubtIsNotCollected: the commit that had no answer could land then.
func TestARecordInDoubtIsNotCollected(t *testing.T) {
	for lost, collected := range map[bool]int{false: 1, true: 0} {
		x := newScene(t)
		a := x.submit("a", 2, "")
		tx := a.Attempt.Machine.ID()
		if lost {
			x.says(a, grant.Reserved)
			x.loses(false)
		} else {
			x.says(a, grant.No)
		}
		for x.work.Attempts[tx] != nil {
			x.answer()
		}
		if len(x.retired.terminal) != collected || x.retired.doubtful[tx] != lost {
			t.Errorf("lost %t: %d to collect, in doubt %t", lost, len(x.retired.terminal), x.retired.doubtful[tx])
		}
	}
}

// TestAUnitIsReadyWhenAllItsNodesHoldIt: its key is written then.
func TestAUnitIsReadyWhenAllItsNodesHoldIt(t *testing.T) {
	x := newScene(t)
	a := x.submitJob("a", 2, 8)
	x.settles(a, grant.Reserved)
	for i, id := range a.Attempt.Machine.Nodes() {
		n := x.nodes[id]
		tx := a.Attempt.Machine.ID()
		x.clear()
		x.hear(grant.Replied{Node: id, Tx: tx, State: grant.Held, Incarnation: n.incarnation, Revision: n.revision, Members: n.reservations[tx].members})
		x.answers()
		if ready := a.Attempt.Ready.Revision != 0; ready != (i == 1) {
			t.Errorf("node %d of 2: ready %t", i+1, ready)
		}
	}
}

// TestWhoIsBlamedForACommit: a node whose registration is another than what it voted
// under, as far as that is known.
func TestWhoIsBlamedForACommit(t *testing.T) {
	for _, followed := range []bool{true, false} {
		x := newScene(t)
		a := x.submit("a", 2, "")
		at := a.Attempt
		x.says(a, grant.Reserved)
		rev := x.put(record.NodeIdentityKey("n1"), record.MustEncode(record.NodeIdentity{Incarnation: x.nodes["n1"].incarnation}))
		if followed {
			x.nodes["n1"].identity = rev
		}
		if x.answer(); at.Failed["n1"] == breaker.Unregistered != followed {
			t.Errorf("followed %t: failed as %q", followed, at.Failed["n1"])
		}
	}
}

// TestACommitIsOfAllMembers: and keeps when the unit was started first.
func TestACommitIsOfAllMembers(t *testing.T) {
	x := newScene(t)
	a := x.submit("a", 2, "")
	x.says(a, grant.Reserved)
	a.Record.Started = "2026-01-01T00:00:00Z"
	d, err := x.commitOf(a.Attempt)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range d.Ops {
		if key := a.Record.Path().Key(); op.Key == key {
			if rec, err := record.Decode[record.Unit](key, op.Value); err != nil || rec.Started != a.Record.Started {
				t.Errorf("started %q, %v", rec.Started, err)
			}
		}
	}
	a.Record.Members++
	if _, err := x.commitOf(a.Attempt); err == nil {
		t.Error("it is committed without a member")
	}
}

// TestWhileOthersLeaveNobodyIsEvicted: where their room is enough.
func TestWhileOthersLeaveNobodyIsEvicted(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 8, "")
	x.running("c", 8, "")
	x.finish(func() { x.end(a, txn.ReleaseAsked{}) })
	b := x.accepted("b", 8, `"priority":5,"preemptionPolicy":"PreemptLowerPriority",`)
	if b.Attempt != nil || !strings.Contains(x.whyNoVictims(b), "are leaving") {
		t.Errorf("attempt %v, stuck: %s", b.Attempt, x.whyNoVictims(b))
	}
}

// TestAClaimWaitsForANomination: units whose devices are nominated to another unit
// do not give way for a claim until the nomination has ended.
func TestAClaimWaitsForANomination(t *testing.T) {
	for _, nominated := range []bool{false, true} {
		x := newScene(t)
		a := x.running("a", 8, "")
		x.running("c", 8, "")
		b := x.accepted("b", 8, "")
		if nominated {
			n := x.nodes[a.Attempt.Machine.Nodes()[0]]
			n.reservations[transaction(1)] = &reservation{members: n.reservations[a.Attempt.Machine.ID()].members, waiting: true}
		}
		e := &sched.Evidence{Short: &sched.Shortage{Victims: []string{a.Path}}}
		begins := false
		if x.do(func() { begins = x.world().Claim(b.Wanted(), &sched.Decision{Evidence: e}) }); begins == nominated {
			t.Errorf("nominated to another unit %t: begins %t, %s", nominated, begins, e.NoVictims)
		}
	}
}

// TestAJobsEndThatWasRefusedIsTriedAgain: the store had no space for a while. The
// wish is durable with the job, so nothing of the job may start, or stay.
func TestAJobsEndThatWasRefusedIsTriedAgain(t *testing.T) {
	for what, key := range map[string]func(*work.Unit) string{
		"its unit's end": func(u *work.Unit) string { return u.Record.Path().Key() },
		"its own end":    func(u *work.Unit) string { return record.JobKey("default", "a") },
	} {
		x := newScene(t)
		a := x.submitJob("a", 2, 9)
		x.answers()
		x.do(func() { x.cancelJob(a.Job, record.Cancellation{Remove: true}, func(*api.Status) {}) })
		for x.answer(); !slices.ContainsFunc(x.asked[0].Write.Ops, func(o record.Op) bool { return o.Key == key(a) }); {
			x.answer()
		}
		x.give(WriteAnswer{x.next().Token, txn.Conflict, 0, record.ErrNoSpace})
		if x.pass(lastBackoff - 1); len(x.asked) > 0 || x.room.Order().Len() > 0 {
			t.Errorf("%s: %d questions at once, %d units wait to be tried", what, len(x.asked), x.room.Order().Len())
		}
		x.pass(1)
		if x.answers(); !a.Job.Gone {
			t.Errorf("%s: the job is %s", what, a.Job.Record.Phase)
		}
	}
}

// TestAPreemptionFitsIntoOneTxn: of as many operations as the store takes.
func TestAPreemptionFitsIntoOneTxn(t *testing.T) {
	for most, begins := range map[int]bool{7: false, 8: true} {
		x := newSceneOn(t, sceneRules(), most)
		_, b := x.preemptor()
		if b.Attempt != nil != begins {
			t.Errorf("of %d operations: begins %t, %s", most, !begins, x.whyNoVictims(b))
		}
	}
}

// TestARecordThatALaterLeaderHasWritten ends the term: this leader does not know
// whether its commit has landed, and reads that the unit is on its way out.
func TestARecordThatALaterLeaderHasWritten(t *testing.T) {
	for state, ends := range map[grant.RecordState]bool{
		grant.RecordCommitted: false, grant.RecordEvicting: true, grant.RecordReleasing: true, grant.RecordReleased: true,
	} {
		x := newScene(t)
		a := x.submit("a", 8, "")
		x.says(a, grant.Reserved)
		x.loses(true)
		read := x.next()
		kv, _, _, err := x.kv.Get(t.Context(), read.Key)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := record.Decode[record.Tx](kv.Key, kv.Value)
		if err != nil {
			t.Fatal(err)
		}
		rec.State = state
		kv.Value = record.MustEncode(rec)
		effects := x.Apply(x.clock, ReadAnswer{read.Token, kv, true, kv.ModRev}, nil)
		i := slices.IndexFunc(effects, func(e post.Effect) bool { return e.Kind == post.EndTerm })
		if (i >= 0) != ends || ends && !errors.Is(effects[i].Err, post.ErrDeposed) {
			t.Errorf("%s: effects %+v, the term ends: want %t", state, effects, ends)
		}
	}
}
