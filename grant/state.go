package grant

import (
	"fmt"
	"slices"
)

// State is where a grant is in its life on its host. The numbers are those of
// the agent's journal.
type State uint8

const (
	// None: the host has no grant of the transaction.
	None State = iota
	// Waiting has an assignment that its victims still hold.
	Waiting
	// Reserved is a promise whose transaction is undecided: the vote Yes.
	Reserved
	// Held is committed; its workload may run.
	Held
	// Evicting is Held under notice: its grace runs.
	Evicting
	// Stopping is released; its workload is being stopped.
	Stopping
	// Tombstone has ended and holds nothing: the answer Freed.
	Tombstone
	// No is an answer and no state of a grant: the agent refuses. The answer
	// does not contain the resources of the transaction.
	No
)

var stateNames = [...]string{"NONE", "WAITING", "RESERVED", "HELD", "EVICTING", "STOPPING", "TOMBSTONE", "NO"}

// Edge is one step of a grant, and the ledger's event that takes it.
type Edge struct {
	From, To State
	Event    string
}

// edges are all steps of a grant. A grant that leaves the ledger becomes None.
var edges = [...]Edge{
	{None, Waiting, "Granted"},
	{None, Reserved, "Granted"},
	{None, Held, "Granted"},     // adopted from a record, an orphan, or of the kubelet
	{None, Evicting, "Granted"}, // adopted from a record
	{None, Stopping, "Granted"}, // adopted from a record
	{None, Tombstone, "Buried"},
	{Waiting, Reserved, "Promoted"},
	{Waiting, Tombstone, "Buried"},
	{Waiting, None, "Dropped"},
	{Reserved, Held, "Committed"},
	{Reserved, Evicting, "Noticed"},
	{Reserved, Stopping, "StopBegun"},
	{Reserved, Tombstone, "Buried"},
	{Reserved, None, "Dropped"},
	{Held, Held, "Committed"}, // its record moved on
	{Held, Evicting, "Noticed"},
	{Held, Stopping, "StopBegun"},
	{Held, Tombstone, "Buried"},
	{Held, None, "Dropped"},       // of an orphan, or of the kubelet
	{Evicting, Held, "Committed"}, // the restored store has lost the record of the end
	{Evicting, Evicting, "Noticed"},
	{Evicting, Stopping, "StopBegun"},
	{Evicting, Tombstone, "Buried"},
	{Stopping, Held, "Committed"}, // the restored store has lost the record of the end
	{Stopping, Tombstone, "Buried"},
	{Tombstone, None, "Dropped"},
}

// Edges returns all steps of a grant, by the state that is left.
func Edges() []Edge { return slices.Clone(edges[:]) }

// MayBecome reports whether a grant may go from s to the state to.
func (s State) MayBecome(to State) bool {
	for i := range edges {
		if e := &edges[i]; e.From == s && e.To == to {
			return true
		}
	}
	return false
}

// Holds reports whether a grant in this state owns its assignment. A Waiting
// grant does not: its victims still hold a part of the assignment.
func (s State) Holds() bool { return s >= Reserved && s <= Stopping }

// String returns the state's name in the words of PROTOCOL.md.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Ends reports whether an agent in this state holds no resources of a transaction, or is
// stopping the work.
func (s State) Ends() bool { return s != Held && s != Evicting && s != Reserved }
