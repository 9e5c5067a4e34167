package lead

import (
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// perform carries out a transaction's effects, in order.
func (l *Leader) perform(a *work.Attempt, effects []txn.Effect) {
	tx := a.Machine.ID()
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
			l.send(e.Node, grant.Evict{Tx: tx, Epoch: l.post.Epoch(), Grace: time.Duration(e.GraceSeconds) * time.Second, By: a.By})
		case txn.SendRelease:
			l.send(e.Node, grant.Release{Tx: tx, Epoch: l.post.Epoch(), Grace: time.Duration(e.GraceSeconds) * time.Second, Reason: e.Reason})
		case txn.SendForget:
			l.send(e.Node, grant.Forget{Tx: tx})
			l.nodes[e.Node].drop(tx)
		case txn.WriteEvictions:
			l.post.Cancel(a.Budget)
			if a.Company != nil {
				l.evictTogether(a.Company)
			} else {
				l.writeEvictions(a)
			}
		case txn.WriteCommit:
			l.post.Cancel(a.Budget)
			a.SetVoted(l.post.Now())
			if a.Company != nil {
				l.commitTogether(a.Company)
			} else {
				l.writeCommit(a)
			}
		case txn.WriteAborted:
			l.post.Cancel(a.Budget)
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
			if p := l.work.Attempts[a.Machine.By()]; p != nil {
				for _, mate := range p.Mates() {
					l.noteWaiting(mate.Unit)
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
	if s := a.Machine.State(); s == txn.Evicting || s == txn.Ending || s == txn.Releasing {
		for _, id := range a.Machine.Nodes() {
			if a.Machine.FreedBy(id) {
				l.partly.Note(tx, id, l.post.Now(), l.post.Millis())
			}
		}
	}
	l.onNodeFenced(a)
	l.stopSuspended(a)
	l.occupancy.noteUnit(a.Unit)
}

// reservation asks a node for an attempt's members there.
func (l *Leader) reservation(a *work.Attempt, node resource.NodeID) grant.Command {
	u := a.Unit
	ttl := l.rules.ReservationTTL
	if a.IsPreempting() {
		ttl = l.rules.EvictionGrace + waitingTTL
	}
	return grant.Reserve{
		Tx: a.Machine.ID(), Unit: u.Record.UID, Name: u.Path, Tenant: u.Record.Tenant, Epoch: l.post.Epoch(), Members: a.Requests[node], TTL: ttl,
		After: a.Machine.Victims(), UnitMembers: u.Record.Members,
		Registered: l.nodes[node].revision,
	}
}

// committed makes a unit Running.
func (l *Leader) committed(a *work.Attempt, revision resource.Revision) {
	u := a.Unit
	l.account.Committed(a.Machine.ID(), revision)
	l.closeBreakers(a)
	l.endVictims(a, revision)
	a.SetCommitted(revision)
	l.noteSeats(a)
	create := u.Create
	u.Commit(a.Machine.ID(), revision, a.Started)
	l.census.Note(u)
	if create != nil {
		l.post.Measure(post.MetricLatency, l.post.Now().Sub(create.Started).Seconds())
		l.activity.addLatency(l.post.Now().Sub(create.Started))
		l.created(u, revision)
	}
	if accepted, err := time.Parse(time.RFC3339, u.Record.Created); err == nil {
		l.post.Measure(post.MetricWait, max(0, l.post.Now().Sub(accepted).Seconds()))
		l.activity.addWait(u.Record.Queue, l.post.Now().Sub(accepted))
	}
	l.post.Count(post.MetricCommits, "")
	l.activity.addCommit(l.post.Now(), u.Record.Members)
	l.post.Measure(post.MetricReserve, a.Voted.Sub(a.Begun).Seconds())
	l.post.Measure(post.MetricCommit, l.post.Now().Sub(a.Voted).Seconds())
	l.growWith(u)
	l.notify(u)
}

// growWith lets the units be tried that wait for a unit which runs now.
func (l *Leader) growWith(u *work.Unit) {
	if u.Job != nil && u.Record.N == 0 {
		l.grow(u.Job)
	}
	if g := u.Gang(); g != nil {
		l.occupancy.noteUnit(g)
		if u.Rank() == 0 {
			l.startGang(g)
		}
	}
	if u.Group != nil {
		l.offerGrowth(u.Group)
	}
}

// grow lets a gang's further members be tried, now that the first run.
func (l *Leader) grow(j *work.Job) {
	for _, u := range j.Units[1:] {
		if u.Waiting() && u.Attempt == nil && !u.Life.EndAsked() {
			l.offer(u)
		}
	}
	l.noteAdded(j)
}

// aborted ends an attempt that holds nothing; its unit waits anew, or ends if
// that was asked for in the meantime.
func (l *Leader) aborted(a *work.Attempt) {
	u, tx := a.Unit, a.Machine.ID()
	l.post.Cancel(a.Budget)
	l.account.Aborted(tx)
	l.judgeNodes(a)
	l.deleteAttempt(tx)
	l.discharge(a)
	for _, n := range a.Machine.Nodes() {
		l.nodes[n].drop(tx)
	}
	if !a.Machine.CommitInDoubt() && !a.Machine.EvictionsInDoubt() { // model: mutant COLLECT_IN_DOUBT
		l.retired.add(tx, nil, l.post.Now())
	} else {
		l.retired.doubt(tx)
	}
	u.DropAttempt()
	for _, v := range a.Victims {
		v.SetPreemptor(nil)
		l.step(v, txn.PreemptorAborted{By: tx, InDoubt: a.Machine.EvictionsInDoubt()})
	}
	l.post.Count(post.MetricAborts, "")
	l.post.Info("attempt_aborted", "tx", tx, "unit", u.Path, "refusals", Clip(fmt.Sprint(a.Machine.Refusals())))
	l.noteChange()
	switch {
	case u.Life.EndAsked():
		l.endQueued(u)
		return
	case u.Stored != 0 && l.isOverdue(u):
		l.writeOverdue(u)
	default:
		l.retry(u)
	}
	l.notify(u)
}

// releasing makes a unit Terminating: the release is durable.
func (l *Leader) releasing(a *work.Attempt, e txn.AckReleasing) {
	u := a.Unit
	u.Release(e.Evicted, e.Revision)
	if !e.Evicted {
		a.DropNotice()
	}
	l.notify(u)
	if u.IsMended() {
		l.endReplacements(u.Job)
	}
}

// released ends an attempt: its charge and its devices are free. Its unit has
// ended, or waits anew.
func (l *Leader) released(a *work.Attempt) {
	tx := a.Machine.ID()
	l.account.Ended(tx, a.Unit.Path, a.Unit.Record.Reason)
	l.deleteAttempt(tx)
	l.partly.Forget(tx)
	l.discharge(a)
	for _, n := range a.Machine.Nodes() {
		l.nodes[n].drop(tx)
	}
	l.retired.add(tx, a.Unheard, l.post.Now())
	l.onUnitReleased(a)
	l.noteChange()
}

// readRecord reads a transaction's record. After a commit in doubt this leader has
// written nothing else there: a record that has gone on since was written by a
// later leader, and this term is over.
func (l *Leader) readRecord(a *work.Attempt) {
	key := record.TxKey(a.Machine.ID())
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
			if a.Machine.Undecided() && rec.State != grant.RecordCommitted && rec.State != grant.RecordAborted {
				l.post.End(fmt.Errorf("%w: %s is %s, and a later leader has written that", post.ErrDeposed, key, rec.State))
				return
			}
			in.GraceSeconds, in.Reason = rec.GraceSeconds, rec.Reason
			if rec.State == grant.RecordEvicting {
				a.SetNoticed(rec.EndingMillis)
			}
			if p := l.work.Attempts[rec.By]; p != nil && p.Machine.Undecided() {
				in.By = rec.By
			}
		}
		l.step(a, in)
	})
}

// step drives a transaction and carries out its effects.
func (l *Leader) step(a *work.Attempt, in txn.Input) { l.perform(a, a.Machine.Step(in)) }
