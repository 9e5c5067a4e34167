package coordinator

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// perform carries out a transaction's effects, in order.
func (l *leader) perform(a *attempt, effects []txn.Effect) {
	tx := a.machine.ID()
	for _, effect := range effects {
		switch e := effect.(type) {
		case txn.SendReserve:
			l.pool.Send(e.Node, agents.Reserve(tx, a.unit.record.UID, l.epoch, a.requests[e.Node], l.config.ReservationTTL))
		case txn.SendCommit:
			l.pool.Send(e.Node, agents.Commit(tx, l.epoch, e.Revision))
		case txn.SendAbort:
			l.pool.Send(e.Node, agents.Abort(tx, l.epoch))
			l.nodes[e.Node].drop(tx)
		case txn.SendRelease:
			l.pool.Send(e.Node, agents.Release(tx, l.epoch, time.Duration(e.GraceSeconds)*time.Second, e.Reason))
		case txn.SendForget:
			l.pool.Send(e.Node, agents.Forget(tx))
			l.nodes[e.Node].drop(tx)
		case txn.WriteCommit:
			a.budget.Stop()
			a.voted = time.Now()
			l.writeCommit(a)
		case txn.WriteAborted:
			a.budget.Stop()
			l.writeAborted(a)
		case txn.ReadRecord:
			l.readRecord(a)
		case txn.WriteReleasing:
			l.writeReleasing(a, e)
		case txn.WriteReleased:
			l.writeReleased(a)
		case txn.AckCommitted:
			l.committed(a, e.Revision)
		case txn.AckReleasing:
			l.releasing(a, e.Revision)
		case txn.AckReleased:
			l.released(a)
		case txn.AckAborted:
			l.aborted(a)
		}
	}
}

// committed makes a unit Running.
func (l *leader) committed(a *attempt, revision resource.Revision) {
	u := a.unit
	u.record.Phase, u.record.TxID = string(api.Running), a.machine.ID()
	if u.record.Started == "" {
		u.record.Started = now()
	}
	u.stored, u.queued, u.refusals = revision, false, 0
	if u.create != nil {
		l.metrics.latency.Observe(time.Since(u.create.started).Seconds())
		l.created(u, revision)
	}
	l.metrics.commits.Inc()
	l.metrics.reserve.Observe(a.voted.Sub(a.begun).Seconds())
	l.metrics.commit.Observe(time.Since(a.voted).Seconds())
	if u.job != nil && u.record.N == 0 {
		l.grow(u.job)
	}
	u.notify()
}

// grow lets a gang's further members be tried, now that the first run.
func (l *leader) grow(j *job) {
	for _, u := range j.units[1:] {
		if u.waiting() && u.attempt == nil && u.ending == nil {
			l.queue.Push(u.key)
		}
	}
}

// ready notes that an agent holds its members; the unit is Ready once all do.
func (l *leader) ready(a *attempt, node resource.NodeID) {
	if a.held[node] {
		return
	}
	a.held[node] = true
	if len(a.held) == len(a.machine.Nodes()) {
		a.unit.notify()
	}
}

// aborted ends an attempt that holds nothing; its unit waits anew, or ends if
// that was asked for in the meantime.
func (l *leader) aborted(a *attempt) {
	u, tx := a.unit, a.machine.ID()
	a.budget.Stop()
	delete(l.attempts, tx)
	l.discharge(a)
	for _, n := range a.machine.Nodes() {
		l.nodes[n].drop(tx)
	}
	if !a.machine.CommitInDoubt() { // model: mutant COLLECT_IN_DOUBT
		l.terminal = append(l.terminal, terminalRecord{tx, time.Now()})
	}
	u.attempt = nil
	l.metrics.aborts.Inc()
	l.log.Info("attempt_aborted", "tx", tx, "unit", u.path, "refusals", a.machine.Refusals())
	l.wake()
	if u.ending != nil {
		l.endQueued(u)
		return
	}
	l.retry(u)
}

// releasing makes a unit Terminating: the release is durable.
func (l *leader) releasing(a *attempt, revision resource.Revision) {
	u := a.unit
	u.record.Phase, u.record.Reason = string(api.Terminating), u.ending.Reason
	u.stored = revision
	u.notify()
}

// released ends a unit: its charge and its devices are free.
func (l *leader) released(a *attempt) {
	u, tx := a.unit, a.machine.ID()
	delete(l.attempts, tx)
	l.discharge(a)
	for _, n := range a.machine.Nodes() {
		l.nodes[n].drop(tx)
	}
	l.terminal = append(l.terminal, terminalRecord{tx, time.Now()})
	u.attempt = nil
	u.record.Phase, u.record.Ended, u.record.TxID = string(api.Cancelled), now(), ""
	u.stored = a.machine.Revision()
	l.finish(u)
	l.wake()
}

// readRecord reads a transaction's record.
func (l *leader) readRecord(a *attempt) {
	key := store.TxKey(a.machine.ID())
	l.read(key, func(kv store.KV, found bool, revision resource.Revision) {
		in := txn.RecordRead{State: txn.RecordAbsent, Revision: revision}
		if found {
			in.Revision = kv.ModRev
			record, err := store.Decode[store.TxRecord](key, kv.Value)
			if err != nil {
				l.log.Error("record_unreadable", "key", key, "error", err)
				return
			}
			in.State = recordState(record.State)
		}
		l.step(a, in)
	})
}

func recordState(s store.TxState) txn.RecordState {
	switch s {
	case store.TxCommitted, store.TxEvicting:
		return txn.RecordCommitted
	case store.TxReleasing:
		return txn.RecordReleasing
	case store.TxReleased:
		return txn.RecordReleased
	default:
		return txn.RecordAborted
	}
}

// now is the time as records carry it: for people, never compared.
func now() string { return time.Now().UTC().Format(time.RFC3339) }
