package life

// State is where a unit of a job is.
type State uint8

// The states of a unit.
const (
	Waiting   State = iota // for its place
	Delayed                // until the instant of its next try
	Active                 // it has a place, or is asking for one
	Done                   // ended with success
	Broken                 // ended with the failure of a member
	Overdue                // ended because it had no place in time, or has run too long
	Abandoned              // ended by another wish: of the owner, or because the job ends
)

// Ended reports whether nothing of the unit comes any more.
func (s State) Ended() bool { return s >= Done }

// MayStart reports for each unit whether it may ask for a place: so many that wait, in
// their order, as the parallelism has left. A unit that is delayed takes no part: it
// asks again when its delay is over.
func (p Policy) MayStart(units []State) []bool {
	may := make([]bool, len(units))
	left := len(units)
	if p.Parallelism > 0 {
		left = p.Parallelism
	}
	for _, s := range units {
		if s == Active {
			left--
		}
	}
	for i, s := range units {
		if s == Waiting && left > 0 {
			may[i] = true
			left--
		}
	}
	return may
}

// Reasons of the conditions Complete and Failed of a job.
const (
	CompletionsReached   = "CompletionsReached"
	BackoffLimitExceeded = "BackoffLimitExceeded"
	MemberFailed         = "MemberFailed"
	NoMemberSucceeded    = "NoMemberSucceeded"
)

// End is what the states of a job's units mean for the job.
type End struct {
	// Stops: the units that have not ended are to end, because the job has failed.
	Stops bool
	// Over: all units have ended, and the job has ended by its work: with success or
	// not. A job that ends by the wish of its owner alone is not over in this sense.
	Over, Success bool
	// Of is the index of the unit that has decided it, and Reason the word for it; ""
	// where the unit itself has the reason.
	Of     int
	Reason string
}

// EndOf decides whether a job is over. Its units are in their order.
func (p Policy) EndOf(units []State) (e End) {
	e.Over = true
	done, broken, overdue := -1, -1, -1
	for i, s := range units {
		if !s.Ended() {
			e.Over = false
		}
		switch s {
		case Done:
			done = i
		case Broken:
			if broken < 0 {
				broken = i
			}
		case Overdue:
			if overdue < 0 {
				overdue = i
			}
		case Waiting, Delayed, Active, Abandoned:
		}
	}
	e.Over = e.Over && max(done, broken, overdue) >= 0
	switch {
	case overdue >= 0:
		e.Stops, e.Of = true, overdue
	case broken >= 0 && p.OnFailure != Ignore:
		e.Stops, e.Of, e.Reason = true, broken, BackoffLimitExceeded
		if p.OnFailure == FailJob {
			e.Reason = MemberFailed
		}
	case broken >= 0 && done < 0:
		e.Of, e.Reason = broken, NoMemberSucceeded
	default:
		e.Success, e.Of, e.Reason = true, max(done, 0), CompletionsReached
	}
	return e
}
