package lead

import (
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file lets a gang go on without members whose node is confirmed dead (ADR 110).
// One Txn takes the members out of the gang's record and makes a unit for each of them.

// mayLose reports whether an attempt may go on without its members on a dead node. A gang
// whose members were not yet all held has done nothing that it could go on with.
func (l *Leader) mayLose(a *work.Attempt, node resource.NodeID) bool {
	u := a.Unit
	if u.Job == nil || !u.Job.MendsGang() || u.Record.N != 0 || u.IsSuspended() || u.Leaving() || a.Ready.AtMillis == 0 {
		return false
	}
	survives := slices.ContainsFunc(a.Machine.Nodes(), func(id resource.NodeID) bool {
		n := l.nodes[id]
		return n == nil || n.fence == nil || !n.fence.dead
	})
	vote, _ := a.Machine.Vote(node)
	return survives && opsOfLoss+opsOfAdded*len(vote.Members) <= l.post.MaxOps()
}

// opsOfLoss are the writes of a loss besides those of the new units.
const opsOfLoss = 3

// writeLoss asks for COMMITTED → COMMITTED without the members on a node, if the node
// still is dead.
func (l *Leader) writeLoss(a *work.Attempt, node resource.NodeID) {
	refused := func() { l.step(a, txn.LossAnswered{Node: node, Outcome: txn.Conflict}) }
	n := l.nodes[node]
	if n == nil || n.fence == nil || !n.fence.dead {
		refused() // a Txn that has no answer compares with an identity of before
		return
	}
	if a.Loss == nil || a.Loss.Node != node {
		x, status := l.memberLossOf(a, node)
		if status != nil {
			l.post.Error("loss_not_made", "unit", a.Unit.Path, "node", node, "error", Clip(status.Message))
			refused()
			return
		}
		a.SetLoss(x)
	}
	x, tx := a.Loss, a.Machine.ID()
	rec := l.recordOf(a, grant.RecordCommitted)
	rec.Members = slices.DeleteFunc(rec.Members, func(m record.Placement) bool { return m.Node == node })
	rec.LostMembers, rec.Charges = append(slices.Clip(rec.LostMembers), x.Members...), x.Charges
	unit := a.Unit.Record
	unit.Lost = a.Unit.LostWith(x.Members)
	d := post.Decision{
		Compares: []record.Compare{
			record.ModRevIs(record.TxKey(tx), a.Machine.Revision()),         // model: mutant LOSS_WITHOUT_STATE
			record.ModRevIs(record.NodeIdentityKey(node), n.fence.revision), // model: mutant LOSS_WITHOUT_FENCE_COMPARE
		},
		Ops: []record.Op{
			record.Put(record.TxKey(tx), record.MustEncode(rec)),
			record.Put(unit.Path().Key(), record.MustEncode(unit)),
			record.Delete(record.NodeTxKey(node, tx)),
		},
	}
	for _, r := range x.Units {
		key := r.Record.Path().Key()
		d.Compares = append(d.Compares, record.Absent(key))
		d.Ops = append(d.Ops, record.Put(key, record.MustEncode(r.Record)), record.Put(r.Record.Order().Key(), record.MustEncode(record.Order{UnitUID: r.Record.UID})))
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
func (l *Leader) memberLossOf(a *work.Attempt, node resource.NodeID) (*work.MemberLoss, *api.Status) {
	var members []record.LostMember
	var units []*work.Unit
	vote, _ := a.Machine.Vote(node)
	for _, m := range vote.Members {
		members = append(members, record.LostMember{
			Placement: record.Placement{Member: m.Index, Node: node, Incarnation: vote.Incarnation, Assignment: m.Assignment}, AtMillis: l.post.Millis(),
		})
		r, status := l.replacementOf(a.Unit, m.Index)
		if status != nil {
			return nil, status
		}
		units = append(units, r)
	}
	return &work.MemberLoss{Node: node, Charges: l.chargesWithout(a, node), Members: members, Units: units}, nil
}

// replacementOf makes the unit that replaces a member of a gang: it has the gang's place
// in the order.
func (l *Leader) replacementOf(gang *work.Unit, index int) (*work.Unit, *api.Status) {
	of, j := gang.Record, gang.Job
	member := of.FirstMember + index
	u, status := work.NewUnit(of.Tenant, record.Unit{
		UID: resource.UnitUID(l.post.UID("unit")), Kind: record.JobUnit, Namespace: of.Namespace, Name: of.Name, N: record.FirstReplacement + member,
		Queue: of.Queue, Priority: l.priorityOf(j), Phase: string(api.Pending), Members: 1, FirstMember: member, Created: l.post.Stamp(),
		Parent: of.UID, Replaces: true, NodeResources: of.NodeResources, Sequence: of.Sequence,
	}, j.Doc.Spec.Template.Spec, j.Doc, j.Record.Made.User())
	if status != nil {
		return nil, status
	}
	u.SetJob(j)
	u.SetSequence(of.Sequence)
	return u, nil
}

// chargesWithout are the charges of an attempt without its members on a node.
func (l *Leader) chargesWithout(a *work.Attempt, node resource.NodeID) []record.Charge {
	left := map[resource.NodeID][]grant.Member{}
	var members []int
	for _, id := range a.Machine.Nodes() {
		if vote, _ := a.Machine.Vote(id); id != node {
			left[id] = vote.Members
			for _, m := range vote.Members {
				members = append(members, m.Index)
			}
		}
	}
	request := a.Unit.ChargeOf(members)
	charges := slices.Clone(a.Charges)
	for i := range charges {
		charges[i].Request = request
	}
	return sched.WithModels(charges, l.modelsOf(a.Unit, left))
}

// membersLost takes over that the record goes on without the members on a node: their
// charge has ended, and other units wait for a place in their stead.
func (l *Leader) membersLost(a *work.Attempt, e txn.AckLoss) {
	u, j, tx, x := a.Unit, a.Unit.Job, a.Machine.ID(), a.Loss
	if x == nil || x.Node != e.Node {
		l.post.End(post.ErrDeposed) // another leader has written it
		return
	}
	a.SetLoss(nil)
	a.DropMembers(x)
	if n := l.nodes[e.Node]; n != nil {
		n.drop(tx)
	}
	l.noteLostOn(tx, e.Node)
	l.work.UnmapMembers(u, x.Members)
	u.KeepLost(u.LostWith(x.Members), e.Revision)
	l.recharge(a, x.Charges)
	l.census.Note(u)
	for _, r := range x.Units {
		j.RestoreUnit(r)
		l.add(r)
		r.EnterOrder(e.Revision)
		l.offer(r)
		l.census.Note(r)
		l.post.Warn("member_lost", "unit", u.Path, "member", r.MemberName(0), "node", e.Node, "replacement", r.Path)
	}
	l.occupancy.noteUnit(u)
	l.noteChange()
	l.notify(u)
	l.notifyJob(j)
	l.endUnwanted(j)
	l.judgeWork(a)
}

// recharge charges an attempt less than before.
func (l *Leader) recharge(a *work.Attempt, charges []record.Charge) { // model: mutant LOSS_UNCHARGED_EARLY
	u, tx := a.Unit, a.Machine.ID()
	l.quotas.Uncharge(tx, u.Record.Tenant, l.post.Now())
	l.noteFreed(a)
	a.SetCharges(charges)
	c := u.Charge
	c.Request, c.Members = charges[0].Request, int64(u.Record.Held())
	l.quotas.Charge(tx, u.Record.Tenant, c, l.post.Now())
	l.noteStarted(a)
	if u.Enrolled {
		l.quotas.Release(u.Path)
		l.removeConsumer(u)
		l.chargeCommitted(a)
		l.noteCharged(a)
	}
}

// unheardOf are the nodes, ascending, that count as freed and have not told of
// themselves: dead ones, and those whose members the record has lost.
func (l *Leader) unheardOf(a *work.Attempt) []resource.NodeID { // model: mutant COLLECT_LOST_UNHEARD
	unheard := maps.Clone(a.AssumedFreed)
	for _, m := range a.LostMembers {
		if l.lostHolds[m.Node][a.Machine.ID()] {
			if unheard == nil {
				unheard = map[resource.NodeID]bool{}
			}
			unheard[m.Node] = true
		}
	}
	return slices.Sorted(maps.Keys(unheard))
}
