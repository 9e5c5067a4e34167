package work

import (
	"slices"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/why"
	"github.com/musterd/muster/resource"
)

// Stage is the stage of the unit in an explanation.
func (u *Unit) Stage() why.Stage {
	switch u.Life.Phase() {
	case Live:
		return why.Running
	case Closing:
		return why.Leaving
	case Ended:
		return why.Ended
	case Adopting:
		return why.Adopting
	case Resting:
		if u.IsSuspended() {
			return why.Suspended
		}
		return why.Resting
	case Trying:
		if u.Attempt.IsPreempting() {
			return why.Nominated
		}
		return why.Asking
	case Creating:
		return why.Storing
	case Waiting, Phases:
	}
	switch {
	case u.Life.IsBeingAdopted():
		return why.Adopting
	case u.IsSuspended():
		return why.Suspended
	case u.Life.IsBeingWritten():
		return why.Storing
	case u.Hold == HoldDependency:
		return why.Depending
	case u.Hold == HoldDelay:
		return why.Delayed
	case u.Hold == HoldThrottled:
		return why.Throttled
	case u.Grows():
		return why.Growing
	case u.AwaitsMembers():
		return why.Gathering
	}
	return why.Waiting
}

// Nodes returns the nodes of the unit's attempt, ascending.
func (u *Unit) Nodes() []resource.NodeID {
	return slices.Sorted(slices.Values(u.Attempt.Machine.Nodes()))
}

// Unconfirmed returns the nodes of a running unit whose agents do not hold the unit yet.
func (u *Unit) Unconfirmed() []resource.NodeID {
	return slices.DeleteFunc(u.Nodes(), func(id resource.NodeID) bool { return u.Attempt.Held[id] })
}

// Unanswered returns the nodes of the attempt without a vote.
func (u *Unit) Unanswered() []resource.NodeID {
	return slices.DeleteFunc(u.Nodes(), func(id resource.NodeID) bool {
		_, answered := u.Attempt.Machine.Answer(id)
		return answered
	})
}

// ShownEnding is the end in the unit's keys; zero for none.
func (u *Unit) ShownEnding() (e shown.Ending) {
	if a := u.Attempt; a.Notice != nil {
		e.Notice = &shown.End{Millis: post.MillisOf(a.Noticed), GraceSeconds: a.Notice.GraceSeconds, Reason: a.Notice.Reason}
	}
	if u.Life.EndDurable() {
		e.Asked = &shown.End{Millis: u.Life.Asked(), GraceSeconds: u.Life.Ending().GraceSeconds, Reason: u.Life.Ending().Reason}
	}
	return e
}
