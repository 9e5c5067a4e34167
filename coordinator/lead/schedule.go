package lead

import (
	"time"

	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
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
	awaits := l.room.AwaitsOthers() || l.room.AwaitsNeighbours()
	return l.room.Busy() || l.state.HasGrown() || awaits && !l.occupancy.isEmpty() || l.room.AwaitsNeighbours() && l.state.HasNeighbourNews()
}

// try starts an attempt for a unit, or returns why it waits.
func (l *Leader) try(u *work.Unit) *sched.Evidence {
	if u.Gathers() {
		return l.tryGroup(u.Group, u.Group.Ready())
	}
	if full := l.fillsQueue(u, u.Demand.Members); full != nil {
		return full
	}
	u.Wait.BeginTry(l.post.Now())
	d := l.decide(u)
	switch d.Action {
	case sched.Start:
		l.begin(u, &d)
	case sched.Preempt:
		l.beginPreemption(u, &d)
	case sched.Wait:
	}
	return d.Evidence
}

// begin starts the transaction of a placed unit that was admitted. From here
// on its charge counts and its devices are taken in the view.
func (l *Leader) begin(u *work.Unit, d *sched.Decision) {
	l.launch(work.NewAttempt(u, sched.WithModels(u.Charges, d.Models), l.post.Now()), d.Plan, func(_ *node, h *reservation) { h.setPlacedTaken() })
}

// launch sends an attempt's members to the nodes of its plan. take is called
// once per node, to take what they are to have there. A preemption asks for the
// very devices that the plan names.
func (l *Leader) launch(a *work.Attempt, plan []place.Choice, take func(*node, *reservation)) {
	u := a.Unit
	tx := l.post.NextTx(u.Record.UID)
	l.accountFor(a, tx, l.plannedDevices(plan), false)
	l.room.Remove(u.Key)
	var nodes []resource.NodeID
	for _, m := range plan {
		id := m.Node.ID
		n := l.nodes[id]
		if n.reservations[tx] == nil {
			nodes = append(nodes, id)
			a.SetAsked(id, n.stream)
		}
		n.reservationOf(tx).addMember(m.AsMember())
		a.AddRequest(id, a.RequestOf(m))
	}
	for _, id := range nodes {
		take(l.nodes[id], l.nodes[id].reservations[tx])
	}
	victims := make([]resource.TxID, len(a.Displaced()))
	for i, v := range a.Displaced() {
		victims[i] = v.Machine.ID()
	}
	machine, effects := txn.New(tx, nodes, victims...)
	a.SetMachine(machine)
	u.Launch(a)
	l.insertAttempt(tx, a)
	l.chargeAttempt(tx, a)
	if l.tried(a); a.IsPreempting() {
		l.setBudget(a, l.rules.VoteBudget)
	} else {
		l.watchVotes(a)
	}
	l.perform(a, effects)
}

// retry queues a unit again after an attempt that came to nothing. A new unit
// is stored first: its client has waited long enough for that much.
func (l *Leader) retry(u *work.Unit) {
	if !u.IsSuspended() { // else the leader has given up the attempt
		u.Wait.CountRefusal()
	}
	l.noteWaiting(u)
	if u.Create != nil {
		u.Wait.SetEvidence(nil)
		l.room.Hold(u.Key)
		l.enqueue(u)
		return
	}
	l.rest(u, min(firstBackoff<<min(max(0, u.Wait.Refusals-1), 10), lastBackoff))
}

// rest has a stored unit wait for a time before it is tried again.
func (l *Leader) rest(u *work.Unit, wait time.Duration) {
	u.BeginBackoff(l.post.Now().Add(wait))
	l.room.Hold(u.Key)
	l.post.After(wait, func() {
		u.EndBackoff()
		if u.Waiting() && u.Attempt == nil && !u.Life.EndAsked() && !u.Life.Gone() {
			l.offer(u)
		}
	})
}
