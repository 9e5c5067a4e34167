package sim

import (
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is coordinator/perform.go: the effects of a machine are carried out.

func (t *term) step(a *attempt, in txn.Input) {
	if t.ended {
		return
	}
	t.perform(a, a.machine.Step(in))
}

// perform carries out a transaction's effects, in order.
func (t *term) perform(a *attempt, effects []txn.Effect) {
	tx := a.machine.ID()
	for _, effect := range effects {
		switch e := effect.(type) {
		case txn.SendReserve:
			t.tell(e.Node, order{command: grant.Reserve{
				Tx: tx, Unit: a.unit.record.uid, Epoch: t.epoch, Members: a.requests[e.Node], TTL: a.ttl(),
				After: a.machine.Victims(), Name: a.unit.client.name,
			}})
		case txn.SendCommit:
			t.tell(e.Node, order{command: grant.Commit{Tx: tx, Epoch: t.epoch, Revision: e.Revision}})
		case txn.SendAbort:
			t.tell(e.Node, order{command: grant.Abort{Tx: tx, Epoch: t.epoch}})
			t.nodes[e.Node].drop(tx)
		case txn.SendRelease:
			t.tell(e.Node, order{command: grant.Release{Tx: tx, Epoch: t.epoch, Grace: seconds(e.GraceSeconds), Reason: e.Reason}})
		case txn.SendForget:
			t.tell(e.Node, order{command: grant.Forget{Tx: tx}})
			t.nodes[e.Node].drop(tx)
		case txn.SendEvict:
			t.tell(e.Node, order{command: grant.Evict{Tx: tx, Epoch: t.epoch, Grace: seconds(e.GraceSeconds), By: a.by}})
		case txn.WriteEvictions:
			a.budget = false
			t.writeEvictions(a)
		case txn.AckEvictions:
			t.victimsNoticed(a, e.Revision)
		case txn.WriteEvicting:
			t.writeEvicting(a, e)
		case txn.AckEvicting:
			t.underNotice(a, e)
		case txn.AckFreed:
			if p := t.attempts[a.machine.By()]; p != nil {
				t.step(p, txn.VictimFreed{Tx: tx})
			}
		case txn.WriteCommit:
			a.budget = false
			t.writeCommit(a)
		case txn.WriteAborted:
			a.budget = false
			t.writeAborted(a)
		case txn.ReadRecord:
			t.readRecord(a)
		case txn.WriteReleasing:
			t.writeReleasing(a, e)
		case txn.WriteReleased:
			t.writeReleased(a)
		case txn.AckCommitted:
			t.committed(a, e.Revision)
		case txn.AckReleasing:
			a.unit.record.phase, a.unit.stored = terminating, e.Revision
			if !e.Evicted && a.unit.ending == nil { // another has asked
				a.unit.ending = &txn.ReleaseAsked{}
			}
		case txn.AckReleased:
			t.released(a)
		case txn.AckAborted:
			t.aborted(a)
		}
	}
	t.forsake(a)
}

// committed makes a unit Running.
func (t *term) committed(a *attempt, revision resource.Revision) {
	u := a.unit
	t.account.Committed(a.machine.ID(), revision)
	t.displaced(a, revision)
	a.committed = revision
	u.record.phase, u.record.tx = running, a.machine.ID()
	u.stored, u.queued = revision, false
	t.sim.checkAcknowledged(a.machine.ID())
	t.created(u)
	t.wakeExpectant()
}

// aborted ends an attempt that holds nothing; its unit waits anew, or ends.
func (t *term) aborted(a *attempt) {
	u, tx := a.unit, a.machine.ID()
	a.budget = false
	t.account.Aborted(tx)
	delete(t.attempts, tx)
	t.discharge(a)
	for _, n := range a.machine.Nodes() {
		t.nodes[n].drop(tx)
	}
	if t.collectable(a) {
		t.terminal = append(t.terminal, tx)
	}
	u.attempt = nil
	t.letGo(a)
	if t.sim.bug == CollectNamed {
		t.hasten(a)
	}
	t.sim.stats["aborts"]++
	t.wake()
	if u.ending != nil {
		t.endQueued(u)
		return
	}
	t.queue.Push(u.key)
	if u.create {
		t.queue.Park(u.key)
		t.enqueue(u)
		t.passOver(u)
		return
	}
	u.resting = true
}

// rested ends the backoff of a unit that agents refused.
func (t *term) rested(u *unit) {
	u.resting = false
	if u.record.phase == pending && u.attempt == nil && u.ending == nil && !u.gone {
		t.queue.Push(u.key)
	}
}

// released ends a unit: its charge and its devices are free.
func (t *term) released(a *attempt) {
	u, tx := a.unit, a.machine.ID()
	t.account.Ended(tx, u.client.name, "")
	delete(t.attempts, tx)
	t.discharge(a)
	for _, n := range a.machine.Nodes() {
		t.nodes[n].drop(tx)
	}
	t.bury(tx, a.unheard)
	u.attempt = nil
	t.leave(a)
	t.wake()
}

// readRecord reads a transaction's record.
func (t *term) readRecord(a *attempt) {
	tx := a.machine.ID()
	t.read("the record of "+short(tx), txKey(tx), func(e entry, rev resource.Revision) {
		in := txn.RecordRead{State: grant.RecordAbsent, Revision: rev}
		if e.value != nil {
			rec := e.value.(record.Tx)
			in.Revision, in.State = e.mod, rec.State
			in.GraceSeconds, in.Reason = rec.GraceSeconds, rec.Reason
			if p := t.attempts[rec.By]; p != nil && p.machine.Undecided() {
				in.By = rec.By
			}
		}
		if t.step(a, in); a.unit.evictable() { // its preemptor's eviction was in doubt, and has not landed
			t.wakeExpectant()
		}
	})
}
