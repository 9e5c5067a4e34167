package lead

import (
	"slices"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/lead/breaker"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// occupied is everything that the leader believes a node's agent to hold, with
// more.
func (x *scene) occupied(id resource.NodeID, more ...grant.Grant) grant.Occupancy {
	o := grant.Occupancy{Grants: more}
	for tx, h := range x.nodes[id].reservations {
		if !slices.ContainsFunc(more, func(g grant.Grant) bool { return g.Tx == tx }) {
			o.Grants = append(o.Grants, grant.Grant{Tx: tx, Epoch: x.post.Epoch(), State: grant.Held, Members: h.members})
		}
	}
	return o
}

func TestOfASeveredNodeOnlyItsLeavingCounts(t *testing.T) {
	x := newScene(t)
	x.nodes["n1"].accused = &record.Violation{Severed: true}
	before := x.nodes["n1"].revision
	x.hear(grant.Registered{Node: "n1", Revision: before + 1})
	if got := x.nodes["n1"].revision; got != before {
		t.Errorf("it registers at %d", got)
	}
	if x.hear(grant.Disconnected{Node: "n1"}); x.nodes["n1"].connected {
		t.Error("it stays connected")
	}
}

func TestARegistrationThatSaysNothingNewIsIdle(t *testing.T) {
	x := newScene(t)
	n := x.nodes["n1"]
	for _, c := range []struct {
		e    grant.Registered
		idle bool
	}{
		{grant.Registered{Node: "n1", Incarnation: n.incarnation, Revision: n.revision}, true},
		{grant.Registered{Node: "n1", Incarnation: n.incarnation, Revision: n.revision + 1}, false},
		{grant.Registered{Node: "n1", Incarnation: resource.Incarnation{BootID: "new"}, Revision: n.revision + 1}, false},
		{grant.Registered{Node: "n1", Incarnation: resource.Incarnation{BootID: "new"}, Revision: n.revision + 1}, true},
	} {
		before := x.idle
		if x.hear(c.e); x.idle > before != c.idle {
			t.Errorf("%+v: idle %t", c.e, x.idle > before)
		}
	}
}

// TestWhatANoTakesBack: a No or None says that an agent holds nothing. Of what is
// committed that may only be told before it has registered.
func TestWhatANoTakesBack(t *testing.T) {
	for _, s := range []grant.State{grant.No, grant.None} {
		x := newScene(t)
		a := x.running("a", 2, "")
		if x.says(a, s); x.nodes["n1"].reservations[a.Attempt.Machine.ID()] == nil {
			t.Errorf("%s frees what is committed", s)
		}
		b := x.submit("b", 2, "")
		tx := b.Attempt.Machine.ID()
		if x.says(b, s); x.nodes["n1"].reservations[tx] != nil {
			t.Errorf("%s keeps what was planned", s)
		}
	}
}

func TestANodeThatRefusedIsAskedForEverything(t *testing.T) {
	x := newScene(t)
	a := x.submit("a", 2, "")
	x.clear()
	x.says(a, grant.No)
	if got := x.commands(); !slices.Contains(got, "n1 Resync") || a.Wait.Avoid["n1"] != 0 {
		t.Errorf("commands %v, avoided %v before the record is there", got, a.Wait.Avoid)
	}
	if x.answers(); a.Wait.Avoid["n1"] != 1 {
		t.Errorf("avoided %v", a.Wait.Avoid)
	}
}

// TestAnAgentInQuarantineFreesNothing: its ledger may be of before what it forgot.
func TestAnAgentInQuarantineFreesNothing(t *testing.T) {
	for quarantine, freed := range map[string]bool{"": true, "the store went back": false} {
		x := newScene(t)
		a := x.running("a", 2, "")
		x.finish(func() { x.end(a, txn.ReleaseAsked{}) })
		e := x.hosts["n1"]
		e.Quarantine = quarantine
		e.Occupancy = x.occupied("n1", grant.Grant{Tx: a.Attempt.Machine.ID(), Epoch: x.post.Epoch(), State: grant.Tombstone})
		x.hear(e)
		x.answers()
		if gone := a.Attempt == nil; gone != freed {
			t.Errorf("quarantine %q: freed %t", quarantine, gone)
		}
	}
}

// TestPromisesThatNobodyDrives: one of this epoch has ended, one of an earlier is
// fenced, and of a later one another leader knows.
func TestPromisesThatNobodyDrives(t *testing.T) {
	cases := map[string]struct {
		state      grant.State
		epoch      int // less than that of the leader
		origin     string
		quarantine string
		aborts     bool
		fences     bool
	}{
		"of this epoch":              {state: grant.Reserved, aborts: true},
		"that waits":                 {state: grant.Waiting, aborts: true},
		"that is held":               {state: grant.Held},
		"of an earlier epoch":        {state: grant.Reserved, epoch: 1, fences: true},
		"of a later epoch":           {state: grant.Reserved, epoch: -1},
		"of the agent's own":         {state: grant.Reserved, epoch: 1, origin: "device-plugin"},
		"of an agent in quarantine":  {state: grant.Reserved, quarantine: "back"},
		"of before, in a quarantine": {state: grant.Reserved, epoch: 1, quarantine: "back"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			epoch := resource.Epoch(int(x.post.Epoch()) - c.epoch)
			e := x.hosts["n1"]
			e.Quarantine = c.quarantine
			e.Occupancy.Grants = []grant.Grant{{Tx: resource.NewTxID("u", epoch, 1, resource.Nonce{}), Epoch: epoch, State: c.state, Origin: c.origin}}
			x.clear()
			x.hear(e)
			aborts, fences := slices.Contains(x.commands(), "n1 Abort"), x.did(post.WriteKeys)
			if aborts != c.aborts || fences != c.fences {
				t.Errorf("aborts %t, fences %t", aborts, fences)
			}
		})
	}
}

// TestAnAnswerOfAnEarlierEpochIsNotOutlived: that attempt may be another leader's
// still.
func TestAnAnswerOfAnEarlierEpochIsNotOutlived(t *testing.T) {
	for back, want := range map[int]bool{0: true, 1: false} {
		x := newScene(t)
		tx := resource.NewTxID("u", resource.Epoch(int(x.post.Epoch())-back), 9, resource.Nonce{})
		x.clear()
		x.hear(grant.Replied{Node: "n1", Tx: tx, State: grant.Reserved})
		if got := slices.Contains(x.commands(), "n1 Abort"); got != want {
			t.Errorf("%d epochs back: told to give up %t", back, got)
		}
	}
}

// TestANominationIsKeptOverAStream: what its agent has not seen yet waits still.
func TestANominationIsKeptOverAStream(t *testing.T) {
	x := newScene(t)
	a, b := x.claimed()
	tx := b.Attempt.Machine.ID()
	e := x.hosts["n1"]
	e.Occupancy.Grants = []grant.Grant{{Tx: a.Attempt.Machine.ID(), Epoch: x.post.Epoch(), State: grant.Held, Members: x.nodes["n1"].reservations[a.Attempt.Machine.ID()].members}}
	if x.hear(e); !x.nodes["n1"].reservations[tx].waiting {
		t.Error("it is planned as if nobody had to leave")
	}
	c := x.work.Units["default/alloc/c/0"].Attempt.Machine.ID() // it runs
	e = x.hosts["n2"]
	if x.hear(e); x.nodes["n2"].reservations[c].waiting {
		t.Error("what runs waits")
	}
}

// TestTheFaultsOfAVote: a preemptor's nodes wait for others, and are not silent.
func TestTheFaultsOfAVote(t *testing.T) {
	x := newScene(t)
	a := x.submit("a", 2, "")
	x.pass(x.rules.VoteBudget / 4)
	if !a.Attempt.Late["n1"] || !x.nodes["n1"].view.Tripped {
		t.Error("it is not late after a quarter of the budget")
	}
	x.pass(x.rules.VoteBudget - x.rules.VoteBudget/4 - 1)
	if f := a.Attempt.Failed["n1"]; f != "" {
		t.Errorf("a moment before the end it is %s", f)
	}
	at := a.Attempt
	if x.pass(1); at.Failed["n1"] != breaker.Silent {
		t.Errorf("in the end it is %q", at.Failed["n1"])
	}

	x = newScene(t)
	_, b := x.preemptor()
	at = b.Attempt
	if x.pass(x.rules.VoteBudget); at.Machine.Undecided() && at.Failed["n1"] != "" || len(at.Failed) > 0 {
		t.Errorf("a preemptor's node is %v", at.Failed)
	}
}

// TestALateVoteDoesNotCloseABreaker: the node stays the last choice for a while.
func TestALateVoteDoesNotCloseABreaker(t *testing.T) {
	for late, tripped := range map[bool]bool{false: false, true: true} {
		x := newScene(t)
		a := x.submit("a", 2, "")
		if late {
			x.pass(x.rules.VoteBudget / 4)
		}
		x.settles(a, grant.Reserved)
		if got := x.nodes["n1"].view.Tripped; got != tripped || a.Phase() != api.Running {
			t.Errorf("late %t: tripped %t, %s", late, got, a.Phase())
		}
	}
}

// TestWhatIsIsolatedMeanwhile: an isolation that an operator has ended is not
// written, and the first reason stays.
func TestWhatIsIsolatedMeanwhile(t *testing.T) {
	x := newScene(t)
	n := x.nodes["n1"]
	x.do(func() { x.isolateNode(n, &lie{reason: violationMessage}) })
	x.do(func() { x.isolateNode(n, &lie{reason: ViolationVote}) })
	if got := n.accused.Reason; got != violationMessage {
		t.Errorf("the reason is %s", got)
	}
	if len(x.asked) != 1 {
		t.Errorf("%d writes, want one", len(x.asked))
	}
	x.put(record.NodeSpecKey("n1"), record.MustEncode(n.spec)) // somebody changes it: the write meets a conflict
	x.answer()
	x.do(func() { n.clearFaults() })
	x.pass(violationAgain)
	x.answers()
	if n.violation() != nil || n.accusing {
		t.Errorf("it is isolated again: %+v", n.violation())
	}
	x.pass(time.Second)
}
