package lead

import (
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/txn"
)

// This file keeps suspended units from running. The wish stands in the document of
// the allocation or the job, so every leader finds it (ADR 38). A suspended unit is
// held in the order: it has its place and is not tried.

// suspendedReason is the reason of the notice to a unit that its owner suspends.
const suspendedReason = "Suspended: its owner has set spec.suspend; it waits again once it has stopped"

// stopSuspended gives up the attempt of a suspended unit, or gives notice to the unit
// if the attempt is committed. It follows every step of an attempt and every change of
// the wish. A commit that is on its way gets its notice when it has landed.
func (l *Leader) stopSuspended(a *work.Attempt) {
	u := a.Unit
	if u.Attempt != a || u.Life.EndAsked() || !u.IsSuspended() || !a.MayCommit() {
		return
	}
	if a.Machine.Undecided() {
		l.step(a, txn.BudgetSpent{})
		return
	}
	reason := suspendedReason
	if u.Job != nil && u.Job.Record.Suspended != "" {
		reason = "Suspended: " + u.Job.Record.Suspended + "; it waits again once it has stopped"
	}
	l.evict(u, txn.EvictAsked{GraceSeconds: l.graceSeconds(), Reason: reason})
}

// takeWish follows a change of the document of a unit: the unit is held, or may be
// tried again.
func (l *Leader) takeWish(u *work.Unit) {
	if u.IsSuspended() {
		u.Wait.SetEvidence(nil)
	}
	switch {
	case u.Attempt != nil:
		l.stopSuspended(u.Attempt)
	case !u.Life.EndAsked():
		l.offer(u)
	}
	l.noteWaiting(u)
	l.notify(u)
}

// goOn goes on with a unit once the Txn of a change has its answer: the end of the unit
// may have been asked for in the meantime.
func (l *Leader) goOn(u *work.Unit) {
	if !u.Life.Gone() && u.Life.EndAsked() && u.Attempt == nil {
		l.endQueued(u)
		return
	}
	l.takeWish(u)
}
