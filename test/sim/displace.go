package sim

import (
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file is coordinator/displace.go: victims leave, and the preemptor takes their place.

// writeEvictions asks for the Txn that evicts all victims at once.
func (t *term) writeEvictions(a *attempt) {
	tx := a.machine.ID()
	d := decision{what: "evictions for " + short(tx), delicate: true}
	if t.sim.bug != EvictForDecided {
		d.compares = append(d.compares, record.Absent(txKey(tx)))
	}
	for _, node := range a.machine.Nodes() {
		if v, _ := a.machine.Answer(node); t.sim.bug != EvictWithoutIncarnations {
			d.compares = append(d.compares, record.ModRevIs(identityKey(node), v.Revision))
		}
	}
	for _, v := range a.victims {
		if v.machine.State() != txn.Committed || v.unit.ending != nil || v.prey != a {
			t.step(a, txn.EvictionsAnswered{Outcome: txn.Conflict}) // nothing was sent
			return
		}
		d.compares = append(d.compares, record.ModRevIs(txKey(v.machine.ID()), v.machine.Revision()),
			record.ModRevIs(unitKey(v.unit.client.name), v.unit.stored))
		d.ops = append(d.ops, t.evictingOps(v, a.noticeOf(), tx)...)
	}
	for _, v := range a.victims {
		t.step(v, txn.VictimClaimed{By: tx})
	}
	if t.sim.mishap(30) {
		h := t.sim.host(pick(t.sim, a.machine.Nodes()))
		h.reboot() // the worst moment: what waits is lost
		h.startAgent()
		d.slow = true
	}
	d.done = func(o txn.Outcome, rev resource.Revision) {
		t.step(a, txn.EvictionsAnswered{Outcome: o, Revision: rev})
	}
	t.submit(d)
}

// noticeOf is what an attempt's victims are told.
func (a *attempt) noticeOf() txn.EvictAsked {
	return txn.EvictAsked{GraceSeconds: int64(evictionGrace / time.Second), Reason: "gives way to " + a.unit.client.name}
}

// victimsNoticed tells the victims that they are EVICTING.
func (t *term) victimsNoticed(a *attempt, revision resource.Revision) {
	notice := a.noticeOf()
	for _, v := range a.victims {
		t.step(v, txn.Evicted{GraceSeconds: notice.GraceSeconds, Reason: notice.Reason, Revision: revision})
	}
	a.budget = true
	if t.sim.mishap(20) { // the worst moment: the next leader has to go on with it
		t.sim.expire(t.key)
		t.sim.depose(t, "its process is killed")
		return
	}
	if t.sim.bug == SwapBeforeFreed {
		for _, v := range a.victims {
			t.step(a, txn.VictimFreed{Tx: v.machine.ID()})
		}
	}
}

// mayDisplace reports whether the commit of a preemptor may be sent.
func (t *term) mayDisplace(a *attempt) bool {
	return !slices.ContainsFunc(a.victims, func(v *attempt) bool {
		freed := v.machine.Freed() || t.sim.bug == SwapBeforeFreed
		return v.machine.State() != txn.Evicting || v.machine.By() != a.machine.ID() || !freed
	})
}

// displaced ends the victims of a unit that has committed.
func (t *term) displaced(a *attempt, revision resource.Revision) {
	if len(a.victims) > 0 {
		t.sim.stats["preemptions"]++
	}
	for _, v := range a.victims {
		t.step(v, txn.Displaced{Revision: revision})
	}
}

// letGo takes back the victims of an attempt that will never commit.
func (t *term) letGo(a *attempt) {
	for _, v := range a.victims {
		v.prey = nil
		t.step(v, txn.PreemptorAborted{By: a.machine.ID(), InDoubt: a.machine.EvictionsInDoubt() && t.sim.bug != VictimsNotRead})
	}
}

// collectable reports whether an aborted attempt's record may be deleted.
func (t *term) collectable(a *attempt) bool {
	switch {
	case a.machine.CommitInDoubt():
		return t.sim.bug == CollectInDoubt
	case a.machine.EvictionsInDoubt():
		return t.sim.bug == CollectEvictionInDoubt
	}
	return true
}

// patience says how rarely the timer of an attempt fires: that of one whose
// victims are leaving is long.
func (a *attempt) patience() int {
	if a.machine.State() == txn.Displacing {
		return 48
	}
	return 6
}

// ttl is how long an agent keeps what it promised without hearing more.
func (a *attempt) ttl() time.Duration {
	if len(a.victims) > 0 {
		return waitingTTL
	}
	return reservationTTL
}

// hasten brings about the worst moment for CollectNamed: the record of an
// ABORTED preemptor is collected while its victims leave, and before agents hear
// of its end.
func (t *term) hasten(a *attempt) {
	if len(a.victims) == 0 || len(t.terminal) == 0 {
		return
	}
	for _, n := range a.machine.Nodes() {
		if st := t.nodes[n].stream; st != nil {
			st.stalled = t.sim.step + 200
		}
	}
	t.collect(len(t.terminal) - 1)
}
