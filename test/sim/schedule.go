package sim

import (
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is coordinator/{schedule,charge}.go: who is tried, admitted and begun.

// schedule tries every active unit once, in the total order.
func (t *term) schedule() {
	if t.ended {
		return
	}
	active := t.queue.Active()
	if t.sim.bug == HeadPassedOver && len(active) > 1 {
		active = active[1:]
	}
	for _, key := range active {
		u := t.units[key.Path]
		switch {
		case u == nil || u.record.phase != pending || u.ending != nil:
			t.queue.Remove(key)
		case u.writing || u.attempt != nil || u.adopting != nil || u.resting:
			t.queue.Park(key) // what it waits for wakes it
			t.passOver(u)
		default:
			t.try(u)
		}
	}
	t.account.Flush()
	t.checkWaiting()
}

// try starts an attempt for a unit, or parks it.
func (t *term) try(u *unit) {
	u.short = !t.admit(u)
	if !u.short {
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
	t.passOver(u)
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
func (t *term) start(u *unit, plan []place.Choice, victims []*attempt) {
	tx := t.nextTx(u.record.uid)
	a := &attempt{unit: u, requests: map[resource.NodeID][]grant.MemberRequest{}, charges: u.charges(), victims: victims}
	t.accountFor(a, tx, plannedDevices(plan), false)
	t.queue.Remove(u.key)
	var nodes []resource.NodeID
	for _, m := range plan {
		id := m.Node.ID
		h := t.nodes[id].held[tx]
		if h == nil {
			h = &hold{waiting: len(victims) > 0}
			t.nodes[id].held[tx] = h
			nodes = append(nodes, id)
		}
		h.members = append(h.members, m.AsMember())
		r := grant.MemberRequest{Index: m.Index, Request: u.client.demand.Request}
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
func (u *unit) charges() []record.Charge {
	return []record.Charge{
		{Tree: quota.Tree, Group: u.client.namespace, Request: u.client.vector()},
		{Tree: treeName, Group: u.client.group, Request: u.client.vector()},
	}
}
