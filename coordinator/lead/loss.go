package lead

import (
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file lets a gang go on without members whose node is confirmed dead (ADR 110).
// One Txn takes the members out of the gang's record and makes a unit for each of them.

// memberLoss is the loss of an attempt's members on one node, while its Txn is under way.
//
// Invariant: it is fixed with the first Txn that writes it, whichever of several lands.
type memberLoss struct {
	node    resource.NodeID
	members []record.LostMember
	charges []record.Charge // of the attempt without the members
	units   []*unit         // that replace the members
}

// mayLose reports whether an attempt may go on without its members on a dead node. A gang
// whose members were not yet all held has done nothing that it could go on with.
func (l *Leader) mayLose(a *attempt, node resource.NodeID) bool {
	u := a.unit
	if u.job == nil || !u.job.mendsGang() || u.record.N != 0 || u.isSuspended() || u.leaving() || a.ready.AtMillis == 0 {
		return false
	}
	survives := slices.ContainsFunc(a.machine.Nodes(), func(id resource.NodeID) bool {
		n := l.nodes[id]
		return n == nil || n.fence == nil || !n.fence.dead
	})
	vote, _ := a.machine.Vote(node)
	return survives && opsOfLoss+opsOfAdded*len(vote.Members) <= l.post.MaxOps()
}

// opsOfLoss are the writes of a loss besides those of the new units.
const opsOfLoss = 3

// writeLoss asks for COMMITTED → COMMITTED without the members on a node, if the node
// still is dead.
func (l *Leader) writeLoss(a *attempt, node resource.NodeID) {
	refused := func() { l.step(a, txn.LossAnswered{Node: node, Outcome: txn.Conflict}) }
	n := l.nodes[node]
	if n == nil || n.fence == nil || !n.fence.dead {
		refused() // a Txn that has no answer compares with an identity of before
		return
	}
	if a.loss == nil || a.loss.node != node {
		x, status := l.memberLossOf(a, node)
		if status != nil {
			l.post.Error("loss_not_made", "unit", a.unit.path, "node", node, "error", Clip(status.Message))
			refused()
			return
		}
		a.setLoss(x)
	}
	x, tx := a.loss, a.machine.ID()
	rec := l.recordOf(a, grant.RecordCommitted)
	rec.Members = slices.DeleteFunc(rec.Members, func(m record.Placement) bool { return m.Node == node })
	rec.LostMembers, rec.Charges = append(slices.Clip(rec.LostMembers), x.members...), x.charges
	unit := a.unit.record
	unit.Lost = a.unit.lostWith(x.members)
	d := post.Decision{
		Compares: []record.Compare{
			record.ModRevIs(record.TxKey(tx), a.machine.Revision()),         // model: mutant LOSS_WITHOUT_STATE
			record.ModRevIs(record.NodeIdentityKey(node), n.fence.revision), // model: mutant LOSS_WITHOUT_FENCE_COMPARE
		},
		Ops: []record.Op{
			record.Put(record.TxKey(tx), record.MustEncode(rec)),
			record.Put(unit.Path().Key(), record.MustEncode(unit)),
			record.Delete(record.NodeTxKey(node, tx)),
		},
	}
	for _, r := range x.units {
		key := r.record.Path().Key()
		d.Compares = append(d.Compares, record.Absent(key))
		d.Ops = append(d.Ops, record.Put(key, record.MustEncode(r.record)), record.Put(r.record.Order().Key(), record.MustEncode(record.Order{UnitUID: r.record.UID})))
	}
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		answer := txn.LossAnswered{Node: node, Outcome: o, Revision: rev}
		switch {
		case o == txn.Conflict && err != nil: // refused, e.g. for want of space: an earlier Txn may still land
			answer.Outcome = txn.Unknown
			l.post.After(lastBackoff, func() { l.step(a, answer) })
		case o == txn.Conflict:
			l.recheckNodes([]resource.NodeID{node}, func() { l.step(a, answer) })
		default:
			l.step(a, answer)
		}
	}
	l.post.Submit(d)
}

// memberLossOf makes the loss of an attempt's members on a node.
func (l *Leader) memberLossOf(a *attempt, node resource.NodeID) (*memberLoss, *api.Status) {
	x := &memberLoss{node: node, charges: l.chargesWithout(a, node)}
	vote, _ := a.machine.Vote(node)
	for _, m := range vote.Members {
		x.members = append(x.members, record.LostMember{
			Placement: record.Placement{Member: m.Index, Node: node, Incarnation: vote.Incarnation, Assignment: m.Assignment}, AtMillis: l.post.Millis(),
		})
		r, status := l.replacementOf(a.unit, m.Index)
		if status != nil {
			return nil, status
		}
		x.units = append(x.units, r)
	}
	return x, nil
}

// replacementOf makes the unit that replaces a member of a gang: it has the gang's place
// in the order.
func (l *Leader) replacementOf(gang *unit, index int) (*unit, *api.Status) {
	of, j := gang.record, gang.job
	member := of.FirstMember + index
	u, status := newUnit(of.Tenant, record.Unit{
		UID: resource.UnitUID(l.post.UID("unit")), Kind: record.JobUnit, Namespace: of.Namespace, Name: of.Name, N: record.FirstReplacement + member,
		Queue: of.Queue, Priority: l.priorityOf(j), Phase: string(api.Pending), Members: 1, FirstMember: member, Created: l.post.Stamp(),
		Parent: of.UID, Replaces: true, NodeResources: of.NodeResources, Sequence: of.Sequence,
	}, j.doc.Spec.Template.Spec, j.doc, j.record.Made.User())
	if status != nil {
		return nil, status
	}
	u.setJob(j)
	u.setSequence(of.Sequence)
	return u, nil
}

// lostWith are the lost members of a unit with some more, ascending.
func (u *unit) lostWith(members []record.LostMember) []int {
	lost := slices.Clone(u.record.Lost)
	for _, m := range members {
		lost = append(lost, m.Member)
	}
	slices.Sort(lost)
	return slices.Compact(lost)
}

// chargesWithout are the charges of an attempt without its members on a node.
func (l *Leader) chargesWithout(a *attempt, node resource.NodeID) []record.Charge {
	left := map[resource.NodeID][]grant.Member{}
	var members []int
	for _, id := range a.machine.Nodes() {
		if vote, _ := a.machine.Vote(id); id != node {
			left[id] = vote.Members
			for _, m := range vote.Members {
				members = append(members, m.Index)
			}
		}
	}
	request := a.unit.ChargeOf(members)
	charges := slices.Clone(a.charges)
	for i := range charges {
		charges[i].Request = request
	}
	return sched.WithModels(charges, l.modelsOf(a.unit, left))
}

// membersLost takes over that the record goes on without the members on a node: their
// charge has ended, and other units wait for a place in their stead.
func (l *Leader) membersLost(a *attempt, e txn.AckLoss) {
	u, j, tx, x := a.unit, a.unit.job, a.machine.ID(), a.loss
	if x == nil || x.node != e.Node {
		l.post.End(post.ErrDeposed) // another leader has written it
		return
	}
	a.setLoss(nil)
	a.dropMembers(x)
	if n := l.nodes[e.Node]; n != nil {
		n.drop(tx)
	}
	l.noteLostOn(tx, e.Node)
	l.work.unmapMembers(u, x.members)
	u.keepLost(u.lostWith(x.members), e.Revision)
	l.recharge(a, x.charges)
	l.census.note(u)
	for _, r := range x.units {
		j.restoreUnit(r)
		l.add(r)
		r.enterOrder(e.Revision)
		l.offer(r)
		l.census.note(r)
		l.post.Warn("member_lost", "unit", u.path, "member", r.memberName(0), "node", e.Node, "replacement", r.path)
	}
	l.occupancy.noteUnit(u)
	l.noteChange()
	l.notify(u)
	l.notifyJob(j)
	l.endUnwanted(j)
	l.judgeWork(a)
}

// recharge charges an attempt less than before.
func (l *Leader) recharge(a *attempt, charges []record.Charge) { // model: mutant LOSS_UNCHARGED_EARLY
	u, tx := a.unit, a.machine.ID()
	l.quotas.Uncharge(tx, u.record.Tenant, l.post.Now())
	l.noteFreed(a)
	a.setCharges(charges)
	c := u.Charge
	c.Request, c.Members = charges[0].Request, int64(u.record.Held())
	l.quotas.Charge(tx, u.record.Tenant, c, l.post.Now())
	l.noteStarted(a)
	if u.enrolled {
		l.quotas.Release(u.path)
		l.removeConsumer(u)
		l.chargeCommitted(a)
		l.noteCharged(a)
	}
}

// unheardOf are the nodes, ascending, that count as freed and have not told of
// themselves: dead ones, and those whose members the record has lost.
func (l *Leader) unheardOf(a *attempt) []resource.NodeID { // model: mutant COLLECT_LOST_UNHEARD
	unheard := maps.Clone(a.assumedFreed)
	for _, m := range a.lostMembers {
		if l.lostHolds[m.Node][a.machine.ID()] {
			if unheard == nil {
				unheard = map[resource.NodeID]bool{}
			}
			unheard[m.Node] = true
		}
	}
	return slices.Sorted(maps.Keys(unheard))
}
