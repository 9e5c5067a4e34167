package lead

import (
	"cmp"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/life"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
)

// policy is what the decisions about a job's life rest on.
func (j *job) policy() life.Policy {
	p := life.Policy{BackoffLimit: life.DefaultBackoffLimit}
	if j.doc == nil {
		return p
	}
	p.OnFailure = life.OnFailure(j.doc.Spec.OnMemberFailure)
	if b := j.doc.Spec.BackoffLimit; b != nil {
		p.BackoffLimit = int(*b)
	}
	if !j.gang {
		p.Parallelism = j.doc.AtOnce()
	}
	return p
}

// states are the states of a job's units, in their order.
func (j *job) states() []life.State {
	states := make([]life.State, len(j.units))
	for i, u := range j.units {
		states[i] = u.state()
	}
	return states
}

// state is where a unit of a job is.
func (u *unit) state() life.State {
	switch phase := u.phase(); {
	case phase == api.Succeeded:
		return life.Done
	case phase == api.Failed && u.record.EndedBy() != "":
		return life.Overdue
	case phase == api.Failed && u.record.Started != "":
		return life.Broken
	case phase.Ended():
		return life.Abandoned
	case u.attempt != nil || u.adopting != "":
		return life.Active
	case u.hold == holdDelay:
		return life.Delayed
	}
	return life.Waiting
}

// untilRetry is the time that a unit whose member has failed still waits before its next
// try; 0 or less where the unit may be tried.
func (u *unit) untilRetry(now int64) time.Duration {
	return time.Duration(u.record.RetryMillis-now) * time.Millisecond
}

// retries is how many retries of its backoffLimit a job has used, with those whose units
// still hold something.
func (j *job) retries() (n int) {
	for _, u := range j.units {
		n += u.record.Retries
		if a := u.attempt; a != nil && a.outcome != nil && a.outcome.Retry > 0 {
			n++
		}
	}
	return n
}

// retryOf is why a unit waits that has failed.
func (u *unit) retryOf() record.Waiting {
	return shown.RestartBackOff(u.record.Failure, u.record.Retry, u.job.policy().BackoffLimit, u.record.RetryMillis)
}

// isEnding reports whether no unit of the job is to start any more.
func (j *job) isEnding() bool {
	return j.record.Cancelled != nil || j.gang && hasWorkEnded(j.units[0]) || j.policy().EndOf(j.states()).Stops
}

// endOfJob is the end of a job all of whose units have ended, where the work or the time
// of a unit has ended it: reason is a word. ok is false for other jobs.
func (j *job) endOfJob() (phase api.Phase, reason, message string, ok bool) {
	e := j.policy().EndOf(j.states())
	if !e.Over {
		return "", "", "", false
	}
	of := &j.units[e.Of].record
	reason, message = cmp.Or(string(of.EndedBy()), e.Reason), of.Reason
	if e.Success {
		return api.Succeeded, reason, message, true
	}
	return api.Failed, reason, message, true
}
