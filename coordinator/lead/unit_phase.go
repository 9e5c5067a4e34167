package lead

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file changes the phase of a unit and the request to end the unit. The table of
// phases is in package work.

// move takes a step of the table of phases.
func (u *unit) move(s work.Step) {
	u.life.Take(s, u.stored != 0)
	u.queueNews.note(u.path)
}

// restore takes over that the store has the unit at rev.
func (u *unit) restore(rev resource.Revision) {
	u.stored = rev
	u.setSequence(u.record.Sequence)
	u.life.Restore(u.phase())
}

// restoreOrder takes over that the store has the order key.
func (u *unit) restoreOrder() { u.queued = true }

// restoreWish takes over that the store has the request to end the unit.
// The instant is in milliseconds, 0 for an unknown one.
func (u *unit) restoreWish(asked txn.ReleaseAsked, instant int64) {
	u.life.RestoreEnd(asked, instant)
}

// restoreAttempt takes over the attempt of a unit that is live or closing.
func (u *unit) restoreAttempt(a *attempt) { u.attempt = a }

// enterOrder takes over that the unit was stored at rev, with its place in the
// order.
func (u *unit) enterOrder(rev resource.Revision) {
	u.stored, u.queued, u.create, u.told.revision = rev, true, nil, rev
	u.move(work.StepStored)
}

// launch begins an attempt.
func (u *unit) launch(a *attempt) {
	u.attempt = a
	u.move(work.StepLaunched)
}

// dropAttempt ends an attempt that was aborted.
func (u *unit) dropAttempt() {
	u.attempt = nil
	u.move(work.StepAborted)
}

// restoreRefusals takes over the failed attempts that a snapshot has of a waiting unit.
func (u *unit) restoreRefusals(times int, avoid map[resource.NodeID]int) {
	u.refusals, u.avoid = times, maps.Clone(avoid)
}

// beginBackoff begins a backoff.
func (u *unit) beginBackoff(until time.Time) {
	u.rested = until
	u.move(work.StepRefused)
}

// endBackoff ends a backoff, unless the unit does not wait any more.
func (u *unit) endBackoff() {
	if u.life.Phase() == work.Resting {
		u.move(work.StepRested)
	}
}

// beginAdoption has the unit wait for a preemption that an earlier leader began.
func (u *unit) beginAdoption(preemption resource.TxID) {
	u.adopting = preemption
	u.move(work.StepClaimed)
}

// takeOver goes on with the preemption as the unit's attempt.
func (u *unit) takeOver(a *attempt) {
	u.adopting, u.attempt = "", a
	u.move(work.StepTakenOver)
}

// dropAdoption ends a preemption that was not taken over.
func (u *unit) dropAdoption() {
	u.adopting = ""
	u.move(work.StepAbandoned)
}

// commit makes the unit Running: its attempt was committed as tx at rev.
func (u *unit) commit(tx resource.TxID, rev resource.Revision, at string) {
	u.record.Phase, u.record.TxID, u.record.StartByMillis, u.record.RetryMillis = string(api.Running), tx, 0, 0
	if u.record.Started == "" {
		u.record.Started = at
	}
	u.stored, u.queued, u.create, u.refusals, u.avoid, u.failed = rev, false, nil, 0, nil, failure{}
	u.move(work.StepCommitted)
}

// readopt makes the unit Running: its lost record was made again at rev.
func (u *unit) readopt(a *attempt, written record.Unit, rev resource.Revision) {
	u.attempt, u.record, u.stored, u.queued = a, written, rev, false
	u.move(work.StepReadopted)
}

// receiveNotice makes the unit Terminating: its record is EVICTING at rev.
func (u *unit) receiveNotice(reason string, rev resource.Revision) {
	u.record.Phase, u.record.Reason, u.record.Requeues, u.stored = string(api.Terminating), reason, u.attempt.requeues, rev
	u.move(work.StepNoticed)
}

// release makes the unit Terminating: its record is RELEASING at rev. Unless
// that follows an eviction, the request to end the unit is durable with it.
func (u *unit) release(evicted bool, rev resource.Revision) {
	u.record.Phase, u.stored = string(api.Terminating), rev
	if !evicted {
		if !u.life.EndAsked() { // another has asked
			u.life.AskEnd(txn.ReleaseAsked{}, 0, nil)
		}
		u.life.EndAnswered(true)
		u.record.Reason = u.life.Ending().Reason
	}
	u.move(work.StepReleasing)
}

// setReleased takes over what became of the unit when its record was RELEASED at rev.
func (u *unit) setReleased(e *unitEnd, rev resource.Revision) {
	u.attempt, u.record, u.stored = nil, e.record, rev
	if !e.requeued {
		u.move(work.StepReleased)
		return
	}
	u.queued, u.refusals, u.evidence = true, 0, nil
	u.key.Priority = e.record.Priority
	u.told = told{waiting: e.waiting, revision: rev}
	u.move(work.StepRequeued)
}

// end takes over that a unit which held nothing has ended, as it was written at
// rev.
func (u *unit) end(written record.Unit, rev resource.Revision) {
	u.record, u.stored, u.queued = written, rev, false
	u.move(work.StepEnded)
}

// fail notes why the unit came to nothing.
func (u *unit) fail(why *api.Status) { u.err = why }

// remove notes that the object is gone.
func (u *unit) remove() {
	u.move(work.StepRemoved)
}

// askEnd notes that the owner asks for the unit's end. The instant is the one that
// every Txn about this end writes, in milliseconds. A command keeps every grace.
func (u *unit) askEnd(asked txn.ReleaseAsked, instant int64, asker *post.Author) {
	asked.Kept = asked.Kept && u.work() == nil
	u.life.AskEnd(asked, instant, asker)
	u.queueNews.note(u.path)
}

// dropWish notes that the store did not take the request: the owner asks again.
func (u *unit) dropWish() {
	u.life.EndAnswered(false)
	u.record.Hidden = false
}

// hide notes that the end which is asked for next is in the background.
func (u *unit) hide() { u.record.Hidden = true }

// isHidden reports whether reads show the unit no more: its end in the background
// is durable.
func (u *unit) isHidden() bool {
	return u.record.Hidden && u.life.EndDurable() || u.job != nil && u.job.isHidden()
}

// keepWish takes over that the request was stored with the unit at rev.
func (u *unit) keepWish(stored *record.Cancellation, rev resource.Revision) {
	if rev > u.stored {
		u.record.Ending, u.stored = stored, rev
	}
	u.life.EndAnswered(true)
}

// setDocument takes over the document that is to be written with the unit.
func (u *unit) setDocument(raw []byte) { u.record.Document = raw }

// setQueue takes over that the store has the unit in a queue.
func (u *unit) setQueue(name string, rev resource.Revision) {
	u.record.Queue, u.stored, u.told.revision = name, max(u.stored, rev), rev
	u.queueNews.note(u.path)
}

// keepDocument takes over that the store has the document, with the unit at rev.
func (u *unit) keepDocument(doc *api.Allocation, rev resource.Revision) {
	u.setAllocation(doc)
	u.stored = max(u.stored, rev)
}

// mayBeTried reports whether nothing else goes on with a unit that is to be
// placed, and neither its owner nor its job keeps the unit from running.
func (u *unit) mayBeTried() bool {
	return !u.life.IsBeingWritten() && !u.isSuspended() && u.hold == noHold && !u.isMending() && (u.life.Phase() == work.Creating || u.life.Phase() == work.Waiting)
}

// check verifies what holds of a unit of the leader's between two inputs.
//
// Invariant: the phase is that which clients see, but for ended, where the object
// may be gone; an attempt is there exactly while trying, live or closing, and an
// adoption exactly while adopting; what is not in the store is creating, trying
// or ended, and is not in the order; only what is Pending is in the order; a Txn
// that ends the unit runs without an attempt; a unit with an error is gone; and
// work.Life.Check holds.
func (u *unit) check() error {
	var errs []error
	holds := func(ok bool, line string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s (%s, %s, stored %d, write %d): want %s", u.path, u.life.Phase(), u.record.Phase, u.stored, u.life.Writing(), line))
		}
	}
	pending := u.life.Phase() <= work.Trying
	switch u.life.Phase() {
	case work.Live:
		holds(u.phase() == api.Running, "Running")
	case work.Closing:
		holds(u.phase() == api.Terminating, "Terminating")
	case work.Ended:
		holds(u.life.Gone() || u.phase().Ended(), "ended or gone")
	default:
		holds(u.waiting(), "Pending")
	}
	holds((u.attempt != nil) == (u.life.Phase() >= work.Trying && u.life.Phase() <= work.Closing), "an attempt while trying, live or closing")
	holds(u.attempt == nil || u.attempt.unit == u, "the unit's own attempt")
	holds((u.adopting != "") == (u.life.Phase() == work.Adopting), "an adoption while adopting")
	holds(u.life.Phase() != work.Creating || u.stored == 0, "nothing stored while creating")
	holds(u.stored != 0 || u.life.Phase() == work.Creating || u.life.Phase() == work.Trying || u.life.Phase() == work.Ended, "a stored unit")
	holds(!u.queued || u.stored != 0 && pending, "an order key of what is stored and pending")
	holds(u.create == nil || u.stored == 0, "nothing to create of what is stored")
	holds(!u.isSuspended() || u.attempt == nil || !u.attempt.mayCommit(), "no attempt of a suspended unit to go on")
	holds(u.hold != holdDependency || u.attempt == nil, "no attempt before the dependencies have come true")
	holds(u.err == nil || u.life.Gone(), "what has failed to be gone")
	switch u.life.Writing() {
	case work.WriteChange:
		holds(u.stored != 0, "a stored unit to change")
	case work.WriteFailure:
		holds((u.record.StartByMillis != 0 || u.hold == holdDependency) && u.attempt == nil, "an instant to start by or a dependency, and no attempt")
	case work.WriteEnd:
		holds(u.attempt == nil, "no attempt")
	}
	if err := u.life.Check(); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", u.path, err))
	}
	return errors.Join(errs...)
}
