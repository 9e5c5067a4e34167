package life

// Exit is the end of one member's command.
type Exit struct {
	Member int // index in the unit, from 0
	// Success: the command has ended by itself with code 0.
	Success bool
	// Blameless: the end is that of the host, and no fault of the command.
	Blameless bool
}

// Verdict is what the exits of a unit's members mean for the unit.
type Verdict uint8

// The verdicts.
const (
	Runs      Verdict = iota // not over
	Succeeded                // all members have succeeded
	Failed                   // a member has failed by itself
	Lost                     // a member has ended without blame
)

// Judge returns the verdict on a unit of a number of members, and the member that the
// verdict is about: the one with the smallest index that has failed. The unit is over
// with the first failure, since the members of a gang wait for one another. Where the
// policy ignores failures the unit is over with the last exit.
//
// A failure by a command counts more than an end without blame: otherwise a command
// that fails on a host which then restarts would be tried without end.
func (p Policy) Judge(members int, exits []Exit) (v Verdict, member int) {
	if p.OnFailure == Ignore && len(exits) < members {
		return Runs, 0
	}
	failed, lost := -1, -1
	for _, e := range exits {
		switch {
		case e.Success:
		case e.Blameless && (lost < 0 || e.Member < lost):
			lost = e.Member
		case !e.Blameless && (failed < 0 || e.Member < failed):
			failed = e.Member
		}
	}
	switch {
	case failed >= 0:
		return Failed, failed
	case lost >= 0:
		return Lost, lost
	case len(exits) == members:
		return Succeeded, 0
	}
	return Runs, 0
}

// Next is what follows the failure of a unit.
type Next struct {
	// Retry is the number of the retry that follows, from 1; 0 for none.
	Retry int
	// Exhausted: no retry follows because the limit is reached.
	Exhausted bool
}

// AfterFailure decides what follows a failure, after a number of retries of all units
// of the job.
func (p Policy) AfterFailure(retries int) Next {
	switch {
	case p.OnFailure == FailJob, p.OnFailure == Ignore:
		return Next{}
	case retries >= p.BackoffLimit:
		return Next{Exhausted: true}
	}
	return Next{Retry: retries + 1}
}
