package lead

import (
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// perform carries out a transaction's effects, in order.
func (l *Leader) perform(a *attempt, effects []txn.Effect) {
	tx := a.machine.ID()
	for _, effect := range effects {
		switch e := effect.(type) {
		case txn.SendReserve:
			l.send(e.Node, l.reservation(a, e.Node))
		case txn.SendCommit:
			l.send(e.Node, grant.Commit{Tx: tx, Epoch: l.post.Epoch(), Revision: e.Revision})
		case txn.SendAbort:
			l.send(e.Node, grant.Abort{Tx: tx, Epoch: l.post.Epoch()})
			l.nodes[e.Node].drop(tx)
		case txn.SendEvict:
			l.send(e.Node, grant.Evict{Tx: tx, Epoch: l.post.Epoch(), Grace: time.Duration(e.GraceSeconds) * time.Second, By: a.by})
		case txn.SendRelease:
			l.send(e.Node, grant.Release{Tx: tx, Epoch: l.post.Epoch(), Grace: time.Duration(e.GraceSeconds) * time.Second, Reason: e.Reason})
		case txn.SendForget:
			l.send(e.Node, grant.Forget{Tx: tx})
			l.nodes[e.Node].drop(tx)
		case txn.WriteEvictions:
			l.post.Cancel(a.budget)
			if a.company != nil {
				l.evictTogether(a.company)
			} else {
				l.writeEvictions(a)
			}
		case txn.WriteCommit:
			l.post.Cancel(a.budget)
			a.setVoted(l.post.Now())
			if a.company != nil {
				l.commitTogether(a.company)
			} else {
				l.writeCommit(a)
			}
		case txn.WriteAborted:
			l.post.Cancel(a.budget)
			l.writeAborted(a)
		case txn.ReadRecord:
			l.readRecord(a)
		case txn.WriteLoss:
			l.writeLoss(a, e.Node)
		case txn.WriteEvicting:
			l.writeEvicting(a, e)
		case txn.WriteReleasing:
			l.writeReleasing(a, e)
		case txn.WriteReleased:
			l.writeReleased(a)
		case txn.AckCommitted:
			l.committed(a, e.Revision)
		case txn.AckLoss:
			l.membersLost(a, e)
		case txn.AckEvictions:
			l.victimsNoticed(a, e.Revision)
		case txn.AckEvicting:
			l.underNotice(a, e)
		case txn.AckFreed:
			if p := l.work.attempts[a.machine.By()]; p != nil {
				for _, mate := range p.mates() {
					l.noteWaiting(mate.unit)
					l.step(mate, txn.VictimFreed{Tx: tx})
				}
			}
		case txn.AckReleasing:
			l.releasing(a, e)
		case txn.AckReleased:
			l.released(a)
		case txn.AckAborted:
			l.aborted(a)
		}
	}
	l.endCompany(a)
	if s := a.machine.State(); s == txn.Evicting || s == txn.Ending || s == txn.Releasing {
		for _, id := range a.machine.Nodes() {
			if a.machine.FreedBy(id) {
				l.partly.Note(tx, id, l.post.Now(), l.post.Millis())
			}
		}
	}
	l.onNodeFenced(a)
	l.stopSuspended(a)
	l.occupancy.noteUnit(a.unit)
}

// reservation asks a node for an attempt's members there.
func (l *Leader) reservation(a *attempt, node resource.NodeID) grant.Command {
	u := a.unit
	ttl := l.rules.ReservationTTL
	if a.isPreempting() {
		ttl = l.rules.EvictionGrace + waitingTTL
	}
	return grant.Reserve{
		Tx: a.machine.ID(), Unit: u.record.UID, Name: u.path, Tenant: u.record.Tenant, Epoch: l.post.Epoch(), Members: a.requests[node], TTL: ttl,
		After: a.machine.Victims(), UnitMembers: u.record.Members,
		Registered: l.nodes[node].revision,
	}
}

// committed makes a unit Running.
func (l *Leader) committed(a *attempt, revision resource.Revision) {
	u := a.unit
	l.account.Committed(a.machine.ID(), revision)
	l.closeBreakers(a)
	l.endVictims(a, revision)
	a.setCommitted(revision)
	l.noteSeats(a)
	create := u.create
	u.commit(a.machine.ID(), revision, a.started)
	l.census.note(u)
	if create != nil {
		l.post.Measure(post.MetricLatency, l.post.Now().Sub(create.started).Seconds())
		l.activity.addLatency(l.post.Now().Sub(create.started))
		l.created(u, revision)
	}
	if accepted, err := time.Parse(time.RFC3339, u.record.Created); err == nil {
		l.post.Measure(post.MetricWait, max(0, l.post.Now().Sub(accepted).Seconds()))
		l.activity.addWait(u.record.Queue, l.post.Now().Sub(accepted))
	}
	l.post.Count(post.MetricCommits, "")
	l.activity.addCommit(l.post.Now(), u.record.Members)
	l.post.Measure(post.MetricReserve, a.voted.Sub(a.begun).Seconds())
	l.post.Measure(post.MetricCommit, l.post.Now().Sub(a.voted).Seconds())
	l.growWith(u)
	l.notify(u)
}

// growWith lets the units be tried that wait for a unit which runs now.
func (l *Leader) growWith(u *unit) {
	if u.job != nil && u.record.N == 0 {
		l.grow(u.job)
	}
	if g := u.gang(); g != nil {
		l.occupancy.noteUnit(g)
		if u.rank() == 0 {
			l.startGang(g)
		}
	}
	if u.group != nil {
		l.offerGrowth(u.group)
	}
}

// grow lets a gang's further members be tried, now that the first run.
func (l *Leader) grow(j *job) {
	for _, u := range j.units[1:] {
		if u.waiting() && u.attempt == nil && !u.life.EndAsked() {
			l.offer(u)
		}
	}
	l.noteAdded(j)
}

// aborted ends an attempt that holds nothing; its unit waits anew, or ends if
// that was asked for in the meantime.
func (l *Leader) aborted(a *attempt) {
	u, tx := a.unit, a.machine.ID()
	l.post.Cancel(a.budget)
	l.account.Aborted(tx)
	l.judgeNodes(a)
	l.deleteAttempt(tx)
	l.discharge(a)
	for _, n := range a.machine.Nodes() {
		l.nodes[n].drop(tx)
	}
	if !a.machine.CommitInDoubt() && !a.machine.EvictionsInDoubt() { // model: mutant COLLECT_IN_DOUBT
		l.retired.add(tx, nil, l.post.Now())
	} else {
		l.retired.doubt(tx)
	}
	u.dropAttempt()
	for _, v := range a.victims {
		v.setPreemptor(nil)
		l.step(v, txn.PreemptorAborted{By: tx, InDoubt: a.machine.EvictionsInDoubt()})
	}
	l.post.Count(post.MetricAborts, "")
	l.post.Info("attempt_aborted", "tx", tx, "unit", u.path, "refusals", Clip(fmt.Sprint(a.machine.Refusals())))
	l.noteChange()
	switch {
	case u.life.EndAsked():
		l.endQueued(u)
		return
	case u.stored != 0 && l.isOverdue(u):
		l.writeOverdue(u)
	default:
		l.retry(u)
	}
	l.notify(u)
}

// releasing makes a unit Terminating: the release is durable.
func (l *Leader) releasing(a *attempt, e txn.AckReleasing) {
	u := a.unit
	u.release(e.Evicted, e.Revision)
	if !e.Evicted {
		a.dropNotice()
	}
	l.notify(u)
	if u.isMended() {
		l.endReplacements(u.job)
	}
}

// released ends an attempt: its charge and its devices are free. Its unit has
// ended, or waits anew.
func (l *Leader) released(a *attempt) {
	tx := a.machine.ID()
	l.account.Ended(tx, a.unit.path, a.unit.record.Reason)
	l.deleteAttempt(tx)
	l.partly.Forget(tx)
	l.discharge(a)
	for _, n := range a.machine.Nodes() {
		l.nodes[n].drop(tx)
	}
	l.retired.add(tx, a.unheard, l.post.Now())
	l.onUnitReleased(a)
	l.noteChange()
}

// readRecord reads a transaction's record. After a commit in doubt this leader has
// written nothing else there: a record that has gone on since was written by a
// later leader, and this term is over.
func (l *Leader) readRecord(a *attempt) {
	key := record.TxKey(a.machine.ID())
	l.post.Read(key, func(kv record.KV, found bool, revision resource.Revision) {
		in := txn.RecordRead{State: grant.RecordAbsent, Revision: revision}
		if found {
			in.Revision = kv.ModRev
			rec, err := record.Decode[record.Tx](key, kv.Value)
			if err != nil {
				l.post.Error("record_unreadable", "key", key, "error", err)
				return
			}
			in.State, in.Lost = rec.State, lostNodes(&rec)
			if a.machine.Undecided() && rec.State != grant.RecordCommitted && rec.State != grant.RecordAborted {
				l.post.End(fmt.Errorf("%w: %s is %s, and a later leader has written that", post.ErrDeposed, key, rec.State))
				return
			}
			in.GraceSeconds, in.Reason = rec.GraceSeconds, rec.Reason
			if rec.State == grant.RecordEvicting {
				a.setNoticed(rec.EndingMillis)
			}
			if p := l.work.attempts[rec.By]; p != nil && p.machine.Undecided() {
				in.By = rec.By
			}
		}
		l.step(a, in)
	})
}

// step drives a transaction and carries out its effects.
func (l *Leader) step(a *attempt, in txn.Input) { l.perform(a, a.machine.Step(in)) }
