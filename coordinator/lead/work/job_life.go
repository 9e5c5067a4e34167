package work

import (
	"cmp"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/life"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
)

// KeepFor is how long the job stays after its end.
func (j *Job) KeepFor() time.Duration {
	if j.Doc == nil || j.Doc.Spec.TTLSecondsAfterFinished == nil {
		return life.KeptAfterEnd
	}
	return time.Duration(*j.Doc.Spec.TTLSecondsAfterFinished) * time.Second
}

// Policy is what the decisions about a job's life rest on.
func (j *Job) Policy() life.Policy {
	p := life.Policy{BackoffLimit: life.DefaultBackoffLimit}
	if j.Doc == nil {
		return p
	}
	p.OnFailure = life.OnFailure(j.Doc.Spec.OnMemberFailure)
	if b := j.Doc.Spec.BackoffLimit; b != nil {
		p.BackoffLimit = int(*b)
	}
	if !j.Gang {
		p.Parallelism = j.Doc.AtOnce()
	}
	return p
}

// States are the states of a job's units, in their order.
func (j *Job) States() []life.State {
	states := make([]life.State, len(j.Units))
	for i, u := range j.Units {
		states[i] = u.state()
	}
	return states
}

// state is where a unit of a job is.
func (u *Unit) state() life.State {
	switch phase := u.Phase(); {
	case phase == api.Succeeded:
		return life.Done
	case phase == api.Failed && u.Record.EndedBy() != "":
		return life.Overdue
	case phase == api.Failed && u.Record.Started != "":
		return life.Broken
	case phase.Ended():
		return life.Abandoned
	case u.Attempt != nil || u.Adopting != "":
		return life.Active
	case u.Hold == HoldDelay:
		return life.Delayed
	}
	return life.Waiting
}

// UntilRetry is the time that a unit whose member has failed still waits before its next
// try; 0 or less where the unit may be tried.
func (u *Unit) UntilRetry(now int64) time.Duration {
	return time.Duration(u.Record.RetryMillis-now) * time.Millisecond
}

// Retries is how many retries of its backoffLimit a job has used, with those whose units
// still hold something.
func (j *Job) Retries() (n int) {
	for _, u := range j.Units {
		n += u.Record.Retries
		if a := u.Attempt; a != nil && a.Outcome != nil && a.Outcome.Retry > 0 {
			n++
		}
	}
	return n
}

// RetryOf is why a unit waits that has failed.
func (u *Unit) RetryOf() record.Waiting {
	return shown.RestartBackOff(u.Record.Failure, u.Record.Retry, u.Job.Policy().BackoffLimit, u.Record.RetryMillis)
}

// IsEnding reports whether no unit of the job is to start any more.
func (j *Job) IsEnding() bool {
	return j.Record.Cancelled != nil || j.Gang && hasWorkEnded(j.Units[0]) || j.Policy().EndOf(j.States()).Stops
}

// EndOfJob is the end of a job all of whose units have ended, where the work or the time
// of a unit has ended it: reason is a word. ok is false for other jobs.
func (j *Job) EndOfJob() (phase api.Phase, reason, message string, ok bool) {
	e := j.Policy().EndOf(j.States())
	if !e.Over {
		return "", "", "", false
	}
	of := &j.Units[e.Of].Record
	reason, message = cmp.Or(string(of.EndedBy()), e.Reason), of.Reason
	if e.Success {
		return api.Succeeded, reason, message, true
	}
	return api.Failed, reason, message, true
}
