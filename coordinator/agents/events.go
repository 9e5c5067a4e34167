// Package agents is the leader's side of the Session streams: one long-lived
// connection to each agent, commands one way, events the other (DESIGN.md
// section 5). It decides only when to connect again; what to say and what an
// answer means is the leader's business.
package agents

import (
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
)

// State is what an agent says of a transaction.
type State uint8

// The states of muster.v1.Reply, by name.
const (
	StateNone State = iota + 1
	StateNo
	StateWaiting
	StateReserved
	StateHeld
	StateEvicting
	StateFreed
	StateStopping
)

var stateNames = [...]string{"", "none", "no", "waiting", "reserved", "held", "evicting", "freed", "stopping"}

// String returns the state's name.
func (s State) String() string { return stateNames[s] }

// Member is one member of a transaction and what it holds on the node.
type Member struct {
	Index      int
	Assignment resource.Assignment
}

// Grant is one transaction in an agent's ledger.
type Grant struct {
	Tx      resource.TxID
	Unit    resource.UnitUID
	Epoch   resource.Epoch
	State   State
	Members []Member
	// Name is the unit's, "namespace/alloc|job/name/n", and Tenant whose it is;
	// both "" where they are not known.
	Name   string
	Tenant resource.TenantID
	// Origin says who made it: "" a transaction of a leader, else "escrow",
	// "kubelet" or "orphan". Of those the store has no record.
	Origin string
}

// Occupancy is everything an agent's ledger holds.
type Occupancy struct {
	Grants   []Grant
	Cordoned bool
	DiskFull bool
	Health   map[int]DeviceHealth // by index; devices that are ok are left out
}

// DeviceHealth is a device's health, and why it is not ok.
type DeviceHealth struct {
	Health devices.Health
	Reason string
}

// Event is something an agent said, or that the stream to it did. Events of
// one node come in order.
type Event interface{ of() resource.NodeID }

type (
	// Connected opens a stream: the node's whole truth.
	Connected struct {
		Node        resource.NodeID
		Incarnation resource.Incarnation
		Revision    resource.Revision // of the registration; 0 = not registered yet
		Host        wire.Host
		// Fit is made of Host, in the stream's goroutine: that may take long.
		Fit        *fit.Host
		Occupancy  Occupancy
		LedgerHash uint64
		// Quarantine says why the agent promises nothing until it is reconciled,
		// "" while it is not in quarantine.
		Quarantine string
	}
	// Disconnected ends a stream; the pool is already trying again.
	Disconnected struct {
		Node resource.NodeID
		Err  error
		// Broken: the agent sent a message beyond the limits of messages, or one that
		// contradicts itself. The pool connects again after the wait of Distrust.
		Broken bool
	}
	// Refused: the agent has let a leader of a higher epoch in, and does not let
	// this one in. Highest is greater than Options.Epoch.
	Refused struct {
		Node    resource.NodeID
		Highest resource.Epoch
	}
	// Registered says that the agent promises from now on.
	Registered struct {
		Node        resource.NodeID
		Incarnation resource.Incarnation
		Revision    resource.Revision
	}
	// Replied is the state of one transaction.
	Replied struct {
		Node        resource.NodeID
		Tx          resource.TxID
		State       State
		Incarnation resource.Incarnation
		Revision    resource.Revision
		Members     []Member
		Reasons     []resource.Reason
		LedgerHash  uint64
	}
	// Occupied answers Resync.
	Occupied struct {
		Node       resource.NodeID
		Occupancy  Occupancy
		LedgerHash uint64
	}
	// HealthChanged tells the health of all devices that are not ok, and the
	// node's own conditions.
	HealthChanged struct {
		Node     resource.NodeID
		Health   map[int]DeviceHealth // by index
		Cordoned bool
		DiskFull bool
		// Quarantine as in Connected.
		Quarantine string
	}
)

func (e Connected) of() resource.NodeID     { return e.Node }
func (e Disconnected) of() resource.NodeID  { return e.Node }
func (e Refused) of() resource.NodeID       { return e.Node }
func (e Registered) of() resource.NodeID    { return e.Node }
func (e Replied) of() resource.NodeID       { return e.Node }
func (e Occupied) of() resource.NodeID      { return e.Node }
func (e HealthChanged) of() resource.NodeID { return e.Node }
