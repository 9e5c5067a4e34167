package lead

import (
	"fmt"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Backoff between the attempts of a unit that agents refused.
const (
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = 2 * time.Second
)

// schedule tries every active unit once, in the total order. A unit that
// cannot be placed is parked until something is freed or added, and those
// behind it are still tried: a large gang at the head does not idle the
// cluster.
func (l *Leader) schedule() {
	l.updateRuntimes()
	l.boundOccupancy()
	for _, key := range l.queue.Active() {
		u := l.units[key.Path]
		if u == nil || !u.waiting() || u.ending != nil {
			l.queue.Remove(key)
			continue
		}
		if !u.mayBeTried() || u.grows() {
			l.queue.Park(key) // what it waits for wakes it
			l.recordSkip(u)
			continue
		}
		l.try(u)
	}
	l.account.Flush()
}

// try starts an attempt for a unit, or parks it.
func (l *Leader) try(u *unit) {
	u.beginTry(l.now)
	switch u.setShort(l.admit(u)); {
	case u.short == nil:
		if l.placeUnit(u) || l.preempts(u) {
			return
		}
		l.undoCharge(u)
	case u.short.victims != nil && l.claimQuota(u):
		return
	}
	if u.create != nil && u.job == nil && u.short != nil && u.short.victims == nil && !l.queuesOverQuota(u.record.Namespace) {
		u.fail(overQuota(l.reasons(u.short)))
		l.undoCreation(u)
		return
	}
	l.queue.Park(u.key)
	u.setFailed(l.generation)
	l.recordSkip(u)
	if u.create != nil {
		l.enqueue(u) // it waits: that must survive this leader
	}
}

// placeUnit places a unit and starts its transaction, or reports that there is no
// place now. Equal demands that failed since anything was freed are not
// searched again.
func (l *Leader) placeUnit(u *unit) bool {
	shape := u.shape
	if l.infeasibleAt[shape] == l.generation {
		return false
	}
	demand := u.demand
	demand.Avoid = u.avoid
	mark := l.state.Checkpoint()
	plan, ok := place.Place(l.state, demand)
	if ok {
		u.setWide(l.tooWide(plan))
		ok = u.wide == ""
	}
	if !ok {
		l.state.Rollback(mark)
		l.infeasibleAt[shape] = l.generation
		return false
	}
	l.state.Keep(mark)
	l.begin(u, plan)
	return true
}

// commitOps is the most operations of a commit beside those for each node.
const commitOps = 6

// tooWide says why no Txn can commit a plan, "" where one can. A unit may have
// come when there were fewer nodes.
func (l *Leader) tooWide(plan []place.Choice) string {
	nodes := map[resource.NodeID]bool{}
	for _, m := range plan {
		nodes[m.Node.ID] = true
	}
	ops := len(nodes) + commitOps
	if ops <= l.maxOps {
		return ""
	}
	return fmt.Sprintf("it fits on %d nodes, but to commit that takes %d operations, and the store takes %d in one transaction; raise etcd's --max-txn-ops, or submit it with fewer members",
		len(nodes), ops, l.maxOps)
}

// begin starts the transaction of a placed unit that was admitted. From here
// on its charge counts and its devices are taken in the view.
func (l *Leader) begin(u *unit, plan []place.Choice) {
	a := &attempt{unit: u, charges: u.charges, begun: l.now, held: map[resource.NodeID]bool{}}
	l.launch(a, plan, func(_ *node, h *reservation) { h.setPlacedTaken() })
}

// launch sends an attempt's members to the nodes of its plan. take is called
// once per node, to take what they are to have there. A preemption asks for the
// very devices that the plan names.
func (l *Leader) launch(a *attempt, plan []place.Choice, take func(*node, *reservation)) {
	u := a.unit
	tx := l.nextTx(u.record.UID)
	l.accountFor(a, tx, l.plannedDevices(plan), false)
	l.queue.Remove(u.key)
	var nodes []resource.NodeID
	for _, m := range plan {
		id := m.Node.ID
		n := l.nodes[id]
		if n.reservations[tx] == nil {
			nodes = append(nodes, id)
			a.setAsked(id, n.stream)
		}
		n.reservationOf(tx).addMember(m.AsMember())
		request := grant.MemberRequest{Index: m.Index, Request: u.demand.Request}
		if len(a.victims) > 0 {
			request.PinnedGPUs = devicesOf(m.Assignment)
		}
		a.addRequest(id, request)
	}
	for _, id := range nodes {
		take(l.nodes[id], l.nodes[id].reservations[tx])
	}
	victims := make([]resource.TxID, len(a.victims))
	for i, v := range a.victims {
		victims[i] = v.machine.ID()
	}
	machine, effects := txn.New(tx, nodes, victims...)
	a.setMachine(machine)
	u.launch(a)
	l.insertAttempt(tx, a)
	// The trees charge it since it was admitted. model: mutant UNKNOWN_NOT_CHARGED
	l.quotas.limits.Charge(tx, u.charge)
	if l.tried(a); len(a.victims) > 0 {
		l.setBudget(a, l.rules.VoteBudget)
	} else {
		l.watchVotes(a)
	}
	l.perform(a, effects)
}

// devicesOf lists the devices that an assignment is from, ascending.
func devicesOf(a resource.Assignment) []int {
	var list []int
	for _, g := range a.GPUs {
		list = append(list, g.Index)
	}
	for _, g := range a.MIG {
		list = append(list, g.GPU)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// retry queues a unit again after an attempt that came to nothing. A new unit
// is stored first: its client has waited long enough for that much.
func (l *Leader) retry(u *unit) {
	u.countRefusal()
	if u.create != nil {
		l.queue.Push(u.key)
		l.queue.Park(u.key)
		l.enqueue(u)
		l.recordSkip(u)
		return
	}
	wait := min(firstBackoff<<min(u.refusals-1, 10), lastBackoff)
	l.queue.Push(u.key)
	u.beginBackoff(l.now.Add(wait))
	l.after(wait, func() {
		u.endBackoff()
		if u.waiting() && u.attempt == nil && u.ending == nil && !u.gone {
			l.queue.Push(u.key)
			delete(l.infeasibleAt, u.shape)
		}
	})
}

// shapeOf is equal for demands that fit or fail together.
func shapeOf(d place.Unit) string {
	return fmt.Sprintf("%d %+v %s", d.Members, d.Request, d.Constraints.Key())
}
