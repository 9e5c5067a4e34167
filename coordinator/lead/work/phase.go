package work

import (
	"slices"

	"github.com/musterd/muster/api"
)

// Phase is a phase of a unit in the leader. For each phase but Ended, clients see the phase of
// the API in the comments below.
type Phase uint8

const (
	Creating Phase = iota // not in the store; Pending
	Waiting               // for a place; Pending
	Resting               // after refusals, for the backoff to end; Pending
	Adopting              // the leader looks into a preemption by an earlier leader; Pending
	Trying                // an attempt is undecided; Pending
	Live                  // committed; Running
	Closing               // under notice, or the release is durable; Terminating
	Ended                 // without a place and without a wait; or the object is gone
	Phases
)

var phaseNames = [...]string{"creating", "waiting", "resting", "adopting", "trying", "live", "closing", "ended"}

// String returns the phase's name.
func (p Phase) String() string { return phaseNames[p] }

// Step is a change of the phase.
type Step uint8

const (
	StepStored    Step = iota // creation has landed
	StepLaunched              // an attempt begins
	StepAborted               // the attempt has left all nodes
	StepRefused               // the backoff begins
	StepRested                // the backoff ends
	StepClaimed               // an earlier leader's preemption was found
	StepTakenOver             // and is the attempt from now on
	StepAbandoned             // and was given up
	StepCommitted             // the attempt's record is COMMITTED
	StepReadopted             // the lost record was made again
	StepNoticed               // the record is EVICTING
	StepReleasing             // the record is RELEASING
	StepRequeued              // the record is RELEASED, and the unit waits again
	StepReleased              // the record is RELEASED, and the unit has ended
	StepEnded                 // ended without an attempt
	StepRemoved               // the object is gone
	Steps
)

var stepNames = [...]string{
	"stored", "launched", "aborted", "refused", "rested", "claimed", "taken over", "abandoned", "committed", "readopted", "noticed", "releasing", "requeued",
	"released", "ended", "removed",
}

// String returns the step's name.
func (s Step) String() string { return stepNames[s] }

// steps is the table of phases: for each step, the phases before and the phase after. Outside
// the store a unit is Creating in place of Waiting.
//
// A record can leave COMMITTED and EVICTING unseen where another leader has written the record:
// the leader then reads the later state at once.
var steps = [Steps]struct {
	from []Phase
	to   Phase
}{
	StepStored:    {[]Phase{Creating}, Waiting},
	StepLaunched:  {[]Phase{Creating, Waiting}, Trying},
	StepAborted:   {[]Phase{Trying}, Waiting},
	StepRefused:   {[]Phase{Waiting}, Resting},
	StepRested:    {[]Phase{Resting}, Waiting},
	StepClaimed:   {[]Phase{Waiting}, Adopting},
	StepTakenOver: {[]Phase{Adopting}, Trying},
	StepAbandoned: {[]Phase{Adopting}, Waiting},
	StepCommitted: {[]Phase{Trying}, Live},
	StepReadopted: {[]Phase{Creating, Waiting, Resting}, Live},
	StepNoticed:   {[]Phase{Trying, Live, Closing}, Closing},
	StepReleasing: {[]Phase{Trying, Live, Closing}, Closing},
	StepRequeued:  {[]Phase{Trying, Live, Closing}, Waiting},
	StepReleased:  {[]Phase{Trying, Live, Closing}, Ended},
	StepEnded:     {[]Phase{Waiting, Resting, Ended}, Ended},
	StepRemoved:   {[]Phase{Creating, Ended}, Ended},
}

// After is the phase that follows a step, and whether the table has the step in this phase.
// stored: the store has the unit.
func (p Phase) After(s Step, stored bool) (next Phase, ok bool) {
	ok = slices.Contains(steps[s].from, p)
	if next = steps[s].to; next == Waiting && !stored {
		next = Creating
	}
	return next, ok
}

// PhaseOf is the phase of a stored unit.
func PhaseOf(p api.Phase) Phase {
	switch p {
	case api.Pending:
		return Waiting
	case api.Running:
		return Live
	case api.Terminating:
		return Closing
	default:
		return Ended
	}
}
