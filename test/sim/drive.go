package sim

import (
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file is coordinator/{schedule,charge,perform,writes}.go: what the leader
// does around the machines.

// schedule tries every active unit once, in the total order.
func (t *term) schedule() {
	if t.ended {
		return
	}
	for _, key := range t.queue.Active() {
		u := t.units[key.Path]
		switch {
		case u == nil || u.record.phase != pending || u.ending != nil:
			t.queue.Remove(key)
		case u.writing || u.attempt != nil || u.adopting != nil || u.resting:
			t.queue.Park(key) // what it waits for wakes it
		default:
			t.try(u)
		}
	}
}

// try starts an attempt for a unit, or parks it.
func (t *term) try(u *unit) {
	if t.admit(u) {
		if plan, ok := place.Place(t.order, u.client.demand); ok {
			t.start(u, plan, nil)
			return
		}
		if t.preempts(u) {
			return
		}
		must(t.trees.UndoAllocate(treeName, u.client.name))
	}
	t.queue.Park(u.key)
	u.failed = t.generation
	if u.create {
		t.enqueue(u) // it waits: that must survive this leader
	}
}

func (t *term) enroll(u *unit) {
	if !u.enrolled {
		must(t.trees.AddConsumer(quota.ConsumerSpec{ID: u.client.name, Demands: []quota.Demand{{
			Tree: treeName, Group: u.client.group, Request: u.client.vector(), Priority: int(u.client.priority),
		}}}))
		u.enrolled = true
	}
}

// admit charges a unit to the tree if that and the limits have room for it and
// nobody has to give way.
func (t *term) admit(u *unit) bool {
	t.enroll(u)
	if t.limits.Admit(&u.charge) != nil {
		return false
	}
	r, err := t.trees.TryAllocate(treeName, u.client.name)
	must(err)
	if r.OK && len(r.Preempted) > 0 {
		must(t.trees.UndoAllocate(treeName, u.client.name))
		return false
	}
	return r.OK
}

// seat charges a live transaction's unit at an election: as an arrival, or
// where that would evict somebody, wherever there is room.
func (t *term) seat(u *unit) {
	t.enroll(u)
	r, err := t.trees.TryAllocate(treeName, u.client.name)
	must(err)
	if r.OK && len(r.Preempted) == 0 {
		return
	}
	must(t.trees.UndoAllocate(treeName, u.client.name))
	_, err = t.trees.Restore(treeName, u.client.name)
	must(err)
}

// discharge ends an attempt's charge.
func (t *term) discharge(a *attempt) {
	t.limits.Discharge(a.machine.ID())
	if a.unit.enrolled {
		t.trees.Deallocate(treeName, a.unit.client.name)
	}
}

// start begins the transaction of a placed unit that was admitted, once its
// victims have left.
func (t *term) start(u *unit, plan []place.Member, victims []*attempt) {
	t.queue.Remove(u.key)
	tx := t.nextTx(u.record.uid)
	a := &attempt{unit: u, requests: map[resource.NodeID][]ledger.MemberRequest{}, charges: u.charges(), victims: victims}
	var nodes []resource.NodeID
	for _, m := range plan {
		id := m.Node.ID
		h := t.nodes[id].held[tx]
		if h == nil {
			h = &hold{waiting: len(victims) > 0}
			t.nodes[id].held[tx] = h
			nodes = append(nodes, id)
		}
		h.members = append(h.members, txn.Member{Index: m.Index, Assignment: m.Assignment})
		r := ledger.MemberRequest{Index: m.Index, Request: u.client.demand.Request}
		if len(victims) > 0 {
			r.PinnedGPUs = devicesOf(m.Assignment)
		}
		a.requests[id] = append(a.requests[id], r)
	}
	var effects []txn.Effect
	a.machine, effects = txn.New(tx, nodes, idsOf(victims)...)
	t.sim.logf("%s: tries %s as %s on %v%s", t.name, u.client.name, short(tx), nodes, after(victims))
	t.drive(a, effects)
}

// drive lets an attempt begin.
func (t *term) drive(a *attempt, effects []txn.Effect) {
	u, tx := a.unit, a.machine.ID()
	a.budget = true
	u.attempt, t.attempts[tx] = a, a
	t.limits.Charge(tx, u.charge)
	t.sim.begun[tx] = admission{len(t.sim.begun), t.limitNow[u.client.namespace]}
	if len(a.victims) > 0 {
		t.sim.nominated[tx] = nomination{a.machine.Nodes(), u.client}
	}
	t.perform(a, effects)
}

// charges are what a unit's record carries.
func (u *unit) charges() []store.Charge {
	return []store.Charge{
		{Tree: quota.Tree, Group: u.client.namespace, Request: u.client.vector()},
		{Tree: treeName, Group: u.client.group, Request: u.client.vector()},
	}
}

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
			t.tell(e.Node, order{command: ledger.Reserve{
				Tx: tx, Unit: a.unit.record.uid, Epoch: t.epoch, Members: a.requests[e.Node], TTL: a.ttl(),
				After: a.machine.Victims(), Name: a.unit.client.name,
			}})
		case txn.SendCommit:
			t.tell(e.Node, order{command: ledger.Commit{Tx: tx, Epoch: t.epoch, Revision: e.Revision}})
		case txn.SendAbort:
			t.tell(e.Node, order{command: ledger.Abort{Tx: tx, Epoch: t.epoch}})
			t.nodes[e.Node].drop(tx)
		case txn.SendRelease:
			t.tell(e.Node, order{command: ledger.Release{Tx: tx, Epoch: t.epoch, Grace: seconds(e.GraceSeconds), Reason: e.Reason}})
		case txn.SendForget:
			t.tell(e.Node, order{command: ledger.Forget{Tx: tx}})
			t.nodes[e.Node].drop(tx)
		case txn.SendEvict:
			t.tell(e.Node, order{command: ledger.Evict{Tx: tx, Epoch: t.epoch, Grace: seconds(e.GraceSeconds), By: a.by}})
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
}

// committed makes a unit Running.
func (t *term) committed(a *attempt, revision resource.Revision) {
	u := a.unit
	t.displaced(a, revision)
	a.committed = revision
	u.record.phase, u.record.tx = running, a.machine.ID()
	u.stored, u.queued = revision, false
	t.sim.checkAcknowledged(a.machine.ID())
	t.created(u)
}

// aborted ends an attempt that holds nothing; its unit waits anew, or ends.
func (t *term) aborted(a *attempt) {
	u, tx := a.unit, a.machine.ID()
	a.budget = false
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
	delete(t.attempts, tx)
	t.discharge(a)
	for _, n := range a.machine.Nodes() {
		t.nodes[n].drop(tx)
	}
	t.terminal = append(t.terminal, tx)
	u.attempt = nil
	t.leave(a)
	t.wake()
}

// readRecord reads a transaction's record.
func (t *term) readRecord(a *attempt) {
	tx := a.machine.ID()
	t.read("the record of "+short(tx), txKey(tx), func(e entry, rev resource.Revision) {
		in := txn.RecordRead{State: txn.RecordAbsent, Revision: rev}
		if e.value != nil {
			record := e.value.(store.TxRecord)
			in.Revision, in.State = e.mod, machineStates[record.State]
			in.GraceSeconds, in.Reason = record.GraceSeconds, record.Reason
			if p := t.attempts[record.By]; p != nil && p.machine.Undecided() {
				in.By = record.By
			}
		}
		t.step(a, in)
	})
}

var machineStates = map[store.TxState]txn.RecordState{
	store.TxCommitted: txn.RecordCommitted, store.TxReleasing: txn.RecordReleasing, store.TxReleased: txn.RecordReleased,
	store.TxAborted: txn.RecordAborted, store.TxEvicting: txn.RecordEvicting,
}

// writeCommit asks for the commit point.
func (t *term) writeCommit(a *attempt) {
	u, tx := a.unit, a.machine.ID()
	if !t.mayDisplace(a) {
		t.step(a, txn.CommitAnswered{Outcome: txn.Conflict}) // nothing was sent
		return
	}
	record := store.TxRecord{State: store.TxCommitted, Epoch: t.epoch, Unit: u.client.path(), UnitUID: u.record.uid, Charges: a.charges}
	d := decision{what: "commit of " + short(tx), compares: []store.Compare{store.ModRevIs(unitKey(u.client.name), u.stored)}}
	if t.sim.bug != CommitOverRecord {
		d.compares = append(d.compares, store.Absent(txKey(tx)))
	}
	for _, node := range a.machine.Nodes() {
		v, _ := a.machine.Vote(node)
		switch t.sim.bug {
		case CommitWithoutIncarnation:
		case CompareIdentityReadAnew:
			d.compares = append(d.compares, store.ModRevIs(identityKey(node), t.sim.store.keys[identityKey(node)].mod))
		default:
			d.compares = append(d.compares, store.ModRevIs(identityKey(node), v.Revision))
		}
		for _, m := range v.Members {
			record.Members = append(record.Members, store.Member{Member: m.Index, Node: node, Incarnation: v.Incarnation, Assignment: m.Assignment})
		}
		d.ops = append(d.ops, op{indexKey(node, tx), true})
	}
	r := u.record
	r.phase, r.tx = running, tx
	d.ops = append(d.ops, op{txKey(tx), record}, op{unitKey(u.client.name), r})
	if u.queued {
		d.ops = append(d.ops, op{orderKey(u.client.name), nil})
	}
	if u.create {
		d.compares = append(d.compares, store.Absent(requestKey(u.client.name)))
		d.ops = append(d.ops, op{requestKey(u.client.name), r.uid})
	}
	for _, v := range a.victims {
		d.compares = append(d.compares, store.ModRevIs(txKey(v.machine.ID()), v.machine.Revision()))
		if ops := t.releasedOps(v); t.sim.bug != SwapKeepsVictims {
			d.ops = append(d.ops, ops...)
		}
	}
	d.done = func(o txn.Outcome, rev resource.Revision) { t.commitAnswered(a, o, rev) }
	t.submit(d)
	if t.sim.bug == AckBeforeCommit {
		t.sim.checkAcknowledged(tx)
	}
}

func (t *term) commitAnswered(a *attempt, o txn.Outcome, rev resource.Revision) {
	if o == txn.Unknown {
		switch t.sim.bug {
		case UnknownIsAborted:
			for _, n := range a.machine.Nodes() {
				t.tell(n, order{command: ledger.Abort{Tx: a.machine.ID(), Epoch: t.epoch}})
			}
		case ChargeDroppedOnUnknown:
			t.discharge(a)
		}
	}
	t.step(a, txn.CommitAnswered{Outcome: o, Revision: rev})
}

// writeAborted fences: whichever Txn creates the record first decides.
func (t *term) writeAborted(a *attempt) {
	tx := a.machine.ID()
	t.submit(decision{
		what: "fence of " + short(tx), anyEpoch: true, compares: []store.Compare{store.Absent(txKey(tx))},
		ops:  []op{{txKey(tx), store.TxRecord{State: store.TxAborted, Epoch: t.epoch, UnitUID: a.unit.record.uid}}},
		done: func(o txn.Outcome, _ resource.Revision) { t.step(a, txn.FenceAnswered{Outcome: o}) },
	})
}

// recordOf rebuilds the record of a committed transaction from its votes.
func (t *term) recordOf(a *attempt, state store.TxState) store.TxRecord {
	u := a.unit
	_, epoch, _, err := a.machine.ID().Attempt()
	must(err)
	record := store.TxRecord{State: state, Epoch: epoch, Unit: u.client.path(), UnitUID: u.record.uid, Charges: a.charges}
	for _, node := range a.machine.Nodes() {
		v, _ := a.machine.Vote(node)
		for _, m := range v.Members {
			record.Members = append(record.Members, store.Member{Member: m.Index, Node: node, Incarnation: v.Incarnation, Assignment: m.Assignment})
		}
	}
	record.By = a.by
	switch {
	case u.ending != nil:
		record.Reason, record.GraceSeconds = u.ending.Reason, u.ending.GraceSeconds
	case a.notice != nil:
		record.Reason, record.GraceSeconds, record.Evicted = a.notice.Reason, a.notice.GraceSeconds, true
	}
	return record
}

// writeReleasing asks for COMMITTED or EVICTING → RELEASING.
func (t *term) writeReleasing(a *attempt, e txn.WriteReleasing) {
	u, tx := a.unit, a.machine.ID()
	record := t.recordOf(a, store.TxReleasing)
	record.Evicted = e.Evicted
	r := u.record
	r.phase = terminating
	t.submit(decision{
		what: "release of " + short(tx), compares: []store.Compare{store.ModRevIs(txKey(tx), a.machine.Revision())},
		ops: []op{{txKey(tx), record}, {unitKey(u.client.name), r}},
		done: func(o txn.Outcome, rev resource.Revision) {
			t.step(a, txn.ReleasingAnswered{Outcome: o, Revision: rev})
		},
	})
}

// writeReleased asks for RELEASING → RELEASED, which ends the charge.
func (t *term) writeReleased(a *attempt) {
	tx := a.machine.ID()
	t.submit(decision{
		what: "end of " + short(tx), compares: []store.Compare{store.ModRevIs(txKey(tx), a.machine.Revision())}, ops: t.releasedOps(a),
		done: func(o txn.Outcome, rev resource.Revision) {
			t.step(a, txn.ReleasedAnswered{Outcome: o, Revision: rev})
		},
	})
}
