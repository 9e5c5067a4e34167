package ledger

import (
	"fmt"
	"time"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Origin is the way in which a grant came about.
type Origin uint8

const (
	// OriginTxn grants belong to a transaction of the leader.
	OriginTxn Origin = iota
	// OriginEscrow grants were admitted locally within a granted slice.
	OriginEscrow
	// OriginKubelet grants were made by the device plugin within a pool.
	OriginKubelet
	// OriginOrphan grants cover processes that run without any record.
	OriginOrphan
)

var originNames = [...]string{"txn", "escrow", "kubelet", "orphan"}

// String returns the origin's name.
func (o Origin) String() string {
	if int(o) < len(originNames) {
		return originNames[o]
	}
	return fmt.Sprintf("Origin(%d)", uint8(o))
}

// Foreign reports whether nobody starts work of Muster in grants of the origin:
// something else runs on their devices, or nothing.
func (o Origin) Foreign() bool { return o == OriginKubelet || o == OriginOrphan }

// Holding is one member of a unit on this host. Its slices are never changed.
type Holding struct {
	// Index is the member's position in its unit, from 0.
	Index int
	// Request is the request of the member; zero where the grant was adopted
	// from a record, which does not keep it.
	Request resource.Request
	// Assignment is the exact devices, CPUs and memory of the member.
	Assignment resource.Assignment
}

// AsMember returns the holding in the words of the protocol.
func (h Holding) AsMember() grant.Member {
	return grant.Member{Index: h.Index, Assignment: h.Assignment}
}

// Grant is all members of one transaction on this host. Its slices are never
// changed.
//
// Invariant: Members ascend by Index and are empty exactly in a Tombstone;
// Victims is empty unless State is Waiting; UnitMembers is 0 or greater than
// each Index.
type Grant struct {
	Tx     resource.TxID
	Unit   resource.UnitUID
	Epoch  resource.Epoch
	Origin Origin
	State  grant.State
	// Members have the assignments, in ascending order of Index.
	Members []Holding
	// Incarnation is the one that vouches for the grant: the one it was made
	// in, and from each registration on the registered one. In an event, zero
	// means the present one.
	Incarnation resource.Incarnation
	// Revision is the store's revision of the record that was seen last, 0
	// before the commit.
	Revision resource.Revision
	// Since is when the reservation was made, or the notice given.
	Since time.Time
	// Deadline is when a Waiting or Reserved grant is to be resolved, and an
	// Evicting or Stopping one is to be stopped by force.
	Deadline time.Time
	// TTL is the reservation's patience, Grace the promised grace.
	TTL, Grace time.Duration
	// Victims are the grants that a Waiting one waits for, ascending.
	Victims []resource.TxID
	// WasWaiting: a Reserved grant that a newer epoch does not fence.
	WasWaiting bool
	// By is the preemptor of an Evicting grant.
	By resource.TxID
	// Reason is why a grant was released, in plain words.
	Reason string
	// Disowned: an operator released it in a quarantine. It is stopped unless the
	// registration that follows finds a record of it.
	Disowned bool
	// Name is the unit's name, Tenant its tenant, where Reserve named them.
	Name   string
	Tenant resource.TenantID
	// UnitMembers is how many members the unit has, on all hosts, 0 where Reserve
	// did not say so.
	UnitMembers int
}

// NeedsDevices reports whether somebody may use the devices of the grant: an orphan's
// process is nobody's, and the kubelet's pool has devices that no container has.
func (g *Grant) NeedsDevices() bool {
	_, lent, _ := PooledUUID(g.Tx)
	return g.State != grant.Tombstone && (!g.Origin.Foreign() || lent)
}

// Record is a transaction's record in the store, as far as this host is named.
type Record struct {
	Tx       resource.TxID
	Unit     resource.UnitUID
	Epoch    resource.Epoch
	State    grant.RecordState
	Members  []Holding // of this host, ascending by Index
	Grace    time.Duration
	Revision resource.Revision
	// Name is the unit's and Tenant whose it is; "" where that is not known, or
	// too long to be kept.
	Name   string
	Tenant resource.TenantID
	// UnitMembers is how many members the record has, on all hosts; 0 where that
	// is not known.
	UnitMembers int
}

// entry is a Grant with the ledger's own fields about it.
//
// Invariant: blocked, the part of the assignment that no victim has, is not
// zero only while Waiting.
type entry struct {
	Grant
	blocked resource.Assignment
	// claimed is the Waiting grant that this one is a victim of, or "".
	claimed resource.TxID
	hash    uint64
}
