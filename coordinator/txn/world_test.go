package txn_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// world is one transaction's surroundings: the store's record, the agents, and
// everything that is on its way. It checks what the machine asks for against
// what is true.
type world struct {
	t *rapid.T
	m *txn.Machine

	rev       resource.Revision
	record    grant.RecordState
	modRev    resource.Revision
	collected bool // RELEASED was there and is deleted

	agents []*agentModel // ascending by node

	answers  []txn.Input  // of the store: they arrive, in any order, perhaps twice
	messages []txn.Input  // of agents: they may also be lost
	commands []txn.Effect // to agents: the same
	late     []write      // Txns without an answer that may still land
	reads    int          // reads that are under way

	lost     []resource.NodeID // whose members the record has lost
	commits  int
	acked    map[string]int
	released bool // a release was asked for
}

type agentModel struct {
	node       resource.NodeID
	registered resource.Revision
	state      agentState
	reserved   resource.Revision // the registration under which it promised
	dead       bool              // fenced and confirmed dead at the revision registered
}

type agentState string

const (
	none      agentState = "none"
	reserved  agentState = "RESERVED"
	held      agentState = "HELD"
	tombstone agentState = "TOMBSTONE"
)

// write is a Txn as it was sent.
type write struct {
	kind  string
	at    resource.Revision            // compared with the record's
	votes map[resource.NodeID]txn.Vote // compared with the registrations
	node  resource.NodeID              // of a loss
	fence resource.Revision            // compared with the node's identity
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, rev: 10, acked: map[string]int{}}
	for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
		w.agents = append(w.agents, &agentModel{node: resource.NodeID(fmt.Sprint("n", i)), registered: resource.Revision(i + 1), state: none})
	}
	return w
}

func (w *world) agent(n resource.NodeID) *agentModel {
	for _, a := range w.agents {
		if a.node == n {
			return a
		}
	}
	w.t.Fatalf("effect for node %q, which has no part", n)
	return nil
}

// set writes the record.
func (w *world) set(s grant.RecordState) resource.Revision {
	w.rev++
	w.record, w.modRev = s, w.rev
	return w.rev
}

// become writes the record by a step that there is.
func (w *world) become(s grant.RecordState) resource.Revision {
	if !w.record.MayBecome(s) {
		w.t.Fatalf("I11: the record goes from %s to %s", w.record, s)
	}
	return w.set(s)
}

// land tries a Txn on the store.
func (w *world) land(x write) (bool, resource.Revision) {
	switch x.kind {
	case "commit":
		if w.record != grant.RecordAbsent {
			return false, 0
		}
		for _, a := range w.agents {
			if x.votes[a.node].Revision != a.registered {
				return false, 0
			}
		}
		if w.collected || w.acked["AckAborted"] > 0 {
			w.t.Fatalf("a commit landed after the transaction's end")
		}
		for _, a := range w.agents {
			if a.state != reserved || a.reserved != a.registered {
				w.t.Fatalf("COMMITTED while %s is %s", a.node, a.state)
			}
		}
		return true, w.become(grant.RecordCommitted)
	case "aborted":
		if w.record != grant.RecordAbsent {
			return false, 0
		}
		return true, w.become(grant.RecordAborted)
	case "loss":
		i := slices.IndexFunc(w.agents, func(a *agentModel) bool { return a.node == x.node && a.dead && a.registered == x.fence })
		if w.record != grant.RecordCommitted || w.modRev != x.at || i < 0 {
			return false, 0
		}
		if w.agents = slices.Delete(w.agents, i, i+1); len(w.agents) == 0 {
			w.t.Fatal("the record has lost all members")
		}
		w.lost = append(w.lost, x.node)
		return true, w.become(grant.RecordCommitted)
	case "releasing":
		if w.record != grant.RecordCommitted || w.modRev != x.at {
			return false, 0
		}
		return true, w.become(grant.RecordReleasing)
	default:
		if w.record != grant.RecordReleasing || w.modRev != x.at {
			return false, 0
		}
		for _, a := range w.agents {
			if a.state != tombstone {
				w.t.Fatalf("RELEASED while %s is %s", a.node, a.state)
			}
		}
		return true, w.become(grant.RecordReleased)
	}
}

func answer(x write, o txn.Outcome, rev resource.Revision) txn.Input {
	switch x.kind {
	case "loss":
		return txn.LossAnswered{Node: x.node, Outcome: o, Revision: rev}
	case "commit":
		return txn.CommitAnswered{Outcome: o, Revision: rev}
	case "aborted":
		return txn.FenceAnswered{Outcome: o}
	case "releasing":
		return txn.ReleasingAnswered{Outcome: o, Revision: rev}
	default:
		return txn.ReleasedAnswered{Outcome: o, Revision: rev}
	}
}

// send gives a Txn to the store, which with faults may forget it, its answer,
// or let it land later.
func (w *world) send(x write, faults bool) {
	if faults {
		switch rapid.SampledFrom([]string{"answered", "answered", "lost", "answer lost", "late"}).Draw(w.t, x.kind) {
		case "lost":
			w.answers = append(w.answers, answer(x, txn.Unknown, 0))
			return
		case "answer lost":
			w.land(x)
			w.answers = append(w.answers, answer(x, txn.Unknown, 0))
			return
		case "late":
			w.late = append(w.late, x)
			w.answers = append(w.answers, answer(x, txn.Unknown, 0))
			return
		}
	}
	if ok, rev := w.land(x); ok {
		w.answers = append(w.answers, answer(x, txn.Landed, rev))
	} else {
		w.answers = append(w.answers, answer(x, txn.Conflict, w.rev))
	}
}

// perform does what the machine asks for, and checks that it may.
func (w *world) perform(effects []txn.Effect, faults bool) {
	for _, e := range effects {
		switch e := e.(type) {
		case txn.SendReserve, txn.SendForget:
			w.commands = append(w.commands, e)
		case txn.SendCommit:
			w.must(w.record != grant.RecordAbsent && w.record != grant.RecordAborted || w.collected, e)
			w.commands = append(w.commands, e)
		case txn.SendAbort:
			w.must(w.record == grant.RecordAborted, e)
			w.commands = append(w.commands, e)
		case txn.SendRelease:
			w.must(w.record == grant.RecordReleasing || w.record == grant.RecordReleased, e)
			w.commands = append(w.commands, e)
		case txn.WriteCommit:
			w.commits++
			w.must(w.commits == 1, e)
			votes := map[resource.NodeID]txn.Vote{}
			for _, a := range w.agents {
				v, ok := w.m.Vote(a.node)
				w.must(ok && v.Revision > 0, e)
				votes[a.node] = v
			}
			w.send(write{kind: "commit", votes: votes}, faults)
		case txn.WriteAborted:
			w.must(w.acked["AckCommitted"] == 0, e)
			w.send(write{kind: "aborted"}, faults)
		case txn.WriteLoss:
			w.send(write{kind: "loss", at: w.m.Revision(), node: e.Node, fence: w.identity(e.Node)}, faults)
		case txn.AckLoss:
			w.must(slices.Contains(w.lost, e.Node) && !w.m.Has(e.Node), e)
			w.ack("AckLoss of " + string(e.Node))
		case txn.WriteReleasing:
			w.must(w.released, e)
			w.send(write{kind: "releasing", at: w.m.Revision()}, faults)
		case txn.WriteReleased:
			w.send(write{kind: "released", at: w.m.Revision()}, faults)
		case txn.ReadRecord:
			w.reads++
		case txn.AckCommitted:
			w.must(w.record == grant.RecordCommitted && e.Revision <= w.modRev, e)
			w.ack("AckCommitted")
		case txn.AckReleasing:
			w.must(w.record == grant.RecordReleasing || w.record == grant.RecordReleased, e)
			w.ack("AckReleasing")
		case txn.AckReleased:
			w.must(w.record == grant.RecordReleased || w.collected, e)
			w.ack("AckReleased")
		case txn.AckAborted:
			w.must(w.record == grant.RecordAborted && w.acked["AckCommitted"] == 0, e)
			for _, x := range w.late {
				w.must(x.kind != "commit" || w.m.CommitInDoubt(), e)
			}
			w.ack("AckAborted")
		}
	}
}

func (w *world) must(ok bool, e txn.Effect) {
	if !ok {
		w.t.Fatalf("%T%+v while the record is %d at %d (collected %t), acknowledged %v", e, e, w.record, w.modRev, w.collected, w.acked)
	}
}

func (w *world) ack(name string) {
	if w.acked[name]++; w.acked[name] > 1 {
		w.t.Fatalf("%s twice", name)
	}
}

// step gives the machine an input.
func (w *world) step(in txn.Input, faults bool) { w.perform(w.m.Step(in), faults) }

// read answers a read that is under way.
func (w *world) read() {
	w.reads--
	in := txn.RecordRead{State: w.record, Revision: w.modRev, Lost: slices.Clone(w.lost)}
	if w.record == grant.RecordAbsent {
		in.Revision = w.rev
	}
	w.answers = append(w.answers, in)
}

// obey lets an agent act on a command. One that is dead, or whose members the record has
// lost, does not.
func (w *world) obey(e txn.Effect, refuses bool) {
	if node := nodeOf(e); slices.Contains(w.lost, node) || w.agent(node).dead {
		return
	}
	switch e := e.(type) {
	case txn.SendReserve:
		a := w.agent(e.Node)
		if a.state == none && !refuses {
			a.state, a.reserved = reserved, a.registered
		}
		if a.state == reserved {
			w.messages = append(w.messages, txn.Voted{Node: a.node, Vote: txn.Vote{Revision: a.reserved}})
		} else if a.state != held {
			w.messages = append(w.messages, txn.Refused{Node: a.node})
		}
	case txn.SendCommit:
		if a := w.agent(e.Node); a.state == reserved {
			a.state = held
		}
	case txn.SendAbort:
		a := w.agent(e.Node)
		w.must(a.state != held, e)
		if a.state == reserved {
			a.state = none
		}
	case txn.SendRelease:
		a := w.agent(e.Node)
		a.state = tombstone
		w.messages = append(w.messages, txn.Freed{Node: a.node})
	case txn.SendForget:
	}
}

// resolve is an agent that lost patience: it fences or learns.
func (w *world) resolve(a *agentModel) {
	if a.state != reserved || a.dead {
		return
	}
	if w.record == grant.RecordAbsent && !w.collected {
		w.set(grant.RecordAborted)
	}
	w.adopt(a)
}

// restart is an OS crash: a new registration, then the record is read.
func (w *world) restart(a *agentModel) {
	w.rev++
	a.registered, a.dead = w.rev, false
	w.adopt(a)
}

// die fences a node and confirms its death; the machine is asked to go on without it.
func (w *world) die(a *agentModel) {
	if !a.dead {
		w.rev++
		a.registered, a.dead = w.rev, true
	}
	w.step(txn.NodeLost{Node: a.node}, true)
}

// identity is the revision of a node's identity; 0 where the record has lost its members.
func (w *world) identity(n resource.NodeID) resource.Revision {
	if slices.Contains(w.lost, n) {
		return 0
	}
	return w.agent(n).registered
}

// nodeOf is the node that a command is for.
func nodeOf(e txn.Effect) resource.NodeID {
	switch e := e.(type) {
	case txn.SendReserve:
		return e.Node
	case txn.SendCommit:
		return e.Node
	case txn.SendAbort:
		return e.Node
	case txn.SendRelease:
		return e.Node
	case txn.SendForget:
		return e.Node
	}
	return ""
}

func (w *world) adopt(a *agentModel) {
	switch {
	case a.state == tombstone:
	case w.record == grant.RecordCommitted:
		a.state = held
	case w.record == grant.RecordReleasing:
		a.state = tombstone
		w.messages = append(w.messages, txn.Freed{Node: a.node})
	default:
		a.state = none
	}
}
