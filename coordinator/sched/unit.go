package sched

import (
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Unit is all that a decision reads of a unit that waits.
type Unit struct {
	Key    queue.Key // Path is the unit's consumer on quota trees, too
	Demand place.Unit
	// Alike is equal for units of a gang that ask for the same.
	Alike string
	// Avoid counts, by node, the latest attempts that failed there. A plan that
	// has others evicted does not look at it.
	Avoid  map[resource.NodeID]int
	Right  Right
	Charge quota.Charge // to the limits of its namespace
	// Charges are those of the record that a commit would write: of the namespace
	// first, then of trees in ascending order.
	Charges []record.Charge
}

// Action is the outcome for a unit.
type Action uint8

// The actions.
const (
	Wait    Action = iota // it stays where it is, for the reason in Evidence
	Start                 // it has a place
	Preempt               // it has a place once others have given way
)

// String returns the action in words.
func (a Action) String() string { return [...]string{"wait", "start", "preempt"}[a] }
