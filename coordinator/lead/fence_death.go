package lead

import (
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// onNodeFenced continues an attempt that has members on fenced nodes. An
// undecided attempt is refused there. A decided attempt stays, unless its node
// is dead: then the whole unit ends as lost, and the node counts as freed, or the unit
// goes on without the members there.
func (l *Leader) onNodeFenced(a *work.Attempt) {
	for _, part := range a.Machine.Nodes() {
		n := l.nodes[part]
		if n == nil || n.fence == nil {
			continue
		}
		switch state := a.Machine.State(); {
		case state == txn.Reserving || state == txn.Displacing:
			l.step(a, txn.Refused{Node: part, Reasons: []resource.Reason{{Code: resource.ReasonUnregistered, Detail: n.fence.String(part)}}})
		case !n.fence.dead: // model: mutant END_BEFORE_FREED
		case state == txn.Committed && a.Unit.Attempt == a && !a.Unit.Life.EndAsked():
			if l.mayLose(a, part) {
				a.SetLoss(nil)
				l.step(a, txn.NodeLost{Node: part})
				return // another node of the unit comes after it
			}
			a.SetLost()
			l.evict(a.Unit, txn.EvictAsked{GraceSeconds: int64(l.rules.EvictionGrace.Seconds()), Reason: "NodeLost: " + n.fence.String(part)})
		case (state == txn.Evicting || state == txn.Ending || state == txn.Releasing) && !a.Machine.FreedAt(part):
			a.AssumeFreed(part)
			l.step(a, txn.Freed{Node: part})
		}
	}
}

// deadNodeCompares are the compares of a Txn to RELEASED: the nodes that are
// assumed freed are still dead when the Txn lands.
func (l *Leader) deadNodeCompares(a *work.Attempt) []record.Compare {
	var compares []record.Compare
	for _, id := range a.Machine.Nodes() {
		if a.AssumedFreed[id] { // model: mutant END_WITHOUT_FENCE_COMPARE
			compares = append(compares, record.ModRevIs(record.NodeIdentityKey(id), l.nodes[id].fence.revision))
		}
	}
	return compares
}

// retractAssumedFreed ends the assumption that a node has freed its grants,
// unless the node is dead. The node may have registered and been fenced anew,
// without a confirmed death.
func (l *Leader) retractAssumedFreed(n *node) {
	if n.fence != nil && n.fence.dead {
		return
	}
	for _, tx := range l.attemptsOn(n.view.ID) {
		if a := l.work.Attempts[tx]; a != nil && a.AssumedFreed[n.view.ID] { // model: mutant END_BEFORE_FREED
			a.ClearAssumedFreed(n.view.ID)
			l.partly.Retract(tx, n.view.ID, l.post.Now())
			l.step(a, txn.Returned{Node: n.view.ID})
		}
	}
}

// retireAbsentRecords handles the list of all grants of a registered agent: a
// transaction that is absent from the list holds nothing on the node.
func (l *Leader) retireAbsentRecords(n *node, present map[resource.TxID]bool) {
	if !n.registered() {
		return
	}
	for _, tx := range slices.Sorted(maps.Keys(l.lostHolds[n.view.ID])) {
		if !present[tx] {
			l.noteRid(tx, n.view.ID)
		}
	}
	for _, tx := range l.retired.waitingFor(n.view.ID) {
		if !present[tx] {
			l.retired.report(tx, n.view.ID, l.post.Now())
		}
	}
}
