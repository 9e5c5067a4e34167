// Package grant is the vocabulary of reserve and commit (PROTOCOL.md): members
// and their resources, the commands of the leader, the messages of the agents, and
// the states of a record and of a grant with the steps between them.
//
// The package only decides which steps a state allows. Agents decide in
// agent/ledger, the leader in coordinator/txn; wire carries the values, the
// journal and coordinator/record store them.
package grant

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// NodeLeaseTTL is the time after its last heartbeat during which a node counts as alive.
const NodeLeaseTTL = 40 * time.Second

// Member is a member of a unit with its resources on its node.
type Member struct {
	Index      int // in the unit, from 0
	Assignment resource.Assignment
}

// MemberRequest is one member that is to be reserved.
type MemberRequest struct {
	Index   int // in the unit, from 0
	Request resource.Request
	// PinnedGPUs are the devices that the plan needs, by index; empty leaves
	// the choice to the agent.
	PinnedGPUs []int
}

// Grant is one transaction in an agent's ledger.
type Grant struct {
	Tx      resource.TxID
	Unit    resource.UnitUID
	Epoch   resource.Epoch
	State   State
	Members []Member // ascending by Index
	// Name is the unit's name, "namespace/alloc|job/name/n", and Tenant its tenant;
	// both "" where the sender does not have them.
	Name   string
	Tenant resource.TenantID
	// UnitMembers is how many members the unit has, on all hosts; 0 where the
	// number is not given.
	UnitMembers int
	// Origin is the origin of the grant: "" for a transaction of a leader, else
	// "escrow", OriginKubelet or "orphan"; for these the store has no record.
	Origin string
}

// OriginKubelet is the origin of the grants that are in the pool of the host's kubelet.
const OriginKubelet = "kubelet"

// Occupancy is everything an agent's ledger holds.
type Occupancy struct {
	Grants   []Grant
	Cordoned bool
	DiskFull bool
	// MemoryPressure as in HealthChanged.
	MemoryPressure bool
	Health         map[int]DeviceHealth // by index; devices that are ok are left out
	// Work is the state of all processes; the node is left out.
	Work []Worked
	// KubeletPool is the operators' part of the kubelet's pool that the agent follows.
	KubeletPool KubeletPool
}

// DeviceHealth is a device's health, and why it is not ok.
type DeviceHealth struct {
	Health devices.Health
	Reason string
}

// Host is the whole truth about a host's hardware, as an agent tells it.
type Host struct {
	Hostname  string
	Topology  *numa.Topology     // never nil after wire.FromHost
	Inventory *devices.Inventory // never nil after wire.FromHost
	// ReservedCPUs and ReservedMemory are reserved for the host's own programs.
	ReservedCPUs   bitset.Set
	ReservedMemory resource.Bytes
	Labels         map[string]string
	// Counts are the counted resources, ascending by name.
	Counts []Count
}

// UnitMembers is the number of members of a unit by the store, 0 for unknown, and by the
// grants of the holders, 0 where no source has a number. A contradiction is permanent: no
// source is better than another.
func UnitMembers(stored int, holders map[resource.NodeID]Grant) (size int, contradiction string) {
	size, source := stored, "the store"
	for _, id := range slices.Sorted(maps.Keys(holders)) {
		switch said := holders[id].UnitMembers; {
		case said == 0 || said == size:
		case size == 0:
			size, source = said, fmt.Sprintf("node %s", id)
		default:
			return 0, fmt.Sprintf("its unit has %d members by the agent of node %s, and %d by %s", said, id, size, source)
		}
	}
	return size, ""
}
