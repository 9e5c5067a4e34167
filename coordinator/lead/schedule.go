package lead

import (
	"fmt"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Backoff between the attempts of a unit that agents refused.
const (
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = 2 * time.Second
)

// passTries bounds the trials of one pass, so that inputs do not wait long for
// the next one.
const passTries = 256

// schedule tries the units that may have a place now, in the total order, the
// first of each class (coordinator/sched). A unit that cannot be placed waits until
// something may help it, and those behind it are still tried: a large gang at the
// head does not idle the cluster.
func (l *Leader) schedule() {
	l.updateRuntimes()
	l.boundOccupancy()
	l.takeNews()
	l.room.Pass(passTries, trial{l})
	l.takeNews()
}

// Busy reports whether the next pass has something to do at once.
func (l *Leader) Busy() bool {
	return l.room.Busy() || l.state.HasGrown() || l.room.AwaitsOthers() && !l.occupancy.isEmpty()
}

// try starts an attempt for a unit, or returns why it waits.
func (l *Leader) try(u *unit) *sched.Evidence {
	u.beginTry(l.now)
	e := &sched.Evidence{Code: sched.NoPlace, Short: l.admit(u)}
	e.Trees = treesOf(u.charges)
	switch {
	case e.Short == nil:
		if l.placeUnit(u, e) || l.preempts(u, e) {
			return nil
		}
		l.undoCharge(u)
	case e.Short.Victims != nil:
		e.Code = sched.Claim
		if l.claimQuota(u, e) {
			return nil
		}
	case e.Short.Limits != nil:
		e.Code = sched.OverLimit
	default:
		e.Code = sched.OverTree
	}
	return e
}

// placeUnit places a unit and starts its transaction, or reports that there is no
// place now.
func (l *Leader) placeUnit(u *unit, e *sched.Evidence) bool {
	demand := u.demand
	demand.Avoid = u.avoid
	mark := l.state.Checkpoint()
	plan, ok := place.Place(l.state, demand)
	if ok {
		e.Wide = l.tooWide(plan)
		ok = e.Wide == ""
	}
	if !ok {
		l.state.Rollback(mark)
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
	l.room.Remove(u.key)
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
	l.chargeAttempt(tx, a)
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
		u.setEvidence(nil)
		l.room.Hold(u.key)
		l.enqueue(u)
		return
	}
	wait := min(firstBackoff<<min(u.refusals-1, 10), lastBackoff)
	u.beginBackoff(l.now.Add(wait))
	l.room.Hold(u.key)
	l.after(wait, func() {
		u.endBackoff()
		if u.waiting() && u.attempt == nil && u.ending == nil && !u.gone {
			l.offer(u)
		}
	})
}

// shapeOf is equal for demands that fit or fail together.
func shapeOf(d place.Unit) string {
	return fmt.Sprintf("%d %+v %s", d.Members, d.Request, d.Constraints.Key())
}
