package life

// Dependency is a condition on another job, in Slurm's words.
type Dependency string

// The values of spec.dependencies[].type.
const (
	After      Dependency = "after"      // the other job has begun to run, or has ended
	AfterOK    Dependency = "afterok"    // it has succeeded
	AfterNotOK Dependency = "afternotok" // it has ended without success
	AfterAny   Dependency = "afterany"   // it has ended
)

// Progress is how far the job is that a dependency names.
type Progress uint8

// The values of Progress. A job that its owner has cancelled has ended without success.
const (
	NotThere       Progress = iota // no such job was submitted yet
	NotBegun                       // no member has begun to run
	Begun                          // a member has begun to run
	EndedWell                      // Succeeded
	EndedOtherwise                 // Failed, Cancelled or Preempted
)

// Standing is whether a dependency has come true.
type Standing uint8

// The values of Standing. Met and Never are final.
const (
	Open  Standing = iota // it may come true
	Met                   // it has come true
	Never                 // it cannot come true any more
)

// StandingAt decides whether the dependency has come true. Words other than the four of
// this package stay open.
func (d Dependency) StandingAt(p Progress) Standing {
	switch d {
	case After:
		return metIf(p >= Begun)
	case AfterAny:
		return metIf(p >= EndedWell)
	case AfterOK:
		return metUnless(p, EndedWell, EndedOtherwise)
	case AfterNotOK:
		return metUnless(p, EndedOtherwise, EndedWell)
	}
	return Open
}

func metIf(is bool) Standing {
	if is {
		return Met
	}
	return Open
}

// metUnless is the standing of a condition that one end makes true, and the other end
// makes impossible.
func metUnless(p, met, never Progress) Standing {
	switch p {
	case met:
		return Met
	case never:
		return Never
	case NotThere, NotBegun, Begun, EndedWell, EndedOtherwise:
	}
	return Open
}
