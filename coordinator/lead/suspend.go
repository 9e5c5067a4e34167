package lead

import "github.com/musterd/muster/coordinator/txn"

// This file keeps suspended units from running. The wish stands in the document of
// the allocation or the job, so every leader finds it (ADR 38). A suspended unit is
// held in the order: it has its place and is not tried.

// suspendedReason is the reason of the notice to a unit that its owner suspends.
const suspendedReason = "Suspended: its owner has set spec.suspend; it waits again once it has stopped"

// stopSuspended gives up the attempt of a suspended unit, or gives notice to the unit
// if the attempt is committed. It follows every step of an attempt and every change of
// the wish. A commit that is on its way gets its notice when it has landed.
func (l *Leader) stopSuspended(a *attempt) {
	u := a.unit
	if u.attempt != a || u.life.EndAsked() || !u.isSuspended() || !a.mayCommit() {
		return
	}
	if a.machine.Undecided() {
		l.step(a, txn.BudgetSpent{})
		return
	}
	reason := suspendedReason
	if u.job != nil && u.job.record.Suspended != "" {
		reason = "Suspended: " + u.job.record.Suspended + "; it waits again once it has stopped"
	}
	l.evict(u, txn.EvictAsked{GraceSeconds: l.graceSeconds(), Reason: reason})
}

// takeWish follows a change of the document of a unit: the unit is held, or may be
// tried again.
func (l *Leader) takeWish(u *unit) {
	if u.isSuspended() {
		u.setEvidence(nil)
	}
	switch {
	case u.attempt != nil:
		l.stopSuspended(u.attempt)
	case !u.life.EndAsked():
		l.offer(u)
	}
	l.noteWaiting(u)
	l.notify(u)
}

// goOn goes on with a unit once the Txn of a change has its answer: the end of the unit
// may have been asked for in the meantime.
func (l *Leader) goOn(u *unit) {
	if !u.life.Gone() && u.life.EndAsked() && u.attempt == nil {
		l.endQueued(u)
		return
	}
	l.takeWish(u)
}
