package lead

import (
	"fmt"
	"maps"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file changes the phase of a unit, its wish and its write. The table of
// phases is in unit_table.go.

// wish is how far the request to end a unit is.
type wish uint8

const (
	noWish     wish = iota
	endAsked        // by the owner; the leader alone knows
	endDurable      // in the store
)

// unitWrite is a Txn about a unit that is not its attempt's.
type unitWrite uint8

const (
	noWrite       unitWrite = iota
	writeCreation           // stores the unit, with its place in the order
	writeAdoption           // makes the unit and its lost record again
	writeWish               // stores the wish with the unit of a live attempt
	writeEnd                // ends a unit that holds nothing
	writeFailure            // ends a unit that holds nothing as Failed
	writeChange             // changes the document, or the queue
)

// move takes a step of the table. A step that the table does not have is noted
// for check.
func (u *unit) move(s unitStep) {
	next, ok := u.lifecycle.after(s)
	if !ok && u.misstep == "" {
		u.misstep = fmt.Sprintf("%s is %s and cannot be %s", u.path, u.lifecycle, s)
	}
	if next == phaseWaiting && u.stored == 0 {
		next = phaseCreating
	}
	u.lifecycle = next
	u.queueNews.note(u.path)
}

// restore takes over that the store has the unit at rev.
func (u *unit) restore(rev resource.Revision) {
	u.stored = rev
	u.setSequence(u.record.Sequence)
	u.lifecycle = lifecycleOf(u.phase())
}

// pretendStored makes a unit that is submitted for a dry run wait as if it were
// stored.
func (u *unit) pretendStored() { u.lifecycle = phaseWaiting }

// restoreOrder takes over that the store has the order key.
func (u *unit) restoreOrder() { u.queued = true }

// restoreWish takes over that the store has the request to end the unit.
// The instant is in milliseconds, 0 for an unknown one.
func (u *unit) restoreWish(asked txn.ReleaseAsked, instant int64) {
	u.wish, u.ending, u.asked = endDurable, &asked, instant
}

// restoreAttempt takes over the attempt of a unit that is live or closing.
func (u *unit) restoreAttempt(a *attempt) { u.attempt = a }

// enterOrder takes over that the unit was stored at rev, with its place in the
// order.
func (u *unit) enterOrder(rev resource.Revision) {
	u.stored, u.queued, u.create = rev, true, nil
	u.told.revision = rev
	u.move(stepStored)
}

// launch begins an attempt.
func (u *unit) launch(a *attempt) {
	u.attempt = a
	u.move(stepLaunched)
}

// dropAttempt ends an attempt that was aborted.
func (u *unit) dropAttempt() {
	u.attempt = nil
	u.move(stepAborted)
}

// restoreRefusals takes over the failed attempts that a snapshot has of a waiting unit.
func (u *unit) restoreRefusals(r RefusedUnit) { u.refusals, u.avoid = r.Times, maps.Clone(r.Avoid) }

// beginBackoff begins a backoff.
func (u *unit) beginBackoff(until time.Time) {
	u.rested = until
	u.move(stepRefused)
}

// endBackoff ends a backoff, unless the unit does not wait any more.
func (u *unit) endBackoff() {
	if u.lifecycle == phaseResting {
		u.move(stepRested)
	}
}

// beginAdoption has the unit wait for a preemption that an earlier leader began.
func (u *unit) beginAdoption(d *adoption) {
	u.adopting = d
	u.move(stepClaimed)
}

// takeOver goes on with the preemption as the unit's attempt.
func (u *unit) takeOver(a *attempt) {
	u.adopting, u.attempt = nil, a
	u.move(stepTakenOver)
}

// dropAdoption ends a preemption that was not taken over.
func (u *unit) dropAdoption() {
	u.adopting = nil
	u.move(stepAbandoned)
}

// commit makes the unit Running: its attempt was committed as tx at rev.
func (u *unit) commit(tx resource.TxID, rev resource.Revision, at string) {
	u.record.Phase, u.record.TxID, u.record.StartByMillis, u.record.RetryMillis = string(api.Running), tx, 0, 0
	if u.record.Started == "" {
		u.record.Started = at
	}
	u.stored, u.queued, u.create, u.refusals, u.avoid, u.failed = rev, false, nil, 0, nil, failure{}
	u.move(stepCommitted)
}

// readopt makes the unit Running: its lost record was made again at rev.
func (u *unit) readopt(a *attempt, written record.Unit, rev resource.Revision) {
	u.attempt, u.record, u.stored, u.queued = a, written, rev, false
	u.move(stepReadopted)
}

// receiveNotice makes the unit Terminating: its record is EVICTING at rev.
func (u *unit) receiveNotice(reason string, rev resource.Revision) {
	u.record.Phase, u.record.Reason, u.stored = string(api.Terminating), reason, rev
	u.record.Requeues = u.attempt.requeues
	u.move(stepNoticed)
}

// release makes the unit Terminating: its record is RELEASING at rev. Unless
// that follows an eviction, the request to end the unit is durable with it.
func (u *unit) release(evicted bool, rev resource.Revision) {
	u.record.Phase, u.stored = string(api.Terminating), rev
	if !evicted {
		if u.ending == nil { // another has asked
			u.ending = &txn.ReleaseAsked{}
		}
		u.wish = endDurable
		u.record.Reason = u.ending.Reason
	}
	u.move(stepReleasing)
}

// setReleased takes over what became of the unit when its record was RELEASED at rev.
func (u *unit) setReleased(e *unitEnd, rev resource.Revision) {
	u.attempt, u.record, u.stored = nil, e.record, rev
	if !e.requeued {
		u.move(stepReleased)
		return
	}
	u.queued, u.refusals, u.evidence = true, 0, nil
	u.key.Priority = e.record.Priority
	u.told = told{waiting: e.waiting, revision: rev}
	u.move(stepRequeued)
}

// end takes over that a unit which held nothing has ended, as it was written at
// rev.
func (u *unit) end(written record.Unit, rev resource.Revision) {
	u.record, u.stored, u.queued = written, rev, false
	u.move(stepEnded)
}

// fail notes why the unit came to nothing.
func (u *unit) fail(why *api.Status) { u.err = why }

// remove notes that the object is gone.
func (u *unit) remove() {
	u.gone = true
	u.move(stepRemoved)
}

// askEnd notes that the owner asks for the unit's end. The instant is the one that
// every Txn about this end writes, in milliseconds. A command keeps every grace.
func (u *unit) askEnd(asked txn.ReleaseAsked, instant int64, asker *post.Author) {
	asked.Kept = asked.Kept && u.work() == nil
	u.asker = asker
	u.wish, u.ending, u.asked = endAsked, &asked, instant
	u.queueNews.note(u.path)
}

// dropWish notes that the store did not take the request: the owner asks again.
func (u *unit) dropWish() { u.wish, u.ending, u.asked, u.record.Hidden = noWish, nil, 0, false }

// hide notes that the end which is asked for next is in the background.
func (u *unit) hide() { u.record.Hidden = true }

// isHidden reports whether reads show the unit no more: its end in the background
// is durable.
func (u *unit) isHidden() bool {
	return u.record.Hidden && u.wish == endDurable || u.job != nil && u.job.isHidden()
}

// keepWish takes over that the request was stored with the unit at rev.
func (u *unit) keepWish(stored *record.Cancellation, rev resource.Revision) {
	if rev > u.stored {
		u.record.Ending, u.stored = stored, rev
	}
	if u.wish != noWish {
		u.wish = endDurable
	}
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

// beginWrite notes that a Txn about the unit is under way. Two can only be where
// the Txn that ends the unit follows the commit of its preemptor and the wish has
// no answer yet: then the wish is of no interest any more.
func (u *unit) beginWrite(w unitWrite) { u.writing = w }

// finishWrite notes that a Txn about the unit has its answer.
func (u *unit) finishWrite(w unitWrite) {
	if u.writing == w {
		u.writing = noWrite
	}
}

// isBeingWritten reports whether a Txn is under way that keeps the unit from
// everything else.
func (u *unit) isBeingWritten() bool { return u.writing != noWrite && u.writing != writeWish }

// isBeingAdopted reports whether the Txn that makes the unit's record again is
// under way. The unit is charged already, and has no attempt yet.
func (u *unit) isBeingAdopted() bool { return u.writing == writeAdoption }

// mayBeTried reports whether nothing else goes on with a unit that is to be
// placed, and neither its owner nor its job keeps the unit from running.
func (u *unit) mayBeTried() bool {
	return !u.isBeingWritten() && !u.isSuspended() && u.hold == noHold && !u.isMending() && (u.lifecycle == phaseCreating || u.lifecycle == phaseWaiting)
}
