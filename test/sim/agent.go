package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

// agent is one life of an agent's process: a real ledger and, around it, the
// rules of the owner's loop.
type agent struct {
	h           *host
	l           *ledger.Ledger
	incarnation resource.Incarnation
	dead        bool

	session    *stream // the leader's, nil without one
	unresolved map[resource.TxID]bool
	sure       map[resource.TxID]bool // seen COMMITTED by this process
	calls      map[resource.TxID]bool // of Resolve, under way
	seen       map[string]bool        // the devices that were busy when it looked last
	register   bool                   // a registration is wished for
	calling    bool                   // and this one is under way
	heard      resource.Revision      // when it began
}

// startAgent starts the process on what the disk holds.
func (h *host) startAgent() {
	s := h.sim
	if h.off {
		return
	}
	h.disk.open()
	h.agents++
	a := &agent{h: h, l: ledger.New(h.hardware()), unresolved: map[resource.TxID]bool{}, sure: map[resource.TxID]bool{}, calls: map[resource.TxID]bool{}, register: true}
	if err := a.l.Replay(h.disk.payloads); err != nil {
		s.violated(s.checker.Replayed(invariant.Replay{Node: h.node, Problem: err}))
		return
	}
	h.replayed(a.l)
	a.incarnation = resource.Incarnation{JournalID: h.disk.id(), BootID: fmt.Sprintf("b%d", h.boot)}
	h.agent = a
	for _, g := range a.l.Snapshot().Grants {
		if g.State == grant.Tombstone {
			s.buried(h, g.Tx)
		}
		if w := h.running[g.Tx]; w != nil && (g.State == grant.Evicting || g.State == grant.Stopping) {
			w.noticed, w.at, w.grace = true, g.Since, g.Grace // stops repeat
		}
	}
	s.logf("%s: agent starts as %s", h.node, a.incarnation)
	if s.bug == AnswerBeforeRegistering {
		if _, known := s.store.keys[record.NodeIdentityKey(h.node)]; known {
			a.do(ledger.Start{Incarnation: a.incarnation}, nil)
			a.do(ledger.Registered{Revision: s.store.keys[record.NodeIdentityKey(h.node)].ModRev}, nil)
			return
		}
	}
	h.orphan(a.l)
	a.seen = h.busy()
	if _, ok := a.do(ledger.Start{Incarnation: a.incarnation}, nil); ok {
		h.disk.synced = len(h.disk.payloads)
		a.explain()
	}
}

// do decides one command, makes it durable, and only then acts on it and
// answers into out. ok is false if the process did not live to answer.
func (a *agent) do(c ledger.Command, out *stream) (reply ledger.Reply, ok bool) {
	s, h := a.h.sim, a.h
	again := a.l.Registration() > 0
	before := a.l.Epoch()
	reply, events := a.l.Decide(h.now(), c)
	a.decided(before, c, events)
	urgent := false
	for _, e := range events {
		if err := a.l.Apply(e); err != nil {
			s.fail("ledger", "%s refuses its own event %T of %T: %v", h.node, e, c, err)
			return reply, false
		}
		if e, is := e.(ledger.Granted); is && e.Grant.State == grant.Tombstone {
			urgent = true
		}
		if _, is := e.(ledger.Buried); is {
			urgent = true
		}
	}
	if len(events) > 0 && !a.record(ledger.AppendEvents(nil, events), urgent) {
		return reply, false
	}
	happened := slices.Clone(events) // of the ledger's own, until its next decision
	for _, e := range happened {
		a.note(e)
	}
	s.touched(h)
	if slices.ContainsFunc(happened, vacates) {
		if a.explain(); a.dead {
			return reply, false
		}
	}
	for _, alarm := range reply.Alarms {
		s.alarmed(h, c, alarm)
	}
	_, registers := c.(ledger.Registered)
	for _, tx := range reply.Resolve {
		if g, known := a.l.Lookup(tx); registers && again && known && g.State == grant.Reserved {
			continue // a second registration of one incarnation has lost nothing
		}
		a.resolve(tx)
	}
	for _, tx := range reply.Woken {
		if g, known := a.l.Lookup(tx); known {
			a.tell(replied{Reply: a.stamped(ledger.Reply{Tx: tx, State: g.State, Members: g.Members})})
		}
	}
	for _, tx := range reply.Stop {
		h.stop(tx, true)
	}
	if out != nil {
		out.say(a, replied{Reply: reply})
	}
	a.told(reply)
	if (reply.State == grant.Reserved || reply.State == grant.Waiting) && s.mishap(40) {
		h.reboot() // the worst moment: its promise need not be on the disk
	}
	return reply, true
}

// told notes an answer Freed.
func (a *agent) told(r ledger.Reply) {
	if r.State == grant.Tombstone && a.l.Known() {
		a.h.freed(r.Tx)
	}
}

func (a *agent) stamped(r ledger.Reply) ledger.Reply {
	r.Incarnation, r.Registered = a.incarnation, a.l.Registration()
	return r
}

// record appends to the journal. With faults the process or the machine may end
// on either side of each step.
func (a *agent) record(payload []byte, urgent bool) bool {
	s, d := a.h.sim, &a.h.disk
	if s.mishap(250) {
		a.h.intact = false
		switch s.rng.IntN(4) {
		case 0: // nothing of it was written
			a.h.crash("before the append")
		case 1: // a part of it was written
			d.doubt = true
			a.h.crash("in the append")
		case 2:
			d.payloads = append(d.payloads, payload)
			a.h.crash("after the append")
		case 3: // the sync fails, and the kernel drops what was not synced
			d.payloads = append(d.payloads, payload)
			d.payloads = d.payloads[:d.synced+s.rng.IntN(len(d.payloads)-d.synced+1)]
			d.doubt = true
			a.h.loses(invariant.LostTail)
			a.h.crash("in the sync")
		}
		return false
	}
	d.payloads = append(d.payloads, payload)
	if urgent && s.bug != FreedBeforeDurable {
		d.synced = len(d.payloads)
	}
	return true
}

// note lets the host do what an event asks for.
func (a *agent) note(e ledger.Event) {
	h := a.h
	switch e := e.(type) {
	case ledger.Granted:
		if e.Grant.Origin == ledger.OriginOrphan {
			return
		}
		switch e.Grant.State {
		case grant.Held:
			a.sure[e.Grant.Tx] = true
			h.launch(a, e.Grant.Tx)
		case grant.Evicting, grant.Stopping:
			h.notice(e.Grant.Tx, e.Grant.Grace)
		}
	case ledger.Committed:
		a.sure[e.Tx] = true
		h.launch(a, e.Tx)
	case ledger.Noticed:
		h.evicted(e.Tx, e.Grace)
	case ledger.StopBegun:
		h.notice(e.Tx, e.Grace)
		if h.sim.bug == FreedBeforeStopped {
			a.do(ledger.Stopped{Tx: e.Tx}, a.session)
		}
	case ledger.Buried:
		h.sim.buried(h, e.Tx)
	case ledger.Quarantined:
		clear(a.unresolved)
		h.sim.stats["quarantines"]++
	case ledger.Reconciled:
		a.register = true
		if h.sim.bug == EndedInQuarantine {
			a.buryHeld()
		}
	}
}

// tick is the owner's timer.
func (a *agent) tick() {
	if _, ok := a.do(ledger.Tick{}, nil); !ok {
		return
	}
	for _, tx := range slices.Sorted(maps.Keys(a.unresolved)) {
		a.call(tx)
	}
	if a.register {
		a.callRegister()
	}
}

// resolve asks for a record, again and again until it is known.
func (a *agent) resolve(tx resource.TxID) {
	a.unresolved[tx] = true
	a.call(tx)
}

// tell queues news for the leader, once it may be told anything.
func (a *agent) tell(e event) {
	if a.session != nil && a.l.Known() {
		a.session.say(a, e)
	}
}

// occupancy is everything the ledger holds, once it may be told.
func (a *agent) occupancy() occupied {
	v := a.l.Snapshot()
	o := occupied{hash: a.l.Hash(), cordoned: v.Cordoned, unhealthy: v.Free.Unhealthy}
	if a.l.Known() {
		o.grants = v.Grants
		for _, g := range v.Grants {
			a.told(ledger.Reply{Tx: g.Tx, State: g.State})
		}
	}
	return o
}

// buryHeld is EndedInQuarantine.
func (a *agent) buryHeld() {
	for _, g := range a.l.Snapshot().Grants {
		if g.Origin != ledger.OriginTxn || g.State != grant.Evicting && g.State != grant.Held {
			continue
		}
		delete(a.h.running, g.Tx)
		e := ledger.Buried{Tx: g.Tx}
		must(a.l.Apply(e))
		a.record(ledger.AppendEvents(nil, []ledger.Event{e}), true)
	}
}
