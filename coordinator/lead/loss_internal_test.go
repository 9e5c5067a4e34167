package lead

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

const replace = `"onMemberLost":"Replace",`

// gangOf has a gang of members with 8 GPUs each run, one on each node of the scene.
func (x *scene) gangOf(members int, spec, more string) *unit {
	x.t.Helper()
	for i := len(x.hosts); i < members; i++ {
		x.connect(resource.NodeID([]string{"n1", "n2", "n3", "n4", "n5"}[i]))
	}
	u := x.submitDocument([]byte(`{"metadata":{"name":"train"},"spec":{"parallelism":` + string(rune('0'+members)) + `,` + spec + `"template":{"spec":{` + more +
		`"gangScheduling":{"minMembers":` + string(rune('0'+members)) + `},"resources":{"requests":{"nvidia.com/gpu":"8"}}}}}}`))
	x.holdsAll(u)
	if u.phase() != api.Running || u.attempt.ready.AtMillis == 0 {
		x.t.Fatalf("%s is %s", u.path, u.phase())
	}
	return u
}

// returns registers a node anew, whose agent holds these grants.
func (x *scene) returns(id resource.NodeID, grants ...grant.Grant) {
	x.t.Helper()
	hello := x.hosts[id]
	hello.Revision = x.put(record.NodeIdentityKey(id), record.MustEncode(record.NodeIdentity{Incarnation: hello.Incarnation}))
	hello.Occupancy.Grants = grants
	x.hear(hello)
	x.answers()
}

// tx is a transaction as the store has it.
func (x *scene) tx(id resource.TxID) record.Tx {
	x.t.Helper()
	r, _ := storedAs[record.Tx](x, record.TxKey(id))
	return r
}

// keeps reports whether the store has a key.
func (x *scene) keeps(key string) bool {
	x.t.Helper()
	_, found, _, err := x.kv.Get(x.t.Context(), key)
	if err != nil {
		x.t.Fatal(err)
	}
	return found
}

// lose has a gang of three lose the member on a node, and returns the gang and the
// replacement.
func (x *scene) lose(spec, more string, member int) (gang, replacement *unit, at resource.NodeID) {
	x.t.Helper()
	u := x.gangOf(3, spec, more)
	at = x.memberNode(u, member)
	x.dies(at)
	x.answers()
	if r := u.job.replacements(); len(r) == 1 && u.phase() == api.Running {
		x.check()
		return u, r[0], at
	}
	x.t.Fatalf("%s is %s, and has %d replacements", u.path, u.phase(), len(u.job.replacements()))
	return nil, nil, ""
}

// One Txn takes a lost member out of the record, ends its charge, and queues the unit that
// replaces the member at the gang's place in the order.
func TestAGangGoesOnWithoutALostMember(t *testing.T) {
	x := newScene(t)
	u := x.gangOf(3, replace, "")
	tx, node := u.attempt.machine.ID(), x.memberNode(u, 1)
	charged := x.tx(tx).Charges[0].Request
	x.dies(node)
	if got, want := x.compares(), "nodes/"+string(node)+"/identity unchanged, tx/train unchanged, units/default/job/train/1000001 absent"; got != want {
		t.Errorf("compares %s, want %s", got, want)
	}
	x.clear()
	x.answer()
	if slices.ContainsFunc(x.commands(), func(c string) bool { return strings.HasSuffix(c, "Evict") }) {
		t.Errorf("the others get %v", x.commands())
	}
	rec := x.tx(tx)
	if rec.State != grant.RecordCommitted || len(rec.Members) != 2 || len(rec.LostMembers) != 1 || rec.LostMembers[0].Member != 1 || rec.LostMembers[0].Node != node {
		t.Errorf("the record is %+v", rec)
	}
	for name, amount := range charged {
		if got := rec.Charges[0].Request[name]; got != amount/3*2 || len(charged) == 1 {
			t.Errorf("the record charges %d of %s, want %d; in all %v", got, name, amount/3*2, charged)
		}
	}
	if x.keeps(record.NodeTxKey(node, tx)) {
		t.Error("the index lists the lost member")
	}
	r := u.job.replacements()[0]
	want := record.Unit{
		UID: r.record.UID, Kind: record.JobUnit, Namespace: "default", Name: "train", N: record.FirstReplacement + 1, Tenant: u.record.Tenant, Queue: u.record.Queue,
		Phase: "Pending", Sequence: u.record.Sequence, Members: 1, FirstMember: 1, Parent: u.record.UID, Replaces: true, Created: r.record.Created,
	}
	if diff := cmp.Diff(want, x.stored(r)); diff != "" {
		t.Errorf("the replacement (-want +got):\n%s", diff)
	}
	if got := x.stored(u); got.Phase != "Running" || !slices.Equal(got.Lost, []int{1}) || got.TxID != tx {
		t.Errorf("the gang is %+v", got)
	}
	if !x.keeps(r.record.Order().Key()) {
		t.Error("the replacement has no place in the order")
	}
	if m := x.work.members["default/train-1"]; m == nil || m.unit != r {
		t.Errorf("train-1 is %+v", m)
	}
	x.check()
	// A node comes: the replacement runs there, beside the gang.
	x.connect("n4")
	x.answers()
	x.says(r, grant.Reserved)
	if got := x.compares(); !strings.Contains(got, "tx/train unchanged") {
		t.Errorf("the commit compares %s, want the gang's record too", got)
	}
	x.answers()
	if r.phase() != api.Running || u.phase() != api.Running {
		t.Errorf("the replacement is %s, the gang %s", r.phase(), u.phase())
	}
	x.check()
}

// Without the word, before the gang has begun, and with its last node, a loss ends the
// whole gang as before.
func TestALossEndsTheWholeGangOtherwise(t *testing.T) {
	for name, c := range map[string]struct {
		spec  string
		begun bool
		all   bool
	}{
		"the job says nothing":     {"", true, false},
		"the job says Restart":     {`"onMemberLost":"Restart",`, true, false},
		"not all members are held": {replace, false, false},
		"all nodes are dead":       {replace, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			u := x.gangOf(2, c.spec, "")
			if !c.begun {
				u.attempt.ready.AtMillis, u.attempt.ready.Revision = 0, 0
			}
			nodes := u.attempt.machine.Nodes()
			if c.all {
				x.nodes[nodes[1]].setFence(&fence{revision: 1, dead: true}) // at the same time
			}
			x.dies(nodes[0])
			x.answers()
			if len(u.job.replacements()) > 0 || u.phase() == api.Running {
				t.Errorf("it is %s with %d replacements", u.phase(), len(u.job.replacements()))
			}
		})
	}
}

// A node that registers before the loss has landed was not dead: nothing is lost.
func TestANodeThatComesBackLosesNothing(t *testing.T) {
	x := newScene(t)
	u := x.gangOf(2, replace, "")
	node := x.memberNode(u, 1)
	x.dies(node)
	hello := x.hosts[node]
	hello.Revision = x.put(record.NodeIdentityKey(node), record.MustEncode(record.NodeIdentity{Incarnation: hello.Incarnation}))
	x.answers() // the loss is refused, the identity is read, and the record
	if u.phase() != api.Running || len(u.record.Lost) > 0 || !u.attempt.machine.Has(node) || len(u.job.replacements()) > 0 {
		t.Errorf("it is %s with the members %v lost", u.phase(), u.record.Lost)
	}
	x.check()
}

// The loss whose answer is lost is taken over from the record, or sent again.
func TestALossWithoutAnAnswer(t *testing.T) {
	for _, lands := range []bool{true, false} {
		x := newScene(t)
		u := x.gangOf(2, replace, "")
		x.dies(x.memberNode(u, 1))
		x.loses(lands)
		x.answers()
		r := u.job.replacements()
		if len(r) != 1 || !slices.Equal(u.record.Lost, []int{1}) || x.stored(r[0]).UID != r[0].record.UID {
			t.Errorf("lands %t: lost %v, %d replacements", lands, u.record.Lost, len(r))
		}
		x.check()
	}
}

// The next leader finds the gang and the replacement as they are, and goes on.
func TestTheNextLeaderGoesOnWithALoss(t *testing.T) {
	x := newScene(t)
	u, r, node := x.lose(replace, "", 1)
	x.connect("n4")
	x.answers()
	x.settles(r, grant.Reserved)
	next := x.succeeded()
	gang, replacement := next.work.units[u.path], next.work.units[r.path]
	if !slices.Equal(gang.record.Lost, []int{1}) || gang.attempt == nil || len(gang.attempt.machine.Nodes()) != 2 || !replacement.isWanted() || replacement.attempt == nil {
		t.Fatalf("the gang is %+v", gang.record)
	}
	if m := next.work.members["default/train-1"]; m == nil || m.unit != replacement {
		t.Errorf("train-1 is %+v", m)
	}
	if !next.lostHolds[node][gang.attempt.machine.ID()] {
		t.Error("the lost node is not waited for")
	}
	next.check()
}

// A node that comes back is told nothing of the gang; its tombstone is dropped, and the
// gang's record waits for nobody any more. One that never comes back is waited for.
func TestARecordWaitsForTheNodesOfLostMembers(t *testing.T) {
	for _, back := range []bool{true, false} {
		x := newScene(t)
		u, _, node := x.lose(replace, "", 1)
		tx := u.attempt.machine.ID()
		if back {
			x.returns(node, grant.Grant{Tx: tx, Unit: u.record.UID, Epoch: x.post.Epoch(), State: grant.Held})
			if u.phase() != api.Running {
				t.Fatalf("the gang is %s", u.phase())
			}
			x.clear()
			x.hear(grant.Replied{Node: node, Tx: tx, State: grant.Tombstone, Incarnation: x.nodes[node].incarnation, Revision: x.nodes[node].revision})
			if got := x.commands(); !slices.Contains(got, string(node)+" Forget") {
				t.Errorf("the node is sent %v, want Forget", got)
			}
		}
		x.finish(func() { x.end(u, txn.ReleaseAsked{Reason: "done"}) })
		x.settles(u, grant.Tombstone)
		want := []resource.NodeID{node}
		if back {
			want = nil
		}
		if got := x.tx(tx); got.State != grant.RecordReleased || !slices.Equal(got.Unheard, want) || len(got.LostMembers) != 1 {
			t.Errorf("back %t: the record is %s and waits for %v", back, got.State, got.Unheard)
		}
	}
}

// A gang and its replacements give way together: an eviction of one is one of all, the
// replacement goes, and the gang waits with all its members once it has gone.
func TestAGangAndItsReplacementsAreEvictedTogether(t *testing.T) {
	for name, first := range map[string]func(u, r *unit) *unit{
		"the gang":        func(u, _ *unit) *unit { return u },
		"the replacement": func(_, r *unit) *unit { return r },
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			u, r, _ := x.lose(replace, "", 1)
			x.connect("n4")
			x.holdsAll(r)
			x.finish(func() { x.evict(first(u, r), txn.EvictAsked{GraceSeconds: 5, Reason: "Drained"}) })
			if u.phase() != api.Terminating || r.phase() != api.Terminating {
				t.Fatalf("the gang is %s, the replacement %s", u.phase(), r.phase())
			}
			x.settles(u, grant.Tombstone)
			if u.phase() != api.Pending || len(u.record.Lost) > 0 || u.attempt != nil {
				t.Fatalf("the gang is %s, with %v lost", u.phase(), u.record.Lost)
			}
			if m := x.work.members["default/train-1"]; m == nil || m.unit != r {
				t.Errorf("train-1 is %+v while the replacement ends", m)
			}
			x.check()
			x.settles(r, grant.Tombstone)
			if !r.life.Gone() || len(u.job.replacements()) > 0 || x.keeps(r.record.Path().Key()) {
				t.Errorf("the replacement is %s", r.phase())
			}
			if m := x.work.members["default/train-1"]; m == nil || m.unit != u {
				t.Errorf("train-1 is %+v", m)
			}
			x.connect("n5")
			x.pass(time.Second)
			if u.attempt == nil {
				t.Error("the gang is not tried again")
			}
			x.check()
		})
	}
}

// A replacement that waits goes with its gang, whatever ends the gang.
func TestAReplacementThatWaitsGoesWithItsGang(t *testing.T) {
	for name, end := range map[string]func(x *scene, u *unit){
		"an eviction": func(x *scene, u *unit) {
			x.do(func() { x.evict(u, txn.EvictAsked{GraceSeconds: 5, Reason: "Drained"}) })
		},
		"a cancellation": func(x *scene, u *unit) {
			x.do(func() { x.cancelJob(u.job, record.Cancellation{Reason: "asked"}, func(*api.Status) {}) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			u, r, _ := x.lose(replace, "", 1)
			end(x, u)
			x.answers()
			if !r.life.Gone() || x.keeps(r.record.Path().Key()) || x.keeps(r.record.Order().Key()) {
				t.Errorf("the replacement is %s", r.phase())
			}
			x.check()
		})
	}
}

// A replacement whose node dies waits again, alone.
func TestAReplacementIsLostToo(t *testing.T) {
	x := newScene(t)
	u, r, _ := x.lose(replace, "", 1)
	x.connect("n4")
	x.holdsAll(r)
	x.dies("n4")
	x.answers()
	if u.phase() != api.Running || r.phase() != api.Pending || r.attempt != nil || !r.queued || r.record.Sequence != u.record.Sequence {
		t.Errorf("the gang is %s, the replacement %s", u.phase(), r.phase())
	}
	x.check()
	x.connect("n5")
	x.holdsAll(r)
	if r.phase() != api.Running {
		t.Errorf("the replacement is %s", r.phase())
	}
	x.check()
}

// Two nodes die: two members are replaced.
func TestAGangLosesSeveralMembers(t *testing.T) {
	x := newScene(t)
	u := x.gangOf(4, replace, "")
	a, b := x.memberNode(u, 0), x.memberNode(u, 2)
	x.dies(a)
	x.dies(b)
	x.answers()
	if !slices.Equal(u.record.Lost, []int{0, 2}) || len(u.job.replacements()) != 2 || u.attempt.charges[0].Request[resource.GPU] != 16000 {
		t.Errorf("lost %v, %d replacements, %v", u.record.Lost, len(u.job.replacements()), u.attempt.charges)
	}
	x.check()
}

// The commit of a replacement is refused by the store once its gang has begun to end.
func TestAReplacementIsNotCommittedWithoutItsGang(t *testing.T) {
	x := newScene(t)
	u, r, _ := x.lose(replace, "", 1)
	x.connect("n4")
	x.answers()
	x.says(r, grant.Reserved)
	commit := x.next() // under way
	x.do(func() { x.evict(u, txn.EvictAsked{GraceSeconds: 5, Reason: "Drained"}) })
	x.answer() // EVICTING lands first
	x.asked = append([]post.Effect{commit}, x.asked...)
	x.answers()
	if r.phase() == api.Running || !r.life.Gone() {
		t.Errorf("the replacement is %s", r.phase())
	}
	x.check()
}

// A loss refused by the store, e.g. for want of space, may still land: the leader waits
// before the next question.
func TestALossThatIsRefusedIsNoConflict(t *testing.T) {
	x := newScene(t)
	u := x.gangOf(2, replace, "")
	x.dies(x.memberNode(u, 1))
	x.give(WriteAnswer{x.next().Token, txn.Conflict, 0, record.ErrUnknownOutcome})
	x.pass(lastBackoff - 1)
	if len(x.asked) > 0 {
		t.Errorf("%d questions at once", len(x.asked))
	}
	x.pass(1)
	if x.answers(); !slices.Equal(u.record.Lost, []int{1}) || len(u.job.replacements()) != 1 {
		t.Errorf("lost %v, %d replacements", u.record.Lost, len(u.job.replacements()))
	}
	x.check()
}
