package work

import (
	"slices"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

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
