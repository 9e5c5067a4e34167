package lead

import (
	"errors"
	"fmt"

	"github.com/musterd/muster/api"
)

// unitPhase is where a unit is in its life, as the leader knows it. Each phase
// but ended is one phase that clients see: what is not yet live is Pending.
type unitPhase uint8

const (
	phaseCreating unitPhase = iota // not in the store; Pending
	phaseWaiting                   // for a place; Pending
	phaseResting                   // after refusals, for the backoff to end; Pending
	phaseAdopting                  // a preemption for it by an earlier leader is looked into; Pending
	phaseTrying                    // an attempt is undecided; Pending
	phaseLive                      // committed; Running
	phaseClosing                   // under notice, or its release is durable; Terminating
	phaseEnded                     // it holds nothing and waits for nothing; or the object is gone
	unitPhases
)

var phaseNames = [...]string{"creating", "waiting", "resting", "adopting", "trying", "live", "closing", "ended"}

// String returns the phase's name.
func (p unitPhase) String() string { return phaseNames[p] }

// unitStep is what can happen to a unit's phase.
type unitStep uint8

const (
	stepStored    unitStep = iota // creation has landed
	stepLaunched                  // an attempt begins
	stepAborted                   // the attempt holds nothing
	stepRefused                   // the backoff begins
	stepRested                    // the backoff ends
	stepClaimed                   // an earlier leader's preemption was found
	stepTakenOver                 // and is the attempt from now on
	stepAbandoned                 // and was given up
	stepCommitted                 // the attempt's record is COMMITTED
	stepReadopted                 // the lost record was made again
	stepNoticed                   // the record is EVICTING
	stepReleasing                 // the record is RELEASING
	stepRequeued                  // the record is RELEASED, and the unit waits again
	stepReleased                  // the record is RELEASED, and the unit has ended
	stepEnded                     // ended without an attempt
	stepRemoved                   // the object is gone
	unitSteps
)

var stepNames = [...]string{
	"stored", "launched", "aborted", "refused", "rested", "claimed", "taken over", "abandoned", "committed", "readopted", "noticed", "releasing", "requeued",
	"released", "ended", "removed",
}

// String returns the step's name.
func (s unitStep) String() string { return stepNames[s] }

// steps is the table of phases: for each step, the phases in which it comes and
// the phase that follows. A unit that is not in the store creates instead of
// waiting.
//
// A record can leave COMMITTED and EVICTING unseen where another has written it:
// the leader then reads the later state at once.
var steps = [unitSteps]struct {
	from []unitPhase
	to   unitPhase
}{
	stepStored:    {[]unitPhase{phaseCreating}, phaseWaiting},
	stepLaunched:  {[]unitPhase{phaseCreating, phaseWaiting}, phaseTrying},
	stepAborted:   {[]unitPhase{phaseTrying}, phaseWaiting},
	stepRefused:   {[]unitPhase{phaseWaiting}, phaseResting},
	stepRested:    {[]unitPhase{phaseResting}, phaseWaiting},
	stepClaimed:   {[]unitPhase{phaseWaiting}, phaseAdopting},
	stepTakenOver: {[]unitPhase{phaseAdopting}, phaseTrying},
	stepAbandoned: {[]unitPhase{phaseAdopting}, phaseWaiting},
	stepCommitted: {[]unitPhase{phaseTrying}, phaseLive},
	stepReadopted: {[]unitPhase{phaseCreating, phaseWaiting, phaseResting}, phaseLive},
	stepNoticed:   {[]unitPhase{phaseTrying, phaseLive, phaseClosing}, phaseClosing},
	stepReleasing: {[]unitPhase{phaseTrying, phaseLive, phaseClosing}, phaseClosing},
	stepRequeued:  {[]unitPhase{phaseTrying, phaseLive, phaseClosing}, phaseWaiting},
	stepReleased:  {[]unitPhase{phaseTrying, phaseLive, phaseClosing}, phaseEnded},
	stepEnded:     {[]unitPhase{phaseWaiting, phaseResting, phaseEnded}, phaseEnded},
	stepRemoved:   {[]unitPhase{phaseCreating, phaseEnded}, phaseEnded},
}

// after is the phase that follows a step, and whether the table has that step in
// this phase.
func (p unitPhase) after(s unitStep) (next unitPhase, ok bool) {
	for _, from := range steps[s].from {
		ok = ok || from == p
	}
	return steps[s].to, ok
}

// lifecycleOf is the phase of a unit that the store has.
func lifecycleOf(p api.Phase) unitPhase {
	switch p {
	case api.Pending:
		return phaseWaiting
	case api.Running:
		return phaseLive
	case api.Terminating:
		return phaseClosing
	default:
		return phaseEnded
	}
}

// check verifies what holds of a unit of the leader's between two inputs.
//
// Invariant: the phase is that which clients see, but for ended, where the object
// may be gone; an attempt is there exactly while trying, live or closing, and an
// adoption exactly while adopting; what is not in the store is creating, trying
// or ended, and is not in the order; only what is Pending is in the order; there
// is a request to end the unit exactly with a wish; each write is of a phase that
// allows it; what has failed is gone; and no step was missed.
func (u *unit) check() error {
	var errs []error
	holds := func(ok bool, line string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s (%s, %s, stored %d, wish %d, write %d): want %s", u.path, u.lifecycle, u.record.Phase, u.stored, u.wish, u.writing, line))
		}
	}
	pending := u.lifecycle <= phaseTrying
	switch u.lifecycle {
	case phaseLive:
		holds(u.phase() == api.Running, "Running")
	case phaseClosing:
		holds(u.phase() == api.Terminating, "Terminating")
	case phaseEnded:
		holds(u.gone || u.phase().Ended(), "ended or gone")
	default:
		holds(u.waiting(), "Pending")
	}
	holds((u.attempt != nil) == (u.lifecycle >= phaseTrying && u.lifecycle <= phaseClosing), "an attempt while trying, live or closing")
	holds(u.attempt == nil || u.attempt.unit == u, "the unit's own attempt")
	holds((u.adopting != nil) == (u.lifecycle == phaseAdopting), "an adoption while adopting")
	holds(u.lifecycle != phaseCreating || u.stored == 0, "nothing stored while creating")
	holds(u.stored != 0 || u.lifecycle == phaseCreating || u.lifecycle == phaseTrying || u.lifecycle == phaseEnded, "a stored unit")
	holds(!u.queued || u.stored != 0 && pending, "an order key of what is stored and pending")
	holds(u.create == nil || u.stored == 0, "nothing to create of what is stored")
	holds((u.ending != nil) == (u.wish != noWish), "a request exactly with a wish")
	holds(!u.gone || u.lifecycle == phaseEnded, "what is gone to have ended")
	holds(!u.isSuspended() || u.attempt == nil || !u.attempt.mayCommit(), "no attempt of a suspended unit to go on")
	holds(u.hold != holdDependency || u.attempt == nil, "no attempt before the dependencies have come true")
	holds(u.err == nil || u.gone, "what has failed to be gone")
	switch u.writing {
	case noWrite:
	case writeCreation:
		holds(u.lifecycle == phaseCreating, "creating")
	case writeAdoption:
		holds(u.lifecycle == phaseCreating || u.lifecycle == phaseWaiting || u.lifecycle == phaseResting, "what is to be adopted to wait")
	case writeWish:
		holds(u.wish != noWish, "a wish to write")
	case writeChange:
		holds(u.stored != 0, "a stored unit to change")
	case writeFailure:
		holds((u.record.StartByMillis != 0 || u.hold == holdDependency) && u.attempt == nil, "an instant to start by or a dependency, and no attempt")
	case writeEnd:
		holds(u.wish != noWish && u.attempt == nil, "a wish, and no attempt")
	}
	if u.misstep != "" {
		errs = append(errs, errors.New(u.misstep))
	}
	return errors.Join(errs...)
}
