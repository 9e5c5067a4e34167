package txn_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// take removes a random element.
func take[T any](t *rapid.T, from *[]T) T {
	i := rapid.IntRange(0, len(*from)-1).Draw(t, "which")
	v := (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return v
}

// TestMachineObeysTheRecord runs one transaction in a world where messages are
// lost, doubled and late, agents lose patience and memory, and Txns have
// unknown outcomes. Every effect is checked by the world; when faults end the
// transaction must come to its end.
func TestMachineObeysTheRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		start(w)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			disturb(w)
		}
		settle(w)
	})
}

// start begins a transaction, or recovers one.
func start(w *world) {
	var effects []txn.Effect
	nodes := make([]resource.NodeID, len(w.agents))
	votes := map[resource.NodeID]txn.Vote{}
	for i, a := range w.agents {
		nodes[i] = a.node
		votes[a.node] = txn.Vote{Revision: a.registered}
	}
	switch rapid.SampledFrom([]string{"new", "new", "new", "COMMITTED", "RELEASING"}).Draw(w.t, "start") {
	case "new":
		w.m, effects = txn.New("tx", nodes)
	case "COMMITTED":
		w.recovered(grant.RecordCommitted)
		w.m, effects = txn.Recover("tx", txn.Found{State: grant.RecordCommitted, Revision: w.modRev}, votes)
	default:
		w.recovered(grant.RecordReleasing)
		w.released = true
		w.acked["AckReleasing"] = 1
		w.m, effects = txn.Recover("tx", txn.Found{State: grant.RecordReleasing, Revision: w.modRev}, votes)
	}
	w.perform(effects, true)
}

// recovered is what an earlier leader has left: agents that know the record, or
// not yet.
func (w *world) recovered(s grant.RecordState) {
	w.set(s)
	w.acked["AckCommitted"] = 1
	for _, a := range w.agents {
		a.state, a.reserved = reserved, a.registered
		if rapid.Bool().Draw(w.t, "knows") {
			w.adopt(a)
		}
	}
	w.messages = nil // said to the earlier leader
}

// disturb lets one thing happen.
func disturb(w *world) {
	one := rapid.SampledFrom(w.agents).Draw(w.t, "agent")
	switch rapid.IntRange(0, 16).Draw(w.t, "event") {
	case 0, 1, 2:
		if len(w.answers) > 0 {
			in := take(w.t, &w.answers)
			if _, once := in.(txn.LossAnswered); !once && rapid.IntRange(0, 3).Draw(w.t, "doubled") == 0 {
				w.answers = append(w.answers, in)
			}
			w.step(in, true)
		}
	case 3, 4:
		if len(w.messages) > 0 {
			in := take(w.t, &w.messages)
			if rapid.IntRange(0, 3).Draw(w.t, "doubled") == 0 {
				w.messages = append(w.messages, in)
			}
			w.step(in, true)
		}
	case 5, 6, 7:
		if len(w.commands) > 0 {
			e := take(w.t, &w.commands)
			if rapid.IntRange(0, 3).Draw(w.t, "doubled") == 0 {
				w.commands = append(w.commands, e)
			}
			w.obey(e, rapid.IntRange(0, 7).Draw(w.t, "refuses") == 0)
		}
	case 8:
		if w.reads > 0 {
			w.read()
		}
	case 9:
		if len(w.late) > 0 {
			w.land(take(w.t, &w.late))
		}
	case 10:
		switch {
		case len(w.messages) > 0:
			take(w.t, &w.messages)
		case len(w.commands) > 0:
			take(w.t, &w.commands)
		}
	case 11:
		w.step(txn.Reconnected{Node: one.node}, true)
	case 12:
		w.step(txn.BudgetSpent{}, true)
	case 13:
		w.released = true
		w.step(txn.ReleaseAsked{GraceSeconds: 1}, true)
	case 14:
		if rapid.Bool().Draw(w.t, "memory lost") {
			w.restart(one)
		} else {
			w.resolve(one)
		}
	case 16:
		w.die(one)
	case 15:
		switch w.record {
		case grant.RecordReleased: // history has it
			w.rev++
			w.record, w.modRev, w.collected = grant.RecordAbsent, 0, true
		case grant.RecordCommitted: // e.g. an eviction was written and taken back
			w.set(grant.RecordCommitted)
		}
	}
}

// settle ends the faults: late Txns land or are lost, streams are up, whatever
// is sent arrives.
func settle(w *world) {
	for _, x := range w.late {
		if rapid.Bool().Draw(w.t, "lands") {
			w.land(x)
		}
	}
	w.late = nil
	for _, a := range w.agents {
		if a.dead { // it was no death
			w.restart(a)
		}
		w.step(txn.Reconnected{Node: a.node}, false)
	}
	for range 1000 {
		switch {
		case len(w.answers) > 0:
			in := w.answers[0]
			w.answers = w.answers[1:]
			w.step(in, false)
		case w.reads > 0:
			w.read()
		case len(w.commands) > 0:
			e := w.commands[0]
			w.commands = w.commands[1:]
			w.obey(e, false)
		case len(w.messages) > 0:
			in := w.messages[0]
			w.messages = w.messages[1:]
			w.step(in, false)
		case w.m.State() == txn.Reserving:
			w.step(txn.BudgetSpent{}, false)
		default:
			ended(w)
			return
		}
	}
	w.t.Fatalf("no end in sight: %s", w.m)
}

func ended(w *world) {
	state := w.m.State()
	switch {
	case state == txn.Committed && len(w.m.Nodes()) != len(w.agents):
		w.t.Fatalf("settled with the nodes %v, and has lost %v", w.m.Nodes(), w.lost)
	case state == txn.Committed && !w.released && w.record == grant.RecordCommitted && w.acked["AckCommitted"] == 1:
		for _, a := range w.agents {
			if a.state != held {
				w.t.Fatalf("settled as Committed while %s is %s", a.node, a.state)
			}
		}
	case state == txn.Released && w.acked["AckReleased"] == 1:
	case state == txn.Aborted && w.acked["AckAborted"] == 1 && w.record == grant.RecordAborted:
		for _, a := range w.agents {
			if a.state == reserved || a.state == held {
				w.t.Fatalf("settled as Aborted while %s is %s", a.node, a.state)
			}
		}
	default:
		w.t.Fatalf("settled in %s (record %d, release asked %t, acknowledged %v)", w.m, w.record, w.released, w.acked)
	}
}
