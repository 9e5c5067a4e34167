package txn_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestPreemption runs a preemptor and its victims, with an owner as the package
// comment describes it, in a world where messages are lost, doubled and late,
// Txns have unknown outcomes, hosts lose patience and memory, owners delete, and
// leaders die. When faults end, the preemptor has committed over its victims,
// or has come to nothing and whatever was evicted for it has ended.
func TestPreemption(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene(t)
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			s.disturb()
		}
		s.settle()
	})
}

// perform does what a machine asks for; it is the owner.
func (s *scene) perform(tx resource.TxID, effects []txn.Effect, faults bool) {
	m := s.machines[tx]
	for _, e := range effects {
		switch e := e.(type) {
		case txn.SendReserve, txn.SendCommit, txn.SendAbort, txn.SendEvict, txn.SendRelease:
			s.commands = append(s.commands, posted{tx: tx, what: e})
		case txn.WriteEvictions:
			x := intent{kind: "evictions", tx: tx, mods: map[resource.TxID]resource.Revision{tx: 0}, ids: map[resource.NodeID]resource.Revision{}}
			for _, v := range m.Victims() {
				if s.machines[v] == nil || s.machines[v].State() != txn.Committed {
					s.answers = append(s.answers, posted{tx: tx, in: txn.EvictionsAnswered{Outcome: txn.Conflict}})
					return
				}
				x.mods[v] = s.machines[v].Revision()
			}
			for _, v := range m.Victims() {
				s.step(v, txn.VictimClaimed{By: tx}, faults)
			}
			for _, n := range m.Nodes() {
				vote, ok := m.Answer(n)
				s.must(ok, "evicts without an answer of %s", n)
				x.ids[n] = vote.Revision
			}
			s.send(x, faults)
		case txn.WriteCommit:
			x := intent{kind: "commit", tx: tx, mods: map[resource.TxID]resource.Revision{tx: 0}, ids: map[resource.NodeID]resource.Revision{}}
			for _, v := range m.Victims() {
				s.must(s.machines[v].State() == txn.Evicting && s.machines[v].By() == tx, "commits over %s", s.machines[v])
				x.mods[v] = s.machines[v].Revision()
			}
			for _, n := range m.Nodes() {
				vote, ok := m.Vote(n)
				s.must(ok, "commits without a Yes of %s", n)
				x.ids[n] = vote.Revision
			}
			s.send(x, faults)
		case txn.WriteAborted:
			s.send(intent{kind: "aborted", tx: tx, mods: map[resource.TxID]resource.Revision{tx: 0}}, faults)
		case txn.WriteEvicting:
			s.write("evicting", tx, faults)
		case txn.WriteReleasing:
			s.write("releasing", tx, faults)
		case txn.WriteReleased:
			s.write("released", tx, faults)
		case txn.ReadRecord:
			s.answers = append(s.answers, posted{tx: tx, in: s.read(tx)})
		case txn.AckEvictions:
			for _, v := range m.Victims() {
				s.step(v, txn.Evicted{GraceSeconds: 1, Revision: e.Revision}, faults)
			}
		case txn.AckFreed:
			s.must(m.By() != "", "%s tells nobody that it is free", m)
			if p := s.machines[m.By()]; p != nil {
				s.step(m.By(), txn.VictimFreed{Tx: tx}, faults)
			}
		case txn.AckCommitted:
			s.must(s.records[tx].state == grant.RecordCommitted, "acknowledged")
			for _, v := range m.Victims() {
				s.step(v, txn.Displaced(e), faults)
			}
		case txn.AckAborted:
			s.must(s.records[tx].state == grant.RecordAborted, "given up")
			s.victimsGo(faults, m.EvictionsInDoubt())
		}
	}
}

func (s *scene) victimsGo(faults, doubt bool) {
	for _, v := range s.victims() {
		if s.machines[v] != nil {
			s.step(v, txn.PreemptorAborted{By: preemptor, InDoubt: doubt}, faults)
		}
	}
}

// read is what a linearizable read would answer now.
func (s *scene) read(tx resource.TxID) txn.RecordRead {
	r := s.records[tx]
	in := txn.RecordRead{State: r.state, Revision: r.mod}
	if r.state == grant.RecordAbsent {
		in.Revision = s.rev
	}
	if p := s.machines[r.by]; r.by != "" && p != nil && p.Undecided() {
		in.By = r.by
	}
	return in
}

// write sends a Txn about one record. A victim of an undecided preemptor never
// does.
func (s *scene) write(kind string, tx resource.TxID, faults bool) {
	s.must(s.machines[tx].By() == "", "%s writes %s itself", s.machines[tx], kind)
	s.send(intent{kind: kind, tx: tx, mods: map[resource.TxID]resource.Revision{tx: s.machines[tx].Revision()}}, faults)
}

// send gives a Txn to the store, which with faults may forget it, its answer,
// or let it land later.
func (s *scene) send(x intent, faults bool) {
	x.epoch = s.epoch
	if faults {
		switch rapid.SampledFrom([]string{"answered", "answered", "answered", "lost", "answer lost", "late"}).Draw(s.t, x.kind) {
		case "lost":
			s.reply(x, txn.Unknown, 0)
			return
		case "answer lost":
			s.land(x)
			s.reply(x, txn.Unknown, 0)
			return
		case "late":
			s.late = append(s.late, x)
			s.reply(x, txn.Unknown, 0)
			return
		}
	}
	if ok, rev := s.land(x); ok {
		s.reply(x, txn.Landed, rev)
	} else {
		s.reply(x, txn.Conflict, s.rev)
	}
}

func (s *scene) reply(x intent, o txn.Outcome, rev resource.Revision) {
	in := answer(write{kind: x.kind}, o, rev)
	switch x.kind {
	case "evictions":
		in = txn.EvictionsAnswered{Outcome: o, Revision: rev}
	case "evicting":
		in = txn.EvictingAnswered{Outcome: o, Revision: rev}
	}
	s.answers = append(s.answers, posted{tx: x.tx, in: in})
}

func (s *scene) step(tx resource.TxID, in txn.Input, faults bool) {
	if m := s.machines[tx]; m != nil {
		s.perform(tx, m.Step(in), faults)
	}
}

// elect lets the leader die and another take over: it goes on with the records
// that it finds, and with the preemptor if every host still waits, or fences it.
func (s *scene) elect(faults bool) {
	s.rev++
	s.epoch++
	s.answers, s.messages, s.commands = nil, nil, nil
	s.machines = map[resource.TxID]*txn.Machine{}
	adopts := s.records[preemptor].state == grant.RecordAbsent && rapid.Bool().Draw(s.t, "adopts")
	var evicted []resource.TxID
	for _, tx := range slices.Sorted(maps.Keys(s.records)) {
		r := s.records[tx]
		found := txn.Found{State: r.state, Revision: r.mod}
		switch r.state {
		case grant.RecordEvicting:
			if r.by != "" && s.records[preemptor].state == grant.RecordAbsent {
				found.By = r.by
				evicted = append(evicted, tx)
			}
		case grant.RecordCommitted, grant.RecordReleasing:
		default:
			continue
		}
		var effects []txn.Effect
		s.machines[tx], effects = txn.Recover(tx, found, s.votes(tx))
		s.perform(tx, effects, faults)
	}
	if len(evicted) == 0 {
		return
	}
	if adopts {
		var effects []txn.Effect
		s.machines[preemptor], effects = txn.Adopt(preemptor, slices.Collect(maps.Keys(s.votes(preemptor))), evicted...)
		s.perform(preemptor, effects, faults)
		return
	}
	s.land(intent{kind: "aborted", tx: preemptor, mods: map[resource.TxID]resource.Revision{preemptor: 0}})
	s.victimsGo(faults, false)
}

// disturb lets one thing happen.
func (s *scene) disturb() {
	one := rapid.SampledFrom(s.hosts).Draw(s.t, "host")
	some := rapid.SampledFrom(append(s.victims(), preemptor)).Draw(s.t, "transaction")
	switch rapid.IntRange(0, 19).Draw(s.t, "event") {
	case 0, 1, 2, 3:
		s.deliver(&s.answers)
	case 4, 5, 6:
		s.deliver(&s.messages)
	case 7, 8, 9, 10:
		if len(s.commands) > 0 {
			c := take(s.t, &s.commands)
			if rapid.IntRange(0, 3).Draw(s.t, "doubled") == 0 {
				s.commands = append(s.commands, c)
			}
			s.obey(c, rapid.IntRange(0, 9).Draw(s.t, "refuses") == 0)
		}
	case 11:
		if len(s.late) > 0 {
			s.land(take(s.t, &s.late))
		}
	case 12:
		switch {
		case len(s.messages) > 0:
			take(s.t, &s.messages)
		case len(s.commands) > 0:
			take(s.t, &s.commands)
		}
	case 13:
		s.step(some, txn.Reconnected{Node: one.node}, true)
	case 14:
		if rapid.IntRange(0, 3).Draw(s.t, "spent") == 0 {
			s.step(preemptor, txn.BudgetSpent{}, true)
		}
	case 15:
		if rapid.IntRange(0, 3).Draw(s.t, "deleted") == 0 {
			s.deleted[some] = true
			s.step(some, txn.ReleaseAsked{GraceSeconds: 1}, true)
		} else {
			s.step(some, txn.EvictAsked{GraceSeconds: 1}, true)
		}
	case 16:
		if rapid.Bool().Draw(s.t, "memory lost") {
			s.restart(one)
		} else {
			s.resolve(one)
		}
	case 17, 18:
		s.stop(one)
	case 19:
		if rapid.IntRange(0, 3).Draw(s.t, "dies") == 0 {
			s.elect(true)
		}
	}
}

// stop ends the grace of what is under notice on a host.
func (s *scene) stop(h *host) {
	for _, tx := range append(s.victims(), preemptor) {
		if h.states[tx] == leaves {
			s.bury(h, tx)
		}
	}
}

func (s *scene) deliver(from *[]posted) {
	if len(*from) == 0 {
		return
	}
	p := take(s.t, from)
	if rapid.IntRange(0, 3).Draw(s.t, "doubled") == 0 {
		*from = append(*from, p)
	}
	s.step(p.tx, p.in, true)
}

// settle ends the faults: late Txns land or are lost, hosts' streams are new,
// graces run out, whatever is sent arrives.
func (s *scene) settle() {
	for _, x := range s.late {
		if rapid.Bool().Draw(s.t, "lands") {
			s.land(x)
		}
	}
	s.late = nil
	for round := range 4 {
		for _, tx := range append(s.victims(), preemptor) {
			for _, h := range s.parts(tx) {
				s.step(tx, txn.Reconnected{Node: h.node}, false)
			}
		}
		s.drain()
		for _, h := range s.hosts {
			s.stop(h)
		}
		s.drain()
		if round == 2 {
			s.step(preemptor, txn.BudgetSpent{}, false)
			if s.machines[preemptor] == nil { // no leader drives it any more: patience ends
				for _, h := range s.wanted() {
					s.resolve(h)
				}
			}
		}
	}
	s.ended()
}

func (s *scene) drain() {
	for range 2000 {
		switch {
		case len(s.answers) > 0:
			p := s.answers[0]
			s.answers = s.answers[1:]
			s.step(p.tx, p.in, false)
		case len(s.commands) > 0:
			c := s.commands[0]
			s.commands = s.commands[1:]
			s.obey(c, false)
		case len(s.messages) > 0:
			p := s.messages[0]
			s.messages = s.messages[1:]
			s.step(p.tx, p.in, false)
		default:
			return
		}
	}
	s.t.Fatalf("no end in sight: %v", s.machines)
}

func (s *scene) ended() {
	switch s.records[preemptor].state {
	case grant.RecordCommitted:
		for _, h := range s.wanted() {
			s.must(h.states[preemptor] == holds, "%s is %q for the preemptor, which is COMMITTED", h.node, h.states[preemptor])
		}
		for _, v := range s.victims() {
			s.must(s.records[v].state == grant.RecordReleased, "victim %s stays", v)
		}
	case grant.RecordReleased:
	case grant.RecordAborted, grant.RecordAbsent:
		for _, h := range s.hosts {
			st := h.states[preemptor]
			s.must(st != holds && st != waits && st != promises, "%s is %q for a preemptor that came to nothing", h.node, st)
		}
	default:
		s.t.Fatalf("the preemptor ends in %v: %s", s.records[preemptor], s.machines[preemptor])
	}
	for _, v := range s.victims() {
		switch s.records[v].state {
		case grant.RecordReleased:
		case grant.RecordCommitted:
			s.must(!s.deleted[v] || s.epoch > 0, "%s was deleted and stays", v)
			for _, h := range s.parts(v) {
				s.must(h.states[v] == holds, "victim %s is COMMITTED and %q on %s", v, h.states[v], h.node)
			}
		default:
			s.t.Fatalf("victim %s ends in %v: %s", v, s.records[v], s.machines[v])
		}
	}
}
