package coordinator

import (
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/txn"
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
func (l *leader) schedule() {
	l.tellTime()
	for _, key := range l.queue.Active() {
		u := l.units[key.Path]
		if u == nil || !u.waiting() || u.ending != nil {
			l.queue.Remove(key)
			continue
		}
		if u.writing || u.attempt != nil || u.resting || u.grows() {
			l.queue.Park(key) // what it waits for wakes it
			continue
		}
		l.try(u)
	}
}

// try starts an attempt for a unit, or parks it.
func (l *leader) try(u *unit) {
	u.attempts++
	u.lastAttempt = time.Now()
	if u.short = l.admit(u); u.short == nil {
		if l.fits(u) {
			return
		}
		l.takeBack(u)
	}
	if u.create != nil && u.job == nil && u.short != nil && u.short.victims == nil && !l.queues(u.record.Namespace) {
		u.err = overQuota(l.reasons(u.short))
		l.undoCreation(u)
		return
	}
	l.queue.Park(u.key)
	u.failed = l.generation
	if u.create != nil {
		l.enqueue(u) // it waits: that must survive this leader
	}
}

// fits places a unit and starts its transaction, or reports that there is no
// place now. Equal demands that failed since anything was freed are not
// searched again.
func (l *leader) fits(u *unit) bool {
	shape := u.shape
	if l.hopeless[shape] == l.generation {
		return false
	}
	plan, ok := place.Place(l.order, u.demand)
	if !ok {
		l.hopeless[shape] = l.generation
		return false
	}
	l.begin(u, plan)
	return true
}

// begin starts the transaction of a placed unit that was admitted. From here
// on its charge counts and its devices are taken in the view.
func (l *leader) begin(u *unit, plan []place.Member) {
	l.queue.Remove(u.key)
	tx := l.nextTx(u.record.UID)
	requests := map[resource.NodeID][]agents.MemberRequest{}
	var nodes []resource.NodeID
	for _, m := range plan {
		id := m.Node.ID
		n := l.nodes[id]
		h := n.held[tx]
		if h == nil {
			h = &hold{}
			n.held[tx] = h
			nodes = append(nodes, id)
		}
		h.members = append(h.members, agents.Member{Index: m.Index, Assignment: m.Assignment})
		h.taken = append(h.taken, m.Assignment)
		requests[id] = append(requests[id], agents.MemberRequest{Index: m.Index, Request: u.demand.Request})
	}
	a := &attempt{unit: u, charges: u.charges, begun: time.Now(), requests: requests, held: map[resource.NodeID]bool{}}
	var effects []txn.Effect
	a.machine, effects = txn.New(tx, nodes)
	u.attempt = a
	l.attempts[tx] = a
	// The trees charge it since it was admitted. model: mutant UNKNOWN_NOT_CHARGED
	l.quotas.limits.Charge(tx, u.charge)
	a.budget = time.AfterFunc(l.config.VoteBudget, func() { l.post(func() { l.step(a, txn.BudgetSpent{}) }) })
	l.perform(a, effects)
}

// retry queues a unit again after an attempt that came to nothing. A new unit
// is stored first: its client has waited long enough for that much.
func (l *leader) retry(u *unit) {
	u.refusals++
	if u.create != nil {
		l.queue.Push(u.key)
		l.queue.Park(u.key)
		l.enqueue(u)
		return
	}
	wait := min(firstBackoff<<min(u.refusals-1, 10), lastBackoff)
	l.queue.Push(u.key)
	u.resting = true
	time.AfterFunc(wait, func() {
		l.post(func() {
			u.resting = false
			if u.waiting() && u.attempt == nil && u.ending == nil && !u.gone {
				l.queue.Push(u.key)
				delete(l.hopeless, u.shape)
			}
		})
	})
}

// shapeOf is equal for demands that fit or fail together.
func shapeOf(d place.Unit) string {
	return fmt.Sprintf("%d %+v %+v", d.Members, d.Request, d.Constraints)
}
