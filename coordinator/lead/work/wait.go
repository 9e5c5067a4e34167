package work

import (
	"maps"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// Wait is the memory of a unit's wait: the reasons, in the store and in the scheduler, and the
// failed attempts since the last commit.
type Wait struct {
	// Told is the stored reason of the wait.
	Told Told
	// Fate is the reason why the unit can never run, as far as known.
	Fate Fate
	// Evidence is the reason of the wait as the unit's class last reported the reason; the
	// class has newer evidence where the unit may be tried.
	Evidence *sched.Evidence
	// Refusals counts the refusals in a row, for the backoff between attempts; Rested is the
	// end of the backoff.
	Refusals int
	Rested   time.Time
	// Avoid counts, by node, the failed attempts since the last commit.
	Avoid       map[resource.NodeID]int
	Failed      Failure // the last failure since the last commit
	Attempts    int
	LastAttempt time.Time
}

// again begins another wait, with the reason of the record, nil for a unit to be tried at once.
func (w *Wait) again(waiting *record.Waiting, rev resource.Revision) {
	w.Refusals, w.Evidence, w.Told = 0, nil, Told{Waiting: waiting, Revision: rev}
}

// RestoreRefusals takes over the failed attempts of a waiting unit from a snapshot.
func (w *Wait) RestoreRefusals(times int, avoid map[resource.NodeID]int) {
	w.Refusals, w.Avoid = times, maps.Clone(avoid)
}

// BeginTry counts a try of the unit.
func (w *Wait) BeginTry(now time.Time) {
	w.Attempts++
	w.LastAttempt = now
}

// SetEvidence notes why the unit waits.
func (w *Wait) SetEvidence(e *sched.Evidence) { w.Evidence = e }

// SetTold takes over the stored reason why the unit waits.
func (w *Wait) SetTold(t Told) { w.Told = t }

// SetFate takes over whether the unit can ever run.
func (w *Wait) SetFate(f Fate) { w.Fate = f }

// BeginTold notes a write of the reason under way.
func (w *Wait) BeginTold() { w.Told.Writing = true }

// FinishTold notes the end of the write of a reason, and takes over the reason if it landed.
func (w *Wait) FinishTold(landed bool, t Told) {
	if w.Told.Writing = false; landed {
		w.Told = t
	}
}

// CountRefusal counts a failed attempt.
func (w *Wait) CountRefusal() { w.Refusals++ }

// AvoidNode counts a failed attempt on a node.
func (w *Wait) AvoidNode(id resource.NodeID) {
	if w.Avoid == nil {
		w.Avoid = map[resource.NodeID]int{}
	}
	w.Avoid[id]++
}

// NoteFailure notes how an attempt failed.
func (w *Wait) NoteFailure(f Failure) { w.Failed = f }
