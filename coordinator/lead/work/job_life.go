package work

import (
	"cmp"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/life"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
)

// KeepFor is the time for which the job stays after the end.
func (j *Job) KeepFor() time.Duration {
	if j.Doc == nil || j.Doc.Spec.TTLSecondsAfterFinished == nil {
		return life.KeptAfterEnd
	}
	return time.Duration(*j.Doc.Spec.TTLSecondsAfterFinished) * time.Second
}

// Policy is the basis of the decisions about the job's life.
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

// state is the unit's state in the life of the job.
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

// UntilRetry is the time from now to the next try of a unit with a failed member; 0 or less
// where the unit may be tried.
func (u *Unit) UntilRetry(now int64) time.Duration {
	return time.Duration(u.Record.RetryMillis-now) * time.Millisecond
}

// Retries is the number of used retries of the job's backoffLimit. A retry counts already while
// the unit still holds something.
func (j *Job) Retries() (n int) {
	for _, u := range j.Units {
		n += u.Record.Retries
		if a := u.Attempt; a != nil && a.Outcome != nil && a.Outcome.Retry > 0 {
			n++
		}
	}
	return n
}

// RetryOf is the reason why a failed unit waits.
func (u *Unit) RetryOf() record.Waiting {
	return shown.RestartBackOff(u.Record.Failure, u.Record.Retry, u.Job.Policy().BackoffLimit, u.Record.RetryMillis)
}

// IsEnding reports whether no unit of the job is to start any more.
func (j *Job) IsEnding() bool {
	return j.Record.Cancelled != nil || j.Gang && hasWorkEnded(j.Units[0]) || j.Policy().EndOf(j.States()).Stops
}

// EndOfJob is the end of a job whose units have all ended, where the work or the time of a unit
// has ended the job: reason is a word. ok is false for other jobs.
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

// WhyUnwanted is the reason to end the units of a job still going on, "" without a reason.
func (j *Job) WhyUnwanted() string {
	switch e := j.Policy().EndOf(j.States()); {
	case e.Stops && IsOverdueEnd(j.Units[e.Of]):
		return "" // finishOverdue ends the others
	case e.Stops:
		return "the job has failed: " + j.Units[e.Of].Record.Reason
	case j.Gang && hasWorkEnded(j.Units[0]):
		return "the first unit of the gang has ended"
	}
	return ""
}
