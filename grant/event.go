package grant

import "github.com/musterd/muster/resource"

// Hello is the first message of an agent's stream: the node's whole truth.
type Hello struct {
	Node        resource.NodeID
	Incarnation resource.Incarnation
	Revision    resource.Revision // of the registration; 0 = not registered yet
	Host        Host
	Occupancy   Occupancy
	LedgerHash  uint64
	// Quarantine is the reason why the agent promises nothing until it is reconciled,
	// "" while it is not in quarantine.
	Quarantine string
}

// Event is a message of an agent, or a change of the stream to the agent. Events
// of a node come in order. Besides the events below there is the event that opens a
// stream: a Hello with the Host as its receiver has decoded it.
type Event interface {
	// NodeID is the node that the event is of.
	NodeID() resource.NodeID
}

type (
	// Disconnected ends a stream.
	Disconnected struct {
		Node resource.NodeID
		Err  error
		// Broken: the agent sent a message beyond the limits of messages, or a message that
		// contradicts itself.
		Broken bool
	}
	// Refused: the agent has let a leader of a higher epoch in, and does not let
	// this one in. Highest is greater than this leader's epoch.
	Refused struct {
		Node    resource.NodeID
		Highest resource.Epoch
	}
	// Registered reports that the agent promises from now on.
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
		Reasons     []resource.Reason // of No
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
		// MemoryPressure: the host is short of memory and takes no new work.
		MemoryPressure bool
		// Quarantine as in Hello.
		Quarantine string
	}
)

// NodeID returns Node.
func (e Disconnected) NodeID() resource.NodeID { return e.Node }

// NodeID returns Node.
func (e Refused) NodeID() resource.NodeID { return e.Node }

// NodeID returns Node.
func (e Registered) NodeID() resource.NodeID { return e.Node }

// NodeID returns Node.
func (e Replied) NodeID() resource.NodeID { return e.Node }

// NodeID returns Node.
func (e Occupied) NodeID() resource.NodeID { return e.Node }

// NodeID returns Node.
func (e HealthChanged) NodeID() resource.NodeID { return e.Node }
