package work

import (
	"errors"
	"fmt"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/coordinator/why"
	"github.com/musterd/muster/resource"
)

// This file changes the phase of a unit, the request to end the unit, and the stored document
// and queue of the unit. The table of phases is in phase.go.

// move takes a step of the table of phases.
func (u *Unit) move(s Step) {
	u.Life.Take(s, u.Stored != 0)
	u.QueueNews.Note(u.Path)
}

// Restore takes over a unit stored at rev.
func (u *Unit) Restore(rev resource.Revision) {
	u.Stored = rev
	u.SetSequence(u.Record.Sequence)
	u.Life.Restore(u.Phase())
}

// RestoreOrder takes over the order key from the store.
func (u *Unit) RestoreOrder() { u.Queued = true }

// RestoreEndRequest takes over a stored request to end the unit. The instant is in milliseconds, 0
// where unknown.
func (u *Unit) RestoreEndRequest(asked txn.ReleaseAsked, instant int64) {
	u.Life.RestoreEnd(asked, instant)
}

// RestoreAttempt takes over the attempt of a unit in the phase Live or Closing.
func (u *Unit) RestoreAttempt(a *Attempt) { u.Attempt = a }

// EnterOrder takes over the first write of the unit at rev, with a place in the order.
func (u *Unit) EnterOrder(rev resource.Revision) {
	u.Stored, u.Queued, u.Create = rev, true, nil
	u.Wait.Told.Revision = rev
	u.move(StepStored)
}

// Launch begins an attempt.
func (u *Unit) Launch(a *Attempt) {
	u.Attempt = a
	u.move(StepLaunched)
}

// DropAttempt ends an aborted attempt.
func (u *Unit) DropAttempt() {
	u.Attempt = nil
	u.move(StepAborted)
}

// BeginBackoff begins a backoff.
func (u *Unit) BeginBackoff(until time.Time) {
	u.Wait.Rested = until
	u.move(StepRefused)
}

// EndBackoff ends a backoff, unless the unit does not wait any more.
func (u *Unit) EndBackoff() {
	if u.Life.Phase() == Resting {
		u.move(StepRested)
	}
}

// BeginAdoption has the unit wait for a preemption begun by an earlier leader.
func (u *Unit) BeginAdoption(preemption resource.TxID) {
	u.Adopting = preemption
	u.move(StepClaimed)
}

// TakeOver goes on with the preemption as the unit's attempt.
func (u *Unit) TakeOver(a *Attempt) {
	u.Adopting, u.Attempt = "", a
	u.move(StepTakenOver)
}

// DropAdoption ends a preemption not taken over.
func (u *Unit) DropAdoption() {
	u.Adopting = ""
	u.move(StepAbandoned)
}

// Commit makes the unit Running: the attempt was committed as tx at rev.
func (u *Unit) Commit(tx resource.TxID, rev resource.Revision, at string) {
	u.Record.Phase, u.Record.TxID, u.Record.StartByMillis, u.Record.RetryMillis = string(api.Running), tx, 0, 0
	if u.Record.Started == "" {
		u.Record.Started = at
	}
	u.Stored, u.Queued, u.Create = rev, false, nil
	u.Wait.Refusals, u.Wait.Avoid, u.Wait.Failed = 0, nil, Failure{}
	u.move(StepCommitted)
}

// Readopt makes the unit Running: the lost record was made again at rev.
func (u *Unit) Readopt(a *Attempt, written record.Unit, rev resource.Revision) {
	u.Attempt, u.Record, u.Stored, u.Queued = a, written, rev, false
	u.move(StepReadopted)
}

// ReceiveNotice makes the unit Terminating: the record is EVICTING at rev.
func (u *Unit) ReceiveNotice(reason string, rev resource.Revision) {
	u.Record.Phase, u.Record.Reason, u.Record.Requeues, u.Stored = string(api.Terminating), reason, u.Attempt.Requeues, rev
	u.move(StepNoticed)
}

// Release makes the unit Terminating: the record is RELEASING at rev. Unless the unit was
// evicted, the request to end the unit is durable with the record.
func (u *Unit) Release(evicted bool, rev resource.Revision) {
	u.Record.Phase, u.Stored = string(api.Terminating), rev
	if !evicted {
		if !u.Life.EndAsked() { // another has asked
			u.Life.AskEnd(txn.ReleaseAsked{}, 0, nil)
		}
		u.Life.EndAnswered(true)
		u.Record.Reason = u.Life.Ending().Reason
	}
	u.move(StepReleasing)
}

// SetReleased takes over the outcome for the unit, whose record was RELEASED at rev.
func (u *Unit) SetReleased(e *UnitEnd, rev resource.Revision) {
	u.Attempt, u.Record, u.Stored = nil, e.Record, rev
	if !e.Requeued {
		u.move(StepReleased)
		return
	}
	u.Queued = true
	u.Key.Priority = e.Record.Priority
	u.Wait.again(e.Waiting, rev)
	u.move(StepRequeued)
}

// End takes over the end of a unit without a place, written at rev.
func (u *Unit) End(written record.Unit, rev resource.Revision) {
	u.Record, u.Stored, u.Queued = written, rev, false
	u.move(StepEnded)
}

// Fail notes the reason why the unit came to nothing.
func (u *Unit) Fail(why *api.Status) { u.Err = why }

// Remove notes the removal of the object.
func (u *Unit) Remove() {
	u.move(StepRemoved)
}

// AskEnd notes the owner's request to end the unit. The instant is in milliseconds; every Txn
// about this end writes the instant. A command keeps every grace.
func (u *Unit) AskEnd(asked txn.ReleaseAsked, instant int64, asker *post.Author) {
	asked.Kept = asked.Kept && u.Work() == nil
	u.Life.AskEnd(asked, instant, asker)
	u.QueueNews.Note(u.Path)
}

// DropEndRequest drops a request not taken by the store: the owner asks again.
func (u *Unit) DropEndRequest() {
	u.Life.EndAnswered(false)
	u.Record.Hidden = false
}

// Hide marks the next request to end the unit as an end in the background.
func (u *Unit) Hide() { u.Record.Hidden = true }

// IsHidden reports whether reads show the unit no more: the end in the background is durable.
func (u *Unit) IsHidden() bool {
	return u.Record.Hidden && u.Life.EndDurable() || u.Job != nil && u.Job.IsHidden()
}

// KeepEndRequest takes over the request, stored with the unit at rev.
func (u *Unit) KeepEndRequest(stored *record.Cancellation, rev resource.Revision) {
	if rev > u.Stored {
		u.Record.Ending, u.Stored = stored, rev
	}
	u.Life.EndAnswered(true)
}

// SetDocument takes over the document to write with the unit.
func (u *Unit) SetDocument(raw []byte) { u.Record.Document = raw }

// SetQueue takes over the unit's queue, stored at rev.
func (u *Unit) SetQueue(name string, rev resource.Revision) {
	u.Record.Queue, u.Stored = name, max(u.Stored, rev)
	u.Wait.Told.Revision = rev
	u.QueueNews.Note(u.Path)
}

// KeepDocument takes over the document, stored with the unit at rev.
func (u *Unit) KeepDocument(doc *api.Allocation, rev resource.Revision) {
	u.SetAllocation(doc)
	u.Stored = max(u.Stored, rev)
}

// Hold is the reason why a waiting unit is not tried, apart from the owner's wish.
type Hold uint8

const (
	NoHold         Hold = iota
	HoldDelay           // until the instant of the unit's next try
	HoldThrottled       // as many units of the job run as the job's parallelism allows
	HoldDependency      // a dependency of the job has not come true
)

// MayBeTried reports whether the unit is to be placed, nothing else goes on with the unit, and
// neither the owner nor the job keeps the unit from running.
func (u *Unit) MayBeTried() bool {
	return !u.Life.IsBeingWritten() && !u.IsSuspended() && u.Hold == NoHold && !u.IsMending() && (u.Life.Phase() == Creating || u.Life.Phase() == Waiting)
}

// Check verifies the invariant of a unit of the leader between two inputs.
//
// Invariant: the phase is that which clients see, but for ended, where the object
// may be gone; an attempt is there exactly while trying, live or closing, and an
// adoption exactly while adopting; what is not in the store is creating, trying
// or ended, and is not in the order; only what is Pending is in the order; a Txn
// that ends the unit runs without an attempt; a unit with an error is gone; and
// Life.Check holds.
func (u *Unit) Check() error {
	var errs []error
	holds := func(ok bool, line string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s (%s, %s, stored %d, write %d): want %s", u.Path, u.Life.Phase(), u.Record.Phase, u.Stored, u.Life.Writing(), line))
		}
	}
	pending := u.Life.Phase() <= Trying
	switch u.Life.Phase() {
	case Live:
		holds(u.Phase() == api.Running, "Running")
	case Closing:
		holds(u.Phase() == api.Terminating, "Terminating")
	case Ended:
		holds(u.Life.Gone() || u.Phase().Ended(), "ended or gone")
	default:
		holds(u.Waiting(), "Pending")
	}
	holds((u.Attempt != nil) == (u.Life.Phase() >= Trying && u.Life.Phase() <= Closing), "an attempt while trying, live or closing")
	holds(u.Attempt == nil || u.Attempt.Unit == u, "the unit's own attempt")
	holds((u.Adopting != "") == (u.Life.Phase() == Adopting), "an adoption while adopting")
	holds(u.Life.Phase() != Creating || u.Stored == 0, "nothing stored while creating")
	holds(u.Stored != 0 || u.Life.Phase() == Creating || u.Life.Phase() == Trying || u.Life.Phase() == Ended, "a stored unit")
	holds(!u.Queued || u.Stored != 0 && pending, "an order key of what is stored and pending")
	holds(u.Create == nil || u.Stored == 0, "nothing to create of what is stored")
	holds(!u.IsSuspended() || u.Attempt == nil || !u.Attempt.MayCommit(), "no attempt of a suspended unit to go on")
	holds(u.Hold != HoldDependency || u.Attempt == nil, "no attempt before the dependencies have come true")
	holds(u.Err == nil || u.Life.Gone(), "what has failed to be gone")
	switch u.Life.Writing() {
	case WriteChange:
		holds(u.Stored != 0, "a stored unit to change")
	case WriteFailure:
		holds((u.Record.StartByMillis != 0 || u.Hold == HoldDependency) && u.Attempt == nil, "an instant to start by or a dependency, and no attempt")
	case WriteEnd:
		holds(u.Attempt == nil, "no attempt")
	}
	if err := u.Life.Check(); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", u.Path, err))
	}
	return errors.Join(errs...)
}

// Stage is the stage of the unit in an explanation.
func (u *Unit) Stage() why.Stage {
	switch u.Life.Phase() {
	case Live:
		return why.Running
	case Closing:
		return why.Leaving
	case Ended:
		return why.Ended
	case Adopting:
		return why.Adopting
	case Resting:
		if u.IsSuspended() {
			return why.Suspended
		}
		return why.Resting
	case Trying:
		if u.Attempt.IsPreempting() {
			return why.Nominated
		}
		return why.Asking
	case Creating:
		return why.Storing
	case Waiting, Phases:
	}
	switch {
	case u.Life.IsBeingAdopted():
		return why.Adopting
	case u.IsSuspended():
		return why.Suspended
	case u.Life.IsBeingWritten():
		return why.Storing
	case u.Hold == HoldDependency:
		return why.Depending
	case u.Hold == HoldDelay:
		return why.Delayed
	case u.Hold == HoldThrottled:
		return why.Throttled
	case u.Grows():
		return why.Growing
	case u.AwaitsMembers():
		return why.Gathering
	}
	return why.Waiting
}
