package shown

import (
	"fmt"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

// Codes of record.Waiting: the reasons of the condition Scheduled of an allocation,
// and of the condition Queued of a job.
const (
	unscheduled = "Unscheduled"
	noPlace     = "WaitingForResources"
	overQuota   = "QuotaExceeded"
	preempting  = "Preempting"
	refused     = "Refused"
	suspended   = "Suspended"
	gathering   = "WaitingForGang"
	// QueueHeld, QueueStrict and QueueFull: a rule of its queue holds the unit back.
	QueueHeld   = "QueueOnHold"
	QueueStrict = "BehindInQueue"
	QueueFull   = "QueueFull"
	restarting  = "RestartBackOff"
	throttled   = "ParallelismReached"
	depending   = "WaitingForDependency"
)

// CodeOf is the code of a unit that was tried in vain, for want of quota or not.
func CodeOf(quotaIsShort bool) string {
	if quotaIsShort {
		return overQuota
	}
	return noPlace
}

// NoPlace is an object that was tried in vain. The command of its message can be
// pasted whatever namespace the reader's context has.
func NoPlace(namespace, name string) record.Waiting {
	return record.Waiting{Code: noPlace, Message: "no place now; `muster why " + name + " -n " + namespace + "` says why"}
}

// OverQuota is a unit that quota holds back.
func OverQuota(detail string) record.Waiting {
	return record.Waiting{Code: overQuota, Message: detail}
}

// Suspended is an object that its owner keeps from running, or the leader for a reason, "" for
// none. The command of its message can be pasted whatever namespace the reader's context has.
func Suspended(kind record.UnitKind, namespace, name, reason string) record.Waiting {
	object := "allocation/" + name
	if kind == record.JobUnit {
		object = "job/" + name
	}
	by := "by its owner"
	if reason != "" {
		by = "(" + reason + ")"
	}
	return record.Waiting{Code: suspended, Message: "suspended " + by + "; `muster resume " + object + " -n " + namespace + "` lets it run"}
}

// WaitingForQueue is a unit that a rule of its queue holds back.
func WaitingForQueue(code, message string) record.Waiting {
	return record.Waiting{Code: code, Message: message}
}

// WaitingForGang is a member of a group of which too few members have arrived.
func WaitingForGang(arrived, minMembers int, group string) record.Waiting {
	return record.Waiting{Code: gathering, Message: fmt.Sprintf("%d of %d members of group %s have arrived; they start together", arrived, minMembers, group)}
}

// RestartBackOff is a unit whose work has failed, in words, and starts again at an
// instant, as the retry of that number of its job.
func RestartBackOff(failure string, retry, limit int, next int64) record.Waiting {
	return record.Waiting{
		Code: restarting, NextMillis: next,
		Message: fmt.Sprintf("%s; retry %d of %d is at %s", failure, retry, max(retry, limit), time.UnixMilli(next).UTC().Format(time.TimeOnly)),
	}
}

// ParallelismReached is a unit of a job of which as many units run as may.
func ParallelismReached(parallelism int) record.Waiting {
	return record.Waiting{Code: throttled, Message: fmt.Sprintf("%d members of the job have their places, which is its parallelism", parallelism)}
}

// WantOf is the condition of a dependency in words.
func WantOf(d api.JobDependency) string {
	want := map[string]string{
		api.DependAfter: "to begin", api.DependAfterOK: "to succeed", api.DependAfterNotOK: "to end without success", api.DependAfterAny: "to end",
	}[d.Type]
	return fmt.Sprintf("job %s %s (%s)", d.Job, want, d.Type)
}

// mostWants bounds the conditions that a message has.
const mostWants = 3

// WaitingForDependency is a unit of a job whose dependencies have not come true; wants are
// those, in words.
func WaitingForDependency(wants []string) record.Waiting {
	text := "waits for " + strings.Join(wants[:min(len(wants), mostWants)], ", and for ")
	if more := len(wants) - mostWants; more > 0 {
		text += fmt.Sprintf(", and for %d more", more)
	}
	return record.Waiting{Code: depending, Message: text}
}

// Preempting is a unit for which others make room.
func Preempting(n *Nomination) record.Waiting {
	return record.Waiting{Code: preempting, Message: n.Awaits()}
}

// Refused is a unit whose attempts came to nothing, as many in a row as refusals.
// The reason of the last one is in words. The unit is tried again at next.
func Refused(refusals int, reason string, next time.Time) record.Waiting {
	attempts := "1 attempt"
	if refusals > 1 {
		attempts = fmt.Sprintf("%d attempts in a row", refusals)
	}
	return record.Waiting{
		Code: refused, Refusals: refusals, NextMillis: next.UnixMilli(),
		Message: fmt.Sprintf("%s; after %s without success the next is at %s", reason, attempts, next.UTC().Format(time.TimeOnly)),
	}
}

// Untried is a unit that was not tried yet.
func Untried() record.Waiting {
	return record.Waiting{Code: unscheduled, Message: "waiting for the scheduler"}
}

// isSuspended reports whether the owner keeps the unit from running.
func (u *Unit) isSuspended() bool {
	if u.Job != nil {
		return u.Job.IsSuspended()
	}
	return u.Document != nil && u.Document.IsSuspended()
}

// showWaits returns the conditions of a unit that waits: the first is of the kind and
// says why, and Unsatisfiable says that the unit can never run as the cluster is. The
// owner alone keeps a suspended unit from running.
func (u *Unit) showWaits(kind, status string) []api.Condition {
	list := []api.Condition{u.waits(kind, status)}
	if w := u.Waiting; w != nil && w.Never != "" && !u.isSuspended() {
		list = append(list, api.Condition{
			Type: "Unsatisfiable", Status: "True", Reason: w.NeverCode, Message: w.Never, LastTransitionTime: Instant(w.NeverSinceMillis),
		})
	}
	return list
}

// waits is the condition of a unit that waits.
func (u *Unit) waits(kind, status string) api.Condition {
	w := u.Waiting
	switch is := w != nil && w.Code == suspended; {
	case u.isSuspended() && !is: // the document has it, and its time is not written yet
		now := Suspended(u.Record.Kind, u.Record.Namespace, u.Record.Name, "")
		w = &now
	case w == nil, is && !u.isSuspended():
		untried := Untried()
		w = &untried
	}
	return api.Condition{Type: kind, Status: status, Reason: w.Code, Message: w.Message, LastTransitionTime: Instant(w.SinceMillis)}
}
