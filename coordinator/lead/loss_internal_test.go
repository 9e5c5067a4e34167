package lead

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

const replace = `"onMemberLost":"Replace",`

// gangOf has a gang of members with 8 GPUs each run, one on each node of the scene.
func (x *scene) gangOf(members int, spec, more string) *work.Unit {
	x.t.Helper()
	for i := len(x.hosts); i < members; i++ {
		x.connect(resource.NodeID([]string{"n1", "n2", "n3", "n4", "n5"}[i]))
	}
	u := x.submitDocument([]byte(`{"metadata":{"name":"train"},"spec":{"parallelism":` + string(rune('0'+members)) + `,` + spec + `"template":{"spec":{` + more +
		`"gangScheduling":{"minMembers":` + string(rune('0'+members)) + `},"resources":{"requests":{"nvidia.com/gpu":"8"}}}}}}`))
	x.holdsAll(u)
	if u.Phase() != api.Running || u.Attempt.Ready.AtMillis == 0 {
		x.t.Fatalf("%s is %s", u.Path, u.Phase())
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
func (x *scene) lose(spec, more string, member int) (gang, replacement *work.Unit, at resource.NodeID) {
	x.t.Helper()
	u := x.gangOf(3, spec, more)
	at = x.memberNode(u, member)
	x.dies(at)
	x.answers()
	if r := u.Job.Replacements(); len(r) == 1 && u.Phase() == api.Running {
		x.check()
		return u, r[0], at
	}
	x.t.Fatalf("%s is %s, and has %d replacements", u.Path, u.Phase(), len(u.Job.Replacements()))
	return nil, nil, ""
}

// One Txn takes a lost member out of the record, ends its charge, and queues the unit that
// replaces the member at the gang's place in the order.
func TestAGangGoesOnWithoutALostMember(t *testing.T) {
	x := newScene(t)
	u := x.gangOf(3, replace, "")
	tx, node := u.Attempt.Machine.ID(), x.memberNode(u, 1)
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
	r := u.Job.Replacements()[0]
	want := record.Unit{
		UID: r.Record.UID, Kind: record.JobUnit, Namespace: "default", Name: "train", N: record.FirstReplacement + 1, Tenant: u.Record.Tenant, Queue: u.Record.Queue,
		Phase: "Pending", Sequence: u.Record.Sequence, Members: 1, FirstMember: 1, Parent: u.Record.UID, Replaces: true, Created: r.Record.Created,
	}
	if diff := cmp.Diff(want, x.stored(r)); diff != "" {
		t.Errorf("the replacement (-want +got):\n%s", diff)
	}
	if got := x.stored(u); got.Phase != "Running" || !slices.Equal(got.Lost, []int{1}) || got.TxID != tx {
		t.Errorf("the gang is %+v", got)
	}
	if !x.keeps(r.Record.Order().Key()) {
		t.Error("the replacement has no place in the order")
	}
	if m := x.work.Members["default/train-1"]; m == nil || m.Unit != r {
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
	if r.Phase() != api.Running || u.Phase() != api.Running {
		t.Errorf("the replacement is %s, the gang %s", r.Phase(), u.Phase())
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
				u.Attempt.Ready.AtMillis, u.Attempt.Ready.Revision = 0, 0
			}
			nodes := u.Attempt.Machine.Nodes()
			if c.all {
				x.nodes[nodes[1]].setFence(&fence{revision: 1, dead: true}) // at the same time
			}
			x.dies(nodes[0])
			x.answers()
			if len(u.Job.Replacements()) > 0 || u.Phase() == api.Running {
				t.Errorf("it is %s with %d replacements", u.Phase(), len(u.Job.Replacements()))
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
	if u.Phase() != api.Running || len(u.Record.Lost) > 0 || !u.Attempt.Machine.Has(node) || len(u.Job.Replacements()) > 0 {
		t.Errorf("it is %s with the members %v lost", u.Phase(), u.Record.Lost)
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
		r := u.Job.Replacements()
		if len(r) != 1 || !slices.Equal(u.Record.Lost, []int{1}) || x.stored(r[0]).UID != r[0].Record.UID {
			t.Errorf("lands %t: lost %v, %d replacements", lands, u.Record.Lost, len(r))
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
	gang, replacement := next.work.Units[u.Path], next.work.Units[r.Path]
	if !slices.Equal(gang.Record.Lost, []int{1}) || gang.Attempt == nil || len(gang.Attempt.Machine.Nodes()) != 2 || !replacement.IsWanted() || replacement.Attempt == nil {
		t.Fatalf("the gang is %+v", gang.Record)
	}
	if m := next.work.Members["default/train-1"]; m == nil || m.Unit != replacement {
		t.Errorf("train-1 is %+v", m)
	}
	if !next.lostHolds[node][gang.Attempt.Machine.ID()] {
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
		tx := u.Attempt.Machine.ID()
		if back {
			x.returns(node, grant.Grant{Tx: tx, Unit: u.Record.UID, Epoch: x.post.Epoch(), State: grant.Held})
			if u.Phase() != api.Running {
				t.Fatalf("the gang is %s", u.Phase())
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
	for name, first := range map[string]func(u, r *work.Unit) *work.Unit{
		"the gang":        func(u, _ *work.Unit) *work.Unit { return u },
		"the replacement": func(_, r *work.Unit) *work.Unit { return r },
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			u, r, _ := x.lose(replace, "", 1)
			x.connect("n4")
			x.holdsAll(r)
			x.finish(func() { x.evict(first(u, r), txn.EvictAsked{GraceSeconds: 5, Reason: "Drained"}) })
			if u.Phase() != api.Terminating || r.Phase() != api.Terminating {
				t.Fatalf("the gang is %s, the replacement %s", u.Phase(), r.Phase())
			}
			x.settles(u, grant.Tombstone)
			if u.Phase() != api.Pending || len(u.Record.Lost) > 0 || u.Attempt != nil {
				t.Fatalf("the gang is %s, with %v lost", u.Phase(), u.Record.Lost)
			}
			if m := x.work.Members["default/train-1"]; m == nil || m.Unit != r {
				t.Errorf("train-1 is %+v while the replacement ends", m)
			}
			x.check()
			x.settles(r, grant.Tombstone)
			if !r.Life.Gone() || len(u.Job.Replacements()) > 0 || x.keeps(r.Record.Path().Key()) {
				t.Errorf("the replacement is %s", r.Phase())
			}
			if m := x.work.Members["default/train-1"]; m == nil || m.Unit != u {
				t.Errorf("train-1 is %+v", m)
			}
			x.connect("n5")
			x.pass(time.Second)
			if u.Attempt == nil {
				t.Error("the gang is not tried again")
			}
			x.check()
		})
	}
}

// A replacement that waits goes with its gang, whatever ends the gang.
func TestAReplacementThatWaitsGoesWithItsGang(t *testing.T) {
	for name, end := range map[string]func(x *scene, u *work.Unit){
		"an eviction": func(x *scene, u *work.Unit) {
			x.do(func() { x.evict(u, txn.EvictAsked{GraceSeconds: 5, Reason: "Drained"}) })
		},
		"a cancellation": func(x *scene, u *work.Unit) {
			x.do(func() { x.cancelJob(u.Job, record.Cancellation{Reason: "asked"}, func(*api.Status) {}) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			u, r, _ := x.lose(replace, "", 1)
			end(x, u)
			x.answers()
			if !r.Life.Gone() || x.keeps(r.Record.Path().Key()) || x.keeps(r.Record.Order().Key()) {
				t.Errorf("the replacement is %s", r.Phase())
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
	if u.Phase() != api.Running || r.Phase() != api.Pending || r.Attempt != nil || !r.Queued || r.Record.Sequence != u.Record.Sequence {
		t.Errorf("the gang is %s, the replacement %s", u.Phase(), r.Phase())
	}
	x.check()
	x.connect("n5")
	x.holdsAll(r)
	if r.Phase() != api.Running {
		t.Errorf("the replacement is %s", r.Phase())
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
	if !slices.Equal(u.Record.Lost, []int{0, 2}) || len(u.Job.Replacements()) != 2 || u.Attempt.Charges[0].Request[resource.GPU] != 16000 {
		t.Errorf("lost %v, %d replacements, %v", u.Record.Lost, len(u.Job.Replacements()), u.Attempt.Charges)
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
	if r.Phase() == api.Running || !r.Life.Gone() {
		t.Errorf("the replacement is %s", r.Phase())
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
	if x.answers(); !slices.Equal(u.Record.Lost, []int{1}) || len(u.Job.Replacements()) != 1 {
		t.Errorf("lost %v, %d replacements", u.Record.Lost, len(u.Job.Replacements()))
	}
	x.check()
}
