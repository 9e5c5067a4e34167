package shown

import (
	"fmt"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Unit is what is the same for all members of a unit.
type Unit struct {
	Record *record.Unit
	// Revision is the newest of all keys of the unit: its own, its job's, that of
	// its readiness. 0: it is not stored yet.
	Revision resource.Revision
	// Exactly one of these is set: the allocation that the unit is, or the job
	// that it belongs to, as they were submitted.
	Document *api.Allocation
	Job      *api.Job
	// Request is that of each member; of the first, where the members of a job differ.
	Request *resource.Request
	// Alternative is the number of the alternative that Request is of, and Requested are
	// its amounts as they were written; 0 and nil for the specification's own request.
	Alternative int
	Requested   map[resource.Name]string
	// Places are where the members are, by index; nil while the unit waits, and
	// once it holds nothing.
	Places []Place
	// Waiting is why a unit waits, nil where it was not tried yet.
	Waiting *record.Waiting
	// Ready is the instant since which the agents hold all members, in milliseconds
	// since 1970; 0 while they do not.
	Ready int64
	// Signaled is the instant at which the leader learned that the work has got the signal
	// that announces its end; 0 where it has not.
	Signaled int64
	// Idle is the instant since which the GPUs of the members do nothing, and IdleBelow the
	// percentage of the rule; 0 where they do something, or where there is no rule.
	Idle      int64
	IdleBelow int32
	// Ending is the end of a unit that is Terminating.
	Ending Ending
	// Lost are the devices that the members hold and that their agents report as
	// lost, by the members' index; nil where none is.
	Lost [][]string
}

// Place is where a member is and what it has there; the zero value: nowhere.
type Place struct {
	Node       resource.NodeID
	Assignment resource.Assignment
}

// Phase is what a client sees of the unit's members.
func (u *Unit) Phase() api.Phase { return api.Phase(u.Record.Phase) }

// MemberName is how a member appears among allocations.
func (u *Unit) MemberName(index int) string {
	if u.Job == nil {
		return u.Record.Name
	}
	return fmt.Sprintf("%s-%d", u.Record.Name, u.Record.FirstMember+index)
}

// Member is one member of a unit: one line among the allocations.
type Member struct {
	Unit
	Index int

	// Of one that has a place: the hardware of its node, and whether it is ending
	// and holds its devices no more.
	Host  Hardware
	Freed bool
	// Position is the place in the queue of one that waits, 0 for none.
	Position int
	// Together counts the running members of its group, this one included; 0 where that is
	// not known.
	Together int

	// Settled says that nobody waits for anything else of it.
	Settled bool
}
