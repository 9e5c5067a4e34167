package lead

import (
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// onNodeFenced goes on with an attempt that has members on fenced nodes. An undecided
// one cannot count on them. One that is decided stays, unless its node is dead:
// then its unit ends as lost, whole, and the node counts as freed.
func (l *Leader) onNodeFenced(a *attempt) {
	for _, part := range a.machine.Nodes() {
		n := l.nodes[part]
		if n == nil || n.fence == nil {
			continue
		}
		switch state := a.machine.State(); {
		case state == txn.Reserving || state == txn.Displacing:
			l.step(a, txn.Refused{Node: part, Reasons: []resource.Reason{{Code: resource.ReasonUnregistered, Detail: n.fence.String(part)}}})
		case !n.fence.dead: // model: mutant END_BEFORE_FREED
		case state == txn.Committed && a.unit.attempt == a && a.unit.ending == nil:
			a.setLost()
			l.evict(a.unit, txn.EvictAsked{GraceSeconds: int64(l.rules.EvictionGrace.Seconds()), Reason: "NodeLost: " + n.fence.String(part)})
		case (state == txn.Evicting || state == txn.Ending || state == txn.Releasing) && !a.machine.FreedAt(part):
			a.assumeFreed(part)
			l.step(a, txn.Freed{Node: part})
		}
	}
}

// deadNodeCompares are the compares of a Txn to RELEASED: the nodes that count as freed
// without their word are dead when it lands.
func (l *Leader) deadNodeCompares(a *attempt) []record.Compare {
	var compares []record.Compare
	for _, id := range a.machine.Nodes() {
		if a.assumedFreed[id] { // model: mutant END_WITHOUT_FENCE_COMPARE
			compares = append(compares, record.ModRevIs(record.NodeIdentityKey(id), l.nodes[id].fence.revision))
		}
	}
	return compares
}

// retractAssumedFreed takes back that a node counts as freed, unless it is dead: it may
// have registered, and been fenced anew without a word on its death.
func (l *Leader) retractAssumedFreed(n *node) {
	if n.fence != nil && n.fence.dead {
		return
	}
	for _, tx := range l.attemptsOn(n.view.ID) {
		if a := l.attempts[tx]; a != nil && a.assumedFreed[n.view.ID] { // model: mutant END_BEFORE_FREED
			a.clearAssumedFreed(n.view.ID)
			l.step(a, txn.Returned{Node: n.view.ID})
		}
	}
}

// retireAbsentRecords takes everything that a registered agent holds: of what is not
// in it the node is rid.
func (l *Leader) retireAbsentRecords(n *node, present map[resource.TxID]bool) {
	if !n.registered() {
		return
	}
	for _, tx := range l.retired.waitingFor(n.view.ID) {
		if !present[tx] {
			l.retired.report(tx, n.view.ID, l.now)
		}
	}
}
