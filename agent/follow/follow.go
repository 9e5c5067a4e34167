// Package follow is the border between the agent's owner and its followers. The
// owner decides and writes the journal; a follower acts on the decisions: the
// writer of assignment files is one, the runner another. A follower decides
// nothing about grants, and the owner knows no follower's work.
package follow

import (
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/resource"
)

// Follower takes every group of changes, in order.
type Follower interface {
	// After takes a group once the group is in the journal and before its answers
	// leave the host. The owner calls After on its own goroutine: After never
	// blocks, and keeps neither the group nor its slices.
	After(g Group)
}

// Group is the changes that the owner has written to the journal at once.
type Group struct {
	// Changes are in the order in which the owner made them.
	Changes []Change
	// Ledger is the ledger after all of them. It may be read until After returns.
	Ledger Ledger
	// Now is a point on the owner's time line (see package ledger).
	Now time.Time
}

// Ledger is the part of a ledger that followers read.
type Ledger interface {
	Lookup(tx resource.TxID) (ledger.Grant, bool)
	Snapshot() *ledger.View
	Registration() resource.Revision
	Quarantine() ledger.Quarantine
}

// Change is one change. Exactly one field is set.
type Change struct {
	Event  ledger.Event
	Notice Notice
}

// Notice is a change that is no event of the ledger: the journal does not keep it.
type Notice interface{ notice() }

type (
	// Registered: the agent has registered and applied the store's records, which
	// are COMMITTED or under notice for the transactions of Live.
	Registered struct{ Live map[resource.TxID]bool }
	// Confirmed: a coordinator has just read that the record of Tx is COMMITTED.
	Confirmed struct{ Tx resource.TxID }
	// Resumed: the agent has contact with the store, and may run what is confirmed.
	Resumed struct{}
	// Overdue: the grace of Tx is over, and Tx cannot end yet.
	Overdue struct{ Tx resource.TxID }
)

func (Registered) notice() {}
func (Confirmed) notice()  {}
func (Resumed) notice()    {}
func (Overdue) notice()    {}

// MayEndGrants reports whether a grant may end at present: neither before the
// registration nor in quarantine.
func MayEndGrants(l Ledger) bool { return l.Registration() > 0 && l.Quarantine().IsZero() }
