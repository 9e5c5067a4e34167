package lead

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/queue/rule"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestAWriteThatTheStoreRefusesIsMadeAgain without a second request: each write behind the
// request is refused once.
func TestAWriteThatTheStoreRefusesIsMadeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(x *scene) *work.Unit
		act   func(x *scene, u *work.Unit)
		is    func(x *scene, u *work.Unit) string
		want  string
	}{
		"members beyond a smaller number end": {
			func(x *scene) *work.Unit { return x.sweep(4, 2).Units[0] },
			func(x *scene, u *work.Unit) { x.wants(u, `{"parallelism":2}`); x.answer() },
			func(_ *scene, u *work.Unit) string { return fmt.Sprint(len(u.Job.Units), len(u.Job.Record.Units)) }, "2 2",
		},
		"a dependency has come true": {
			func(x *scene) *work.Unit {
				first := x.suspended("first")
				u := x.depends("last", "afterok:first")
				x.answers()
				x.runs(first)
				x.ends(first, 0, 0, "Completed")
				return u
			},
			func(x *scene, u *work.Unit) { x.says(x.work.Units["default/job/first/0"], grant.Tombstone) },
			func(_ *scene, u *work.Unit) string { return fmt.Sprint(u.Job.Record.Met, u.Attempt != nil) }, "[0] true",
		},
		"a boost is over": {
			func(x *scene) *work.Unit {
				u := x.waits("first", 100)
				x.boosts("first", hour)
				return u
			},
			func(x *scene, u *work.Unit) { x.pass(2 * time.Hour) },
			func(x *scene, u *work.Unit) string {
				return fmt.Sprint(x.stored(u).Priority, u.Job.Record.Boost == nil)
			}, "100 true",
		},
		"a deleted job has ended": {
			func(x *scene) *work.Unit { return x.sweep(2, 0).Units[0] },
			func(x *scene, u *work.Unit) {
				x.do(func() { x.cancelJob(u.Job, record.Cancellation{Remove: true}, func(*api.Status) {}) })
				x.answer()
			},
			func(x *scene, u *work.Unit) string { return fmt.Sprint(u.Job.Gone, x.listed(record.UnitsPrefix)) }, "true 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for number, writes := 0, 1; number < writes; number++ {
				x := newWorkScene(t)
				if name == "a boost is over" {
					x.running("a", 8, `"priority":300,`)
					x.running("b", 8, `"priority":300,`)
				}
				u := c.begin(x)
				c.act(x, u)
				writes = 0
				for range 12 {
					x.refuseOnce(&writes, number)
					x.pass(lastBackoff)
				}
				if got := c.is(x, u); got != c.want {
					t.Errorf("write %d refused once: %s, want %s", number, got, c.want)
				}
				x.check()
			}
		})
	}
}

// TestARetryKeepsTheInstantsOfAllRuns: readiness and activity count from the first run, and a
// ttl gives no retry up.
func TestARetryKeepsTheInstantsOfAllRuns(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitDocument(fmt.Appendf(nil, `{"metadata":{"name":"j"},"spec":{"backoffLimit":5,"template":{"spec":{"ttl":"35s",%s"resources":{"requests":{"nvidia.com/gpu":"8"}}}}}}`, command))
	x.answers()
	x.holdsAll(u)
	first := u.Attempt.Ready.AtMillis
	for n := range 2 {
		x.pass(5 * time.Second)
		x.fails(u, 0, 1, "Completed")
		if got := x.stored(u); got.FirstReadyMillis != first || got.ActiveSinceMillis != first || got.Phase != string(api.Pending) {
			t.Errorf("after %d failures the unit is %s, ready since %d, active since %d; want Pending, and %d", n+1, got.Phase, got.FirstReadyMillis, got.ActiveSinceMillis, first)
		}
		x.pass(time.Duration(10<<n) * time.Second)
		x.answers()
		if n == 0 {
			x.holdsAll(u)
			if got := x.stored(u); got.RetryMillis != 0 {
				t.Errorf("a unit that runs is tried again at %d", got.RetryMillis)
			}
		}
	}
	if u.Attempt == nil {
		t.Errorf("the unit is %s and not tried again", u.Phase())
	}
}

// TestTheEndOfARecordIsTheFirstTry: the store refuses RELEASED once, and the devices have been
// free since the first try.
func TestTheEndOfARecordIsTheFirstTry(t *testing.T) {
	x := newScene(t)
	u := x.running("a", 8, "")
	tx := u.Attempt.Machine.ID()
	x.finish(func() { x.end(u, txn.ReleaseAsked{Reason: "asked"}) })
	x.says(u, grant.Tombstone)
	want := x.post.Millis()
	x.give(WriteAnswer{x.next().Token, txn.Conflict, 0, errors.New("no space")})
	for range 3 {
		x.pass(lastBackoff)
		x.answers()
		x.give(SecondPassed{})
		x.answers()
	}
	if u.Attempt != nil {
		x.settles(u, grant.Tombstone)
	}
	if rec := x.tx(tx); rec.State != grant.RecordReleased || rec.EndedMillis != want {
		t.Errorf("the record is %s and ended at %d, want RELEASED at %d", rec.State, rec.EndedMillis, want)
	}
	if !x.partly.IsEmpty() {
		t.Error("the book of freed nodes keeps a transaction whose record has ended")
	}
}

// TestAReservationLivesAsLongAsItsVictims: agents keep the place of a preemptor for the grace
// of the victims and some seconds, other places for the time in the rules.
func TestAReservationLivesAsLongAsItsVictims(t *testing.T) {
	x := newScene(t)
	x.preemptor()
	got := map[time.Duration]int{}
	for _, e := range x.left {
		if r, is := e.Command.(grant.Reserve); is {
			got[r.TTL]++
		}
	}
	if want := x.rules.EvictionGrace + waitingTTL; got[want] != 1 || got[x.rules.ReservationTTL] != 2 {
		t.Errorf("Reserve lives for %v, want two of %s and the preemptor's of %s", got, x.rules.ReservationTTL, want)
	}
}

// TestARecordWaitsForNodesThatAreDead, also in the leader of its end.
func TestARecordWaitsForNodesThatAreDead(t *testing.T) {
	x := newScene(t)
	u := x.running("a", 8, "")
	tx, node := u.Attempt.Machine.ID(), u.Attempt.Machine.Nodes()[0]
	x.dies(node)
	x.answers()
	if rec := x.tx(tx); rec.State != grant.RecordReleased || !slices.Equal(rec.Unheard, []resource.NodeID{node}) {
		t.Fatalf("the record is %s and waits for %v", rec.State, rec.Unheard)
	}
	for range 5 {
		x.keepsHouse(x.rules.RecordRetention)
	}
	if !x.keeps(record.TxKey(tx)) {
		t.Error("the record is gone before its dead node was heard: the agent would not learn that the unit has ended")
	}
	x.returns(node)
	for range 5 {
		x.keepsHouse(x.rules.RecordRetention)
	}
	if x.keeps(record.TxKey(tx)) {
		t.Error("the record stays though its node has nothing of it")
	}
}

// TestAUnitIsNotTriedAgainAfterItsTimeToStart: the attempt under way comes to nothing.
func TestAUnitIsNotTriedAgainAfterItsTimeToStart(t *testing.T) {
	x := newScene(t)
	u := x.submit("a", 8, `"gangScheduling":{"timeout":"20s"},`)
	if x.answers(); u.Attempt != nil {
		x.says(u, grant.No) // stored from now on
		x.answers()
	}
	x.pass(time.Second)
	if u.Attempt == nil || u.Stored == 0 {
		t.Fatalf("the unit is %s, stored at %d, without an attempt", u.Phase(), u.Stored)
	}
	x.pass(20*time.Second + work.ClockError)
	x.answers()
	if u.Phase() != api.Failed || x.stored(u).End != record.WaitTimeout {
		t.Errorf("the unit is %s (%s), want Failed by its time", u.Phase(), x.stored(u).End)
	}
}

// TestAStartedUnitHasNoTimeToStart, in the store as in the leader.
func TestAStartedUnitHasNoTimeToStart(t *testing.T) {
	x := newScene(t)
	u := x.submit("a", 8, `"gangScheduling":{"timeout":"20s"},`)
	x.holdsAll(u)
	if got := x.stored(u); got.StartByMillis != 0 || got.RetryMillis != 0 || u.Record.StartByMillis != 0 {
		t.Errorf("a unit that runs has to start by %d and is tried again at %d, in the leader by %d", got.StartByMillis, got.RetryMillis, u.Record.StartByMillis)
	}
}

// TestFurtherMembersLeaveWithTheirGang, each with the grace of the gang.
func TestFurtherMembersLeaveWithTheirGang(t *testing.T) {
	x := newScene(t)
	u := x.submitJob("j", 4, 4)
	x.answers()
	x.holdsAll(u)
	for _, more := range u.Job.Units[1:] {
		x.holdsAll(more)
	}
	x.finish(func() { x.evict(u, txn.EvictAsked{GraceSeconds: 9, Reason: "Drained"}) })
	for _, of := range u.Job.Units {
		if of.Phase() != api.Terminating || of.Attempt.Notice == nil || of.Attempt.Notice.GraceSeconds != 9 {
			t.Errorf("%s is %s, want Terminating with the grace of 9 s", of.Path, of.Phase())
		}
	}
}

// TestAdoptedVictimsAreThePreemptors: victims with the preemptor's priority make the preemption
// a claim, and victims count as free that have left before.
func TestAdoptedVictimsAreThePreemptors(t *testing.T) {
	for name, c := range map[string]struct {
		priority int32 // of the victim; the preemptor has 5
		left     bool
		claims   bool
	}{
		"a lower priority":    {0, false, false},
		"the same priority":   {5, false, true},
		"it has left already": {0, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			x, d, g := keptPlace(t)
			v := d.victims[0]
			v.Unit.Record.Priority = c.priority
			if c.left {
				n := x.nodes["n1"]
				x.hear(grant.Replied{Node: "n1", Tx: v.Machine.ID(), State: grant.Tombstone, Incarnation: n.incarnation, Revision: n.revision})
			}
			x.tellsOf(g)
			a := x.work.Attempts[g.Tx]
			if a == nil || a.Claims != c.claims || v.Preemptor != a {
				t.Fatalf("the preemption is %+v, want one that claims: %t, with its victim", a, c.claims)
			}
			x.asked = nil
			x.says(a.Unit, grant.Reserved)
			if commits := len(x.asked) > 0 && a.Machine.State() == txn.Committing; commits != c.left {
				t.Errorf("the preemption commits: %t, its victim has left: %t", commits, c.left)
			}
		})
	}
}

// TestKeysWithoutARecordAreDeleted, also where a Txn takes only a part.
func TestKeysWithoutARecordAreDeleted(t *testing.T) {
	x := newScene(t)
	for i := range 2*collectAtOnce + 1 {
		x.put(record.ReadyKey(transaction(uint64(i))), record.MustEncode(record.Ready{AtMillis: 1}))
	}
	next := x.takesOver()
	for range 10 {
		next.keepsHouse(time.Second)
	}
	if left := next.listed(record.ReadyPrefix); left != 0 {
		t.Errorf("%d keys without a record are left", left)
	}
}

// TestWhichVersionOfANodeAChangeMayName: the node's, or a later revision of the store.
func TestWhichVersionOfANodeAChangeMayName(t *testing.T) {
	x := newScene(t)
	n := x.nodes["n1"]
	if u := x.running("a", 1, ""); x.reached != u.Stored {
		t.Errorf("reached %d, and a write landed at %d", x.reached, u.Stored)
	}
	x.reached = 0
	x.give(ReadAnswer{Revision: n.specRev + 5})
	x.give(ReadAnswer{Revision: n.specRev + 1})
	for version, want := range map[string]bool{
		"": true, fmt.Sprint(n.specRev - 1): false, fmt.Sprint(n.specRev): true, fmt.Sprint(n.specRev + 5): true, fmt.Sprint(n.specRev + 6): false, "x": false,
	} {
		if got := x.isOf(n, version); got != want {
			t.Errorf("version %q of a node at %d, in a store at %d: %t, want %t", version, n.specRev, x.reached, got, want)
		}
	}
}

// TestANodeThatIsLetBackIsTrusted, and asked once for all grants after answers were put off.
func TestANodeThatIsLetBackIsTrusted(t *testing.T) {
	x := newScene(t)
	n := x.nodes["n1"]
	x.finish(func() { x.isolateNode(n, &lie{reason: ViolationVote, detail: "d"}) })
	x.clear()
	uncordon := false
	x.ask(PatchNode{Node: "n1", Patch: api.NodePatch{Unschedulable: &uncordon}})
	if x.answers(); !x.did(post.TrustNode) || n.violation() != nil || !n.view.Ready {
		t.Errorf("trusted %t, violation %+v, ready %t", x.did(post.TrustNode), n.violation(), n.view.Ready)
	}
	n.setUnanswered()
	for _, want := range []bool{true, false} { // once
		x.clear()
		x.give(SecondPassed{})
		if got := slices.Contains(x.commands(), "n1 Resync"); got != want {
			t.Errorf("the agent is asked for all its grants: %t, want %t", got, want)
		}
	}
}

// TestABannedNodeTakesNoWorkOfTheNextLeader; a priority is not below itself.
func TestABannedNodeTakesNoWorkOfTheNextLeader(t *testing.T) {
	x := newScene(t)
	key := record.BanKey("n1")
	must(x.loadBans([]record.KV{{Key: key, Value: record.MustEncode(record.Ban{Banned: true, By: "ada", Reason: "r", At: "2026-01-02T03:04:05Z", Generation: 1}), ModRev: 1}}))
	if n := x.nodes["n1"]; n.ban == nil || n.view.Ready || !n.view.Unschedulable {
		t.Errorf("the banned node is ready %t, closed %t", n.view.Ready, n.view.Unschedulable)
	}
	u := x.running("a", 2, `"priority":5,`)
	node := &x.nodes[u.Attempt.Machine.Nodes()[0]].view
	for below, want := range map[int64]resource.Milli{5: 0, 6: 2000} {
		if got := x.heldBelow(node, below).GPU; got != want {
			t.Errorf("work of priority 5 below %d holds %d, want %d", below, got, want)
		}
	}
}

// TestTwoMembersWithOneAssignment are a lie of their node.
func TestTwoMembersWithOneAssignment(t *testing.T) {
	x := newScene(t)
	u := x.submitJob("j", 2, 4)
	id := u.Attempt.Machine.Nodes()[0]
	e := x.reply(u, grant.Reserved)
	e.Members = slices.Clone(e.Members)
	e.Members[1].Assignment = e.Members[0].Assignment
	x.hear(e)
	if v := x.nodes[id].violation(); len(e.Members) != 2 || v == nil || v.Reason != ViolationVote {
		t.Errorf("%d members with the same devices: the violation of %s is %+v, want %s", len(e.Members), id, v, ViolationVote)
	}
}

// TestAnAllocationOverQuotaIsRefusedWhenItComes, where the namespace has no queue for quota: no
// job, and no allocation in the store already.
func TestAnAllocationOverQuotaIsRefusedWhenItComes(t *testing.T) {
	x := newScene(t)
	x.rules.Namespaces["default"] = Namespace{Admission: "reject"}
	u, job := x.submit("a", 9, ""), x.submitJob("j", 4, 8)
	if !x.isRefusable(u) || x.isRefusable(job) {
		t.Errorf("refusable: an allocation that comes %t, a job %t", x.isRefusable(u), x.isRefusable(job))
	}
	if x.answers(); x.isRefusable(u) {
		t.Error("an allocation that is stored may be refused")
	}
}

// TestAGroupDisplacesAsItsLeastMember may: whichever comes first.
func TestAGroupDisplacesAsItsLeastMember(t *testing.T) {
	x := newScene(t)
	const group = `"gangScheduling":{"groupId":"g","minMembers":3},`
	a, b := x.submit("a", 1, `"preemptionPolicy":"PreemptLowerPriority",`+group), x.submit("b", 1, `"preemptionPolicy":"Never",`+group)
	x.answers()
	for _, units := range [][]*work.Unit{{a, b}, {b, a}} {
		if got := x.traitsOfGroup(a.Group, units).Right; got != b.Right() || got == a.Right() {
			t.Errorf("the right of %s and %s is %v, want %v", units[0].Path, units[1].Path, got, b.Right())
		}
	}
}

func TestAUnitThatGetsItsGrantBackIsTheHeadOfItsQueue(t *testing.T) {
	x := newScene(t)
	x.queues.SetRules(api.DefaultQueue, rule.Rules{Strict: true})
	u, _ := x.submit("a", 9, ""), x.submit("b", 3, "")
	x.answers()
	x.do(func() { u.SetHold(work.HoldDelay) })
	x.do(func() { x.reserveName(adoptee{unit: u, waited: true}) })
	if head, _ := x.queues.Head(api.DefaultQueue); head.Path != u.Path {
		t.Errorf("the head is %q", head.Path)
	}
}

// TestWhichUnitGetsAGrantBack: the waiting unit of the name with the same uid that is not to end.
func TestWhichUnitGetsAGrantBack(t *testing.T) {
	x := newScene(t)
	u := x.accepted("a", 9, "")
	for name, c := range map[string]struct {
		uid  resource.UnitUID
		ends bool
		want *work.Unit
	}{
		"it waits":              {u.Record.UID, false, u},
		"another of the name":   {"alloc-other", false, nil},
		"its end was asked for": {u.Record.UID, true, nil},
	} {
		if u.DropEndRequest(); c.ends {
			u.AskEnd(txn.ReleaseAsked{}, 0, nil)
		}
		if got := x.waitingUnit(&lost{Grant: grant.Grant{Name: u.Path, Unit: c.uid}}); got != c.want {
			t.Errorf("%s: the grant goes to a unit: %t, want %t", name, got != nil, c.want != nil)
		}
	}
}

// TestTheRecordKeepsTheExitsOfADeletedUnit, because the unit keeps none.
func TestTheRecordKeepsTheExitsOfADeletedUnit(t *testing.T) {
	x := newScene(t)
	u := x.running("a", 1, "")
	x.settles(u, grant.Held)
	tx := u.Attempt.Machine.ID()
	x.finish(func() { x.end(u, txn.ReleaseAsked{Reason: "asked"}) })
	x.ends(u, 0, 143, "Completed")
	x.settles(u, grant.Tombstone)
	if o := x.tx(tx).Outcome; !u.Life.Gone() || o == nil || len(o.Exits) != 1 || o.Exits[0].Code != 143 {
		t.Errorf("gone %t, the record has %+v, want the exit with code 143", u.Life.Gone(), o)
	}
}

// TestARecordKeepsEachLostMember, of nodes that die one after the other.
func TestARecordKeepsEachLostMember(t *testing.T) {
	x := newScene(t)
	u := x.gangOf(4, replace, "")
	for n, member := range []int{0, 2} {
		x.dies(x.memberNode(u, member))
		x.answers()
		if got := x.tx(u.Attempt.Machine.ID()); len(got.LostMembers) != n+1 || len(got.Members) != 3-n {
			t.Errorf("after %d losses the record has %d members and %d lost", n+1, len(got.Members), len(got.LostMembers))
		}
	}
}

// TestALostCardStaysInThePool of the kubelet, also while the host does not have it.
func TestALostCardStaysInThePool(t *testing.T) {
	x := newScene(t)
	patch := api.KubeletPatch{Add: &[]string{"GPU-gone"}}
	for name, c := range map[string]struct {
		pool *record.KubeletPool
		bad  bool
	}{"a new card": {nil, true}, "a card of the pool": {&record.KubeletPool{Add: []string{"GPU-gone"}}, false}} {
		if status := x.knowsDevices("n1", record.NodeSpec{Kubelet: c.pool}, patch); status != nil != c.bad {
			t.Errorf("%s: %v", name, status)
		}
	}
	mig := func(uuid string) resource.Assignment {
		return resource.Assignment{MIG: []resource.MIGGrant{{UUID: uuid}}}
	}
	if !shareGPU(mig("a"), mig("a")) || shareGPU(mig("a"), mig("b")) {
		t.Error("two assignments share a MIG instance by its UUID")
	}
}

// TestAnEndWaitsForAWrite: a unit whose change is being written ends with the answer of the
// change, once.
func TestAnEndWaitsForAWrite(t *testing.T) {
	x := newScene(t)
	u := x.accepted("a", 9, "")
	ends := func() (n int) {
		for _, e := range x.asked {
			for _, op := range e.Write.Ops {
				if op.Delete && op.Key == u.Record.Path().Key() {
					n++
				}
			}
		}
		return n
	}
	x.do(func() {
		u.Life.Begin(work.WriteChange)
		u.AskEnd(txn.ReleaseAsked{}, 1, nil)
		x.endQueued(u)
	})
	if n := ends(); n != 0 {
		t.Errorf("beside the change %d ends are written", n)
	}
	x.do(func() {
		u.Life.Finish(work.WriteChange)
		x.goOn(u)
		x.endQueued(u)
	})
	if n := ends(); n != 1 {
		t.Errorf("behind the change %d ends are written", n)
	}
	if x.answers(); !u.Life.Gone() {
		t.Error("the unit is still there")
	}
}
