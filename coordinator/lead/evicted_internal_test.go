package lead

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestAVictimReadAsEvictingFollowsItsRecord: the write of the notice had no answer. The grace,
// the reason and the instant are the record's; the victim waits for undecided preemptors alone.
func TestAVictimReadAsEvictingFollowsItsRecord(t *testing.T) {
	for name, by := range map[string]func(p *work.Unit) resource.TxID{
		"for nobody":                       func(*work.Unit) resource.TxID { return "" },
		"for a preemptor that has started": func(p *work.Unit) resource.TxID { return p.Attempt.Machine.ID() },
		"for a preemptor that is gone":     func(p *work.Unit) resource.TxID { return p.Attempt.Machine.ID() + "0" },
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			v, p := x.running("v", 8, ""), x.running("p", 8, "")
			tx := v.Attempt.Machine.ID()
			x.do(func() { x.evict(v, txn.EvictAsked{GraceSeconds: 7, Reason: "Drained"}) })
			x.loses(true)
			read, rec := x.next(), x.tx(tx)
			rec.By, rec.GraceSeconds, rec.Reason, rec.EndingMillis = by(p), 9, "gives way", rec.EndingMillis-1234
			_, kv := storedAs[record.Tx](x, read.Key)
			kv.Value = record.MustEncode(rec)
			x.clear()
			x.give(ReadAnswer{read.Token, kv, true, kv.ModRev})
			a := v.Attempt
			if a.Machine.By() != "" || a.Notice == nil || a.Notice.GraceSeconds != 9 || a.Notice.Reason != "gives way" || a.Noticed.UnixMilli() != rec.EndingMillis {
				t.Errorf("the victim waits for %q with notice %+v since %d, want that of its record for nobody", a.Machine.By(), a.Notice, a.Noticed.UnixMilli())
			}
			x.settles(v, grant.Tombstone)
			if v.Phase() != api.Preempted {
				t.Errorf("the victim is %s after its agent has freed it: let it end without its preemptor", v.Phase())
			}
		})
	}
}

// TestAnAbortedRecordNamesItsUnit, whoever gives the transaction up: the audit and the history
// name the owner by the unit.
func TestAnAbortedRecordNamesItsUnit(t *testing.T) {
	x := newScene(t)
	u := x.submit("a", 8, "")
	refused := u.Attempt.Machine.ID()
	x.says(u, grant.No)
	left := resource.NewTxID("u-left", x.post.Epoch()-1, 1, resource.Nonce{1})
	x.returns("n2", grant.Grant{Tx: left, Unit: "u-left", Epoch: x.post.Epoch() - 1, State: grant.Reserved})
	x.answers()
	for tx, want := range map[resource.TxID]resource.UnitUID{refused: u.Record.UID, left: "u-left"} {
		if rec := x.tx(tx); rec.State != grant.RecordAborted || rec.UnitUID != want || rec.Ended == "" || rec.Reason == "" || rec.Epoch != x.post.Epoch() {
			t.Errorf("the record of %s is %+v, want ABORTED with unit %s, an end and a reason", tx, rec, want)
		}
	}
}

// TestAReplacementThatNobodyWantsEnds: an earlier leader has left the unit behind.
func TestAReplacementThatNobodyWantsEnds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(gang, replacement *record.Unit)
		want   api.Phase
	}{
		"its gang has lost its member":                 {func(_, _ *record.Unit) {}, api.Running},
		"it is of an earlier gang of the name":         {func(_, r *record.Unit) { r.Parent = "earlier" }, api.Terminating},
		"its gang has all members":                     {func(g, _ *record.Unit) { g.Lost = nil }, api.Terminating},
		"its gang has lost another member, not its":    {func(g, _ *record.Unit) { g.Lost = []int{2} }, api.Terminating},
		"its gang is on its way out, and so is it too": {func(g, _ *record.Unit) { g.Phase = string(api.Terminating) }, api.Terminating},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			u, r, _ := x.lose(replace, "", 1)
			x.connect("n4")
			x.answers()
			x.holdsAll(r)
			gang, replacement := u.Record, r.Record
			c.change(&gang, &replacement)
			x.put(gang.Path().Key(), record.MustEncode(gang))
			x.put(replacement.Path().Key(), record.MustEncode(replacement))
			next := x.succeeded()
			next.finish(next.resume)
			if got := next.work.Units[r.Path].Phase(); got != c.want {
				t.Errorf("the replacement is %s, want %s", got, c.want)
			}
		})
	}
}

// TestAUnitThatWaitsAgainHasNothingOfItsLastRun but the sums over all runs: the first instant of
// readiness, the retries, and the last transaction.
func TestAUnitThatWaitsAgainHasNothingOfItsLastRun(t *testing.T) {
	for name, c := range map[string]struct {
		start func(x *scene) *work.Unit
		stop  func(x *scene, u *work.Unit)
		again func(x *scene, u *work.Unit)
	}{
		"an evicted job": {
			func(x *scene) *work.Unit { return x.limited("", `"ttl":"1h",`) },
			func(x *scene, u *work.Unit) { x.do(func() { x.evict(u, txn.EvictAsked{Reason: "Drained"}) }) }, func(*scene, *work.Unit) {},
		},
		"a suspended allocation": {
			func(x *scene) *work.Unit { u := x.submit("a", 1, `"ttl":"1h",`); x.holdsAll(u); return u },
			func(x *scene, u *work.Unit) { x.wants(u, suspend) }, func(x *scene, u *work.Unit) { x.wants(u, resume) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newWorkScene(t)
			u := c.start(x)
			first := u.Attempt.Ready.AtMillis
			for round := range 2 {
				x.pass(10 * time.Second)
				c.stop(x, u)
				x.answers()
				x.settles(u, grant.Tombstone)
				got := x.stored(u)
				want := got
				want.Phase, want.TxID, want.Started, want.Reason, want.Lost, want.Requeues = string(api.Pending), "", "", "", nil, false
				want.Ended, want.EndedMillis, want.ActiveSinceMillis, want.StartByMillis, want.RetryMillis, want.FirstReadyMillis = "", 0, 0, 0, 0, first
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("after %d runs the record of the unit that waits has (-want +got)\n%s", round+1, d)
				}
				c.again(x, u)
				x.answers()
				x.holdsAll(u)
			}
			x.check()
		})
	}
}

// TestADeadlineBeginsAnewAfterAnEviction, also after retries: the time in the queue is no time
// of a run.
func TestADeadlineBeginsAnewAfterAnEviction(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitLife("train", 2, `"activeDeadlineSeconds":60,`, gangOfTwo)
	x.holdsAll(u)
	x.pass(30 * time.Second)
	x.fails(u, 0, 1, "Completed")
	x.pass(10 * time.Second)
	x.answers()
	x.holdsAll(u)
	x.finish(func() { x.evict(u, txn.EvictAsked{Reason: "Drained"}) })
	x.says(u, grant.Tombstone)
	x.pass(50 * time.Second)
	x.answers()
	x.holdsAll(u)
	x.pass(59 * time.Second)
	if x.answers(); u.Phase() != api.Running {
		t.Errorf("59 s after the start that followed the eviction the unit is %s, want Running", u.Phase())
	}
	x.pass(time.Second + work.ClockError)
	if x.answers(); u.Phase() != api.Terminating {
		t.Errorf("after its deadline the unit is %s, want Terminating", u.Phase())
	}
}

// TestAnEndThatWasAskedWhileTheUnitBecomesFree is carried out: the unit does not wait again.
func TestAnEndThatWasAskedWhileTheUnitBecomesFree(t *testing.T) {
	for name, job := range map[string]bool{"an evicted job": true, "a suspended allocation": false} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			var u *work.Unit
			if job {
				u = x.submitJob("j", 2, 1)
				x.holdsAll(u)
				x.do(func() { x.evict(u, txn.EvictAsked{Reason: "Drained"}) })
			} else {
				u = x.submit("a", 1, "")
				x.holdsAll(u)
				x.wants(u, suspend)
			}
			x.answers()
			x.says(u, grant.Tombstone)
			for u.Attempt.Machine.State() != txn.Closing {
				x.answer()
			}
			x.finish(func() { x.end(u, txn.ReleaseAsked{Reason: "asked"}) })
			if job && u.Phase() != api.Cancelled || !job && !u.Life.Gone() {
				t.Errorf("the unit is %s, gone %t: its end was asked for before the place was free", u.Phase(), u.Life.Gone())
			}
			if x.keeps(u.Record.Order().Key()) {
				t.Error("the unit has a place in the order still")
			}
			x.check()
		})
	}
}

// TestTheRecordOfAVictimSaysSinceWhenAndForWhomItEnds, also once RELEASED.
func TestTheRecordOfAVictimSaysSinceWhenAndForWhomItEnds(t *testing.T) {
	x := newScene(t)
	a, b := x.claimed()
	victim, by, since := a.Attempt.Machine.ID(), b.Attempt.Machine.ID(), x.tx(a.Attempt.Machine.ID()).EndingMillis
	x.pass(700 * time.Millisecond)
	x.says(a, grant.Tombstone)
	x.settles(b, grant.Reserved)
	if rec := x.tx(victim); rec.State != grant.RecordReleased || !rec.Evicted || rec.By != by || rec.EndingMillis != since || since == 0 {
		t.Errorf("the record is %s, evicted %t by %q since %d; want RELEASED, evicted by %q since %d", rec.State, rec.Evicted, rec.By, rec.EndingMillis, by, since)
	}
}

// TestAPreemptorWaitsForTheWholeGraceOfItsVictims, then some seconds more, not for ever.
func TestAPreemptorWaitsForTheWholeGraceOfItsVictims(t *testing.T) {
	rules := sceneRules()
	rules.EvictionGrace = 40 * time.Second
	x := newSceneOf(t, rules)
	_, b := x.claimed()
	a := b.Attempt
	x.pass(40*time.Second + victimPatience - time.Millisecond)
	if x.answers(); b.Attempt != a {
		t.Fatal("the preemptor is given up within the grace of its victims")
	}
	x.pass(time.Millisecond)
	if x.answers(); b.Attempt == a {
		t.Error("the preemptor still waits when the grace and the patience are over")
	}
}
