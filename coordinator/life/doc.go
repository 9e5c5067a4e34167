// Package life decides the life of a job after its members have begun (ADR 73): when a
// unit is over, whether the unit starts again after a failure and how long it waits
// before, which units may run at the same time, and when the job is over and how.
//
// The package places no members and ends no processes. It has no clock, no I/O and no
// state: a caller passes the facts and receives a decision.
package life

import "time"

// OnFailure decides how the failure of a member changes the job.
type OnFailure string

// The values of spec.onMemberFailure.
const (
	Restart OnFailure = "Restart" // the unit of the member starts again, up to the limit
	FailJob OnFailure = "FailJob" // the job fails
	Ignore  OnFailure = "Ignore"  // the other members go on
)

// The backoffLimit of a job without its own, and the bounds of the delay before a retry.
const (
	DefaultBackoffLimit = 6
	firstDelay          = 10 * time.Second
	longestDelay        = 6 * time.Minute
)

// KeptAfterEnd is how long an object stays after its end that does not say so itself.
const KeptAfterEnd = 24 * time.Hour

// Policy is the part of a job's specification that the decisions rest on.
type Policy struct {
	OnFailure OnFailure // "" is Restart
	// BackoffLimit is the greatest number of retries of the whole job, at least 0.
	BackoffLimit int
	// Parallelism is the greatest number of units that run at the same time; 0 for no
	// limit.
	Parallelism int
}

// Delay is the time that a unit waits before a retry. The first retry of a job has the
// number 1.
func Delay(retry int) time.Duration {
	delay := firstDelay
	for n := 1; n < retry && delay < longestDelay; n++ {
		delay *= 2
	}
	return min(delay, longestDelay)
}
