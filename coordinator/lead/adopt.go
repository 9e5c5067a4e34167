package lead

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// adoption is a preemption that an earlier leader began: its victims are
// EVICTING and it has no record. Agents that wait for the victims keep its
// place. Once all its members are found there it goes on; if they are not in
// time, it is fenced, and the victims end all the same.
type adoption struct {
	tx      resource.TxID
	unit    *work.Unit // nil: it does not wait any more
	victims []*work.Attempt
	found   map[resource.NodeID][]grant.Member
	timer   *post.Alarm
	// over: it is being fenced.
	over bool
}

// adoptFrom finds the preemptions that earlier leaders began. Those that are
// decided have come to nothing: their commit would have ended the victims.
func (l *Leader) adoptFrom(live []recovered, decided map[resource.TxID]bool) {
	l.adoptions = map[resource.TxID]*adoption{}
	for i := range live {
		a := live[i].attempt
		by := a.Machine.By()
		switch {
		case by == "":
		case decided[by]:
			live[i].effects = append(live[i].effects, a.Machine.Step(txn.PreemptorAborted{By: by})...)
		case l.adoptions[by] == nil:
			l.adoptions[by] = &adoption{tx: by, unit: l.waiterOf(by), found: map[resource.NodeID][]grant.Member{}}
			fallthrough
		default:
			l.adoptions[by].victims = append(l.adoptions[by].victims, a)
		}
	}
	for _, tx := range slices.Sorted(maps.Keys(l.adoptions)) {
		d := l.adoptions[tx]
		slices.SortFunc(d.victims, work.ByPath)
		if d.unit != nil {
			d.unit.BeginAdoption(d.tx)
		}
	}
}

// waiterOf is the unit for which a transaction was begun, if it still waits.
func (l *Leader) waiterOf(tx resource.TxID) *work.Unit {
	uid, _, _, err := tx.Attempt()
	if err != nil {
		return nil
	}
	for _, u := range l.work.Units {
		if u.Record.UID == uid && u.Waiting() && u.Attempt == nil {
			if u.Gathers() {
				return nil // its group is placed anew as one
			}
			return u
		}
	}
	return nil
}

// awaitAdoptions begins to wait for agents that keep the places.
func (l *Leader) awaitAdoptions() {
	for _, tx := range slices.Sorted(maps.Keys(l.adoptions)) {
		d := l.adoptions[tx]
		if d.unit == nil || l.isOnHold(d.unit) {
			l.abandon(d)
			continue
		}
		d.timer = l.post.After(2*l.rules.VoteBudget, func() { l.abandon(d) })
	}
}

// onPromise handles a promise of an agent to a transaction that this leader
// does not drive. The promise belongs to an adoption, or to an attempt without
// a driver, which is fenced. (Agents resolve RESERVED grants by themselves and
// leave WAITING grants to the new leader.) An attempt of this epoch has ended.
func (l *Leader) onPromise(n *node, g grant.Grant) {
	if g.State != grant.Waiting && g.State != grant.Reserved || g.Epoch > l.post.Epoch() || l.work.Attempts[g.Tx] != nil {
		return
	}
	if g.Epoch == l.post.Epoch() {
		l.releaseEndedPromise(n, g.Tx)
		return
	}
	if d := l.adoptions[g.Tx]; d != nil {
		if !d.over {
			d.found[n.view.ID] = g.Members
			l.adopt(d)
		}
		return
	}
	if g.Origin != "" || !n.ended.Take(l.post.Now(), fenceRate) {
		return // its agent gives it up when its patience ends
	}
	if _, _, _, err := g.Tx.Attempt(); err != nil {
		return // no leader's
	}
	d := &adoption{tx: g.Tx}
	l.adoptions[g.Tx] = d
	l.abandon(d)
}

// releaseEndedPromise ends a promise whose attempt of this epoch has ended. An
// attempt stays in attempts until its record is terminal, and no workload
// starts on a promise. The agent missed the end, or accepted a Reserve late,
// and would refuse the devices to other transactions until its patience ends.
// The devices are free once the agent reports that.
func (l *Leader) releaseEndedPromise(n *node, tx resource.TxID) {
	l.reply(n, grant.Abort{Tx: tx, Epoch: l.post.Epoch()})
}

// adopt continues a preemption whose members are all found.
func (l *Leader) adopt(d *adoption) {
	u := d.unit
	members := 0
	for _, m := range d.found {
		members += len(m)
	}
	if u == nil || members < u.Record.Members || u.Life.EndAsked() || u.Life.IsBeingWritten() {
		return
	}
	l.chooseForm(u, l.formHeld(u, d.found))
	if id, err := l.placesOf(d); err != nil {
		l.post.Warn("preemption_not_adopted", "tx", d.tx, "unit", u.Path, "node", id, "error", Clip(err.Error()))
		l.abandon(d)
		return
	}
	claims := false
	models := l.modelsOf(u, d.found)
	switch short := l.admitOn(u, models); {
	case short == nil:
	case short.Limits != nil, short.Absent != nil: // lowered or gone meanwhile
		l.abandon(d)
		return
	default:
		claims = true
		l.chargeNominated(u)
	}
	// Nobody else takes the place of its equals.
	claims = claims || slices.ContainsFunc(d.victims, func(v *work.Attempt) bool { return v.Unit.Record.Priority >= u.Record.Priority })
	a := work.NewAttempt(u, sched.WithModels(u.Charges, models), l.post.Now())
	a.TakePreemption(d.victims, claims)
	var nodes []resource.NodeID
	for _, node := range slices.Sorted(maps.Keys(d.found)) {
		nodes = append(nodes, node)
		for _, m := range d.found[node] {
			a.AddRequest(node, grant.MemberRequest{Index: m.Index, Request: *u.Demand.RequestOf(m.Index), PinnedGPUs: work.DevicesOf(m.Assignment)})
		}
	}
	victims := make([]resource.TxID, len(a.Victims))
	for i, v := range a.Victims {
		victims[i] = v.Machine.ID()
	}
	l.post.Cancel(d.timer)
	delete(l.adoptions, d.tx)
	l.accountFor(a, d.tx, nil, true)
	l.room.Remove(u.Key)
	machine, effects := txn.Adopt(d.tx, nodes, victims...)
	a.SetMachine(machine)
	for _, v := range a.Victims {
		v.SetPreemptor(a)
		l.occupancy.noteUnit(v.Unit)
	}
	u.TakeOver(a)
	l.insertAttempt(d.tx, a)
	l.chargeAttempt(d.tx, a)
	l.setBudget(a, l.rules.EvictionGrace+victimPatience)
	l.post.Info("preemption_adopted", "tx", d.tx, "unit", u.Path, "victims", a.VictimPaths())
	l.perform(a, effects)
	for _, v := range a.Victims {
		if v.Machine.Freed() {
			l.step(a, txn.VictimFreed{Tx: v.Machine.ID()})
		}
	}
}

// placesOf reports a node that keeps other amounts for an adoption than the
// unit asks for, and those amounts. The node is not isolated, because another
// leader sent the request.
func (l *Leader) placesOf(d *adoption) (resource.NodeID, error) {
	seen := make([]bool, d.unit.Record.Members)
	for _, id := range slices.Sorted(maps.Keys(d.found)) {
		host := l.nodes[id].view.Host
		assignments := make([]resource.Assignment, 0, len(d.found[id]))
		for _, m := range d.found[id] {
			if m.Index < 0 || m.Index >= len(seen) || seen[m.Index] {
				return id, fmt.Errorf("member %d is not one of %d, or is kept twice", m.Index, len(seen))
			}
			seen[m.Index] = true
			if err := host.Satisfies(*d.unit.Demand.RequestOf(m.Index), m.Assignment); err != nil {
				return id, fmt.Errorf("member %d: %w", m.Index, err)
			}
			assignments = append(assignments, m.Assignment)
		}
		if err := host.Disjoint(assignments...); err != nil {
			return id, err
		}
	}
	return "", nil
}

// abandon fences a transaction that no leader drives. Then the agents free its
// promises, and its victims end without a preemptor. An adoption that is over stays so; nil
// is one.
func (l *Leader) abandon(d *adoption) {
	if d == nil || d.over || l.adoptions[d.tx] != d {
		return
	}
	d.over = true
	uid, _, _, _ := d.tx.Attempt() // agents may hold anything
	key := record.TxKey(d.tx)
	rec := record.Tx{State: grant.RecordAborted, Epoch: l.post.Epoch(), UnitUID: uid, Reason: "not taken over by the new leader", Ended: l.post.Stamp()}
	if len(d.victims) > 0 { // of a restored store: it may have been committed, and be held where nobody is heard
		rec.Unheard = l.unreached()
	}
	l.post.SettleFence(post.Decision{
		Compares: []record.Compare{record.Absent(key)}, Ops: []record.Op{record.Put(key, record.MustEncode(rec))},
		Done: func(o txn.Outcome, _ resource.Revision, _ error) { l.abandoned(d, o == txn.Landed, rec.Unheard) },
	}, key)
}

// unreached are the nodes whose agents are not heard, in order.
func (l *Leader) unreached() []resource.NodeID {
	var ids []resource.NodeID
	for _, at := range l.state.Nodes() {
		if n := l.nodes[at.ID]; n.specRev != 0 && !n.connected {
			ids = append(ids, at.ID)
		}
	}
	return ids
}

func (l *Leader) abandoned(d *adoption, mine bool, unheard []resource.NodeID) {
	delete(l.adoptions, d.tx)
	if mine {
		l.retired.add(d.tx, unheard, l.post.Now())
	}
	for _, v := range l.state.Nodes() {
		if n := l.nodes[v.ID]; n.reservations[d.tx] != nil {
			l.send(v.ID, grant.Abort{Tx: d.tx, Epoch: l.post.Epoch()})
			n.drop(d.tx)
		}
	}
	for _, v := range d.victims {
		l.step(v, txn.PreemptorAborted{By: d.tx})
	}
	l.post.Info("preemption_abandoned", "tx", d.tx, "victims", len(d.victims))
	l.wakeAll()
	if u := d.unit; u != nil {
		u.DropAdoption()
		if u.Life.EndAsked() {
			l.endQueued(u)
			return
		}
		l.offer(u)
	}
}
