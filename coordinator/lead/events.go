package lead

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/lead/breaker"
	"github.com/musterd/muster/coordinator/lead/work"

	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// agentEvent handles an event of an agent. A repeated event counts as idle.
func (l *Leader) agentEvent(e grant.Event) {
	n := l.node(e.NodeID())
	if _, over := e.(grant.Disconnected); n.severed() && !over {
		return
	}
	switch e := e.(type) {
	case StreamOpened:
		l.connected(e)
	case grant.Disconnected:
		l.disconnected(e)
	case grant.Refused:
		l.refused(e)
	case grant.Registered:
		if n.incarnation == e.Incarnation && n.revision == e.Revision {
			l.idle++
			return
		}
		n.setRegistration(e.Incarnation, e.Revision)
		n.held = ""
		n.isolate("")
		l.noteNewsOf(n)
		l.onAgentReturned(n)
		l.setReady(n)
		l.learnSpec(n)
		for _, tx := range l.attemptsOn(e.Node) { // the agent refused every earlier command
			l.step(l.work.Attempts[tx], txn.Reconnected{Node: e.Node})
		}
		if l.mayLog(n) {
			l.post.Info("node_registered", "node", e.Node, "incarnation", Clip(e.Incarnation.String()), "revision", int64(e.Revision))
		}
		l.wakeFor(n)
	case grant.Replied:
		l.replied(e)
	case grant.Worked:
		l.worked(e)
	case grant.Occupied:
		l.onOccupied(n, e)
	case grant.HealthChanged:
		if maps.Equal(n.health, e.Health) && n.diskFull == e.DiskFull && n.memoryPressure == e.MemoryPressure && n.isolated == Clip(e.Quarantine) {
			l.idle++
			return
		}
		n.setHealth(e.Health, e.DiskFull, e.MemoryPressure)
		n.isolate(Clip(e.Quarantine))
		l.noteQuarantine(n)
		n.applyHealth()
		l.setReady(n)
		l.wakeFor(n)
	}
}

// onOccupied handles the list of all grants of an agent.
func (l *Leader) onOccupied(n *node, e grant.Occupied) {
	if bad := judgeOccupancy(&e.Occupancy); bad != nil {
		l.handleLie(n, bad)
		return
	}
	before, could, sick, nominated := n.view.Free, n.offers(), n.health, n.nominated()
	n.mirror.Reset(e.Occupancy.Grants, e.LedgerHash)
	grown, rejoins := n.view.Grown(), n.rejoins
	l.setOccupancy(n, e.Occupancy)
	if rejoins && n.quarantine == "" { // commands were left out meanwhile
		for _, tx := range l.attemptsOn(e.Node) {
			l.step(l.work.Attempts[tx], txn.Reconnected{Node: e.Node})
		}
	}
	switch {
	case before == nil, could != n.offers(), !maps.Equal(sick, n.health), !before.Equal(n.view.Free), !slices.Equal(nominated, n.nominated()):
		l.wakeFor(n)
	default:
		if l.idle++; !grown { // it was computed anew, to the same result
			l.state.HoldBack(&n.view)
		}
	}
}

func (l *Leader) connected(e StreamOpened) {
	n := l.node(e.Node)
	if bad := judgeOccupancy(&e.Occupancy); bad != nil {
		l.handleLie(n, bad)
		return
	}
	n.setHost(e.Host, e.Fit, l.post)
	l.declare(e.Node)
	n.connect()
	n.setRegistration(e.Incarnation, e.Revision)
	n.isolate(Clip(e.Quarantine))
	l.noteQuarantine(n)
	l.onAgentReturned(n)
	n.mirror.Reset(e.Occupancy.Grants, e.LedgerHash)
	l.setOccupancy(n, e.Occupancy)
	l.setReady(n)
	if l.mayLog(n) {
		l.post.Info("node_connected", "node", e.Node, "gpus", len(e.Host.Inventory.Devices), "grants", len(e.Occupancy.Grants), "registered", n.revision != 0)
	}
	l.learnSpec(n)
	if n.specRev != 0 && n.cordoned() != e.Occupancy.Cordoned {
		l.post.Command(e.Node, grant.Cordon{Cordoned: n.cordoned()})
	}
	l.sendKubeletPool(n)
	for _, tx := range l.attemptsOn(e.Node) {
		l.step(l.work.Attempts[tx], txn.Reconnected{Node: e.Node})
	}
	l.wakeFor(n)
}

// learnSpec reads the specification of a node that registered with another
// coordinator. A registration writes identity and specification in one Txn.
func (l *Leader) learnSpec(n *node) {
	if n.revision <= n.specRev {
		return
	}
	if !n.beginLearning() {
		return
	}
	l.readSpec(n, func() {
		if n.finishLearning() {
			l.learnSpec(n)
		}
	})
}

// setOccupancy replaces the confirmed reservations of a node by the grants that
// the agent reports. Reservations that this leader has planned and the agent
// has not seen stay.
func (l *Leader) setOccupancy(n *node, o grant.Occupancy) {
	n.setHealth(o.Health, o.DiskFull, o.MemoryPressure)
	n.setKubeletPool(o.KubeletPool)
	for _, w := range o.Work { // before the tombstones: an end without its exit codes would be final
		w.Node = n.view.ID
		l.worked(w)
	}
	present := map[resource.TxID]bool{}
	for _, g := range o.Grants {
		if g.State == grant.Tombstone {
			if n.quarantine == "" { // its record may be of before that
				l.onTombstone(n, g.Tx)
			}
			continue
		}
		present[g.Tx] = true
		members, surplus := l.membersOf(n, g.Tx, g.Members)
		n.reservationOf(g.Tx).takeOver(members, surplus, g.State)
		if n.quarantine == "" {
			l.onPromise(n, g)
		}
	}
	for tx, h := range n.reservations {
		if present[tx] {
			continue
		}
		a := l.work.Attempts[tx]
		if a == nil {
			n.removeReservation(tx)
			continue
		}
		switch m := a.Machine; {
		case !m.Has(n.view.ID): // its record has lost the members here
			n.removeReservation(tx)
		case !m.Undecided() && m.State() != txn.Aborted && !m.FreedBy(n.view.ID):
			h.setRecorded()
		default:
			// The reservation of a nomination stays until the preemption is given up,
			// and its victims may still be on the node.
			h.setPlanned(a.IsPreempting() && m.Undecided())
		}
	}
	l.retireAbsentRecords(n, present)
	n.rebuild(l.post)
	l.setReady(n)
	l.learnGrants(n, o)
}

// onTombstone handles a transaction that the agent has freed for good. An
// attempt that waits for Freed continues; where no attempt waits, the agent may
// forget the transaction.
func (l *Leader) onTombstone(n *node, tx resource.TxID) {
	if a := l.work.Attempts[tx]; a != nil && a.Machine.Has(n.view.ID) {
		a.ClearAssumedFreed(n.view.ID)
		if l.step(a, txn.Freed{Node: n.view.ID}); !a.Machine.Undecided() && a.Machine.State().IsInDoubt() { // the devices are free now
			l.partly.Note(tx, n.view.ID, l.post.Now(), l.post.Millis())
		}
		return
	}
	l.noteRid(tx, n.view.ID)
	l.retired.report(tx, n.view.ID, l.post.Now())
	l.reply(n, grant.Forget{Tx: tx})
}

func (l *Leader) disconnected(e grant.Disconnected) {
	n := l.node(e.Node)
	n.disconnect()
	l.setReady(n)
	l.noteNewsOf(n)
	if l.mayLog(n) {
		l.post.Warn("node_disconnected", "node", e.Node, "error", Clip(fmt.Sprint(e.Err)))
	}
	if e.Broken {
		l.isolateNode(n, &lie{reason: violationMessage, detail: fmt.Sprint(e.Err)})
	}
}

// replied handles the answer of an agent about one transaction.
func (l *Leader) replied(e grant.Replied) {
	n := l.node(e.Node)
	a := l.work.Attempts[e.Tx]
	e.Reasons = clipReasons(e.Reasons)
	bad := l.judgeReply(n, a, &e)
	if bad == nil || bad.reason != violationTooMany {
		n.mirror.Heard(e) // a bad answer too: the agent's ledger sum includes it
	}
	if bad != nil {
		l.dropAnswer(n, a, bad)
		return
	}
	switch e.State {
	case grant.Reserved, grant.Held, grant.Evicting, grant.Stopping, grant.Waiting:
		members, surplus := l.membersOf(n, e.Tx, e.Members)
		if n.confirm(e.Tx, members, surplus, e.State == grant.Waiting, l.post) {
			l.wakeFor(n)
		}
	case grant.No, grant.None:
		// An agent that has not registered refuses even a committed transaction.
		// The reservation of a nomination stays until the preemption is given up.
		if n.reservations[e.Tx] != nil && (a == nil || a.Machine.Undecided() && !a.IsPreempting()) {
			n.drop(e.Tx)
			l.wakeFor(n)
		}
	case grant.Tombstone:
		if n.reservations[e.Tx] == nil {
			break
		}
		if n.drop(e.Tx); a == nil || !a.Machine.Has(e.Node) {
			l.wakeFor(n)
		}
	}
	if a == nil || !a.Machine.Has(e.Node) {
		switch e.State {
		case grant.Tombstone:
			l.onTombstone(n, e.Tx)
		case grant.Reserved, grant.Waiting:
			if _, epoch, _, err := e.Tx.Attempt(); err == nil && epoch == l.post.Epoch() {
				l.releaseEndedPromise(n, e.Tx)
			}
		case grant.None, grant.No, grant.Held, grant.Evicting, grant.Stopping:
		}
		return
	}
	switch e.State {
	case grant.Reserved: // alone. model: mutant YES_FOR_WAITING
		l.step(a, txn.Voted{Node: e.Node, Vote: vote(e)})
	case grant.Waiting:
		l.step(a, txn.Waited{Node: e.Node, Vote: vote(e)})
	case grant.Held:
		l.confirmHeld(a, e.Node)
	case grant.No:
		if a.Machine.Undecided() {
			a.Fail(e.Node, breaker.Refused)
			a.NoteReasons(e.Node, e.Reasons)
			l.reply(n, grant.Resync{}) // its ledger differs from the view
		}
		l.step(a, txn.Refused{Node: e.Node, Reasons: e.Reasons})
	case grant.Tombstone:
		l.onTombstone(n, e.Tx)
	case grant.None, grant.Evicting, grant.Stopping:
	}
}

// dropAnswer drops an answer that does not fit its request. The answer counts
// as the node's No.
func (l *Leader) dropAnswer(n *node, a *work.Attempt, bad *lie) {
	id := n.view.ID
	if a != nil && a.Machine.Undecided() {
		a.Fail(id, breaker.WrongVote)
	}
	l.handleLie(n, bad)
	if a == nil || !a.Machine.Undecided() || l.work.Attempts[a.Machine.ID()] != a {
		return
	}
	l.step(a, txn.Refused{Node: id, Reasons: []resource.Reason{{Code: resource.ReasonViolation, Detail: Clip(bad.detail)}}})
}

func vote(e grant.Replied) txn.Vote {
	v := txn.Vote{Incarnation: e.Incarnation, Revision: e.Revision, Members: make([]grant.Member, len(e.Members))}
	for i, m := range e.Members {
		v.Members[i] = grant.Member{Index: m.Index, Assignment: m.Assignment}
	}
	return v
}
