package ledger

import (
	"fmt"
	"time"

	"github.com/musterd/muster/resource"
)

// State is where a grant is in its life on this host.
type State uint8

const (
	// None: nothing is known here.
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
	// Tombstone has ended and holds nothing. It answers Freed.
	Tombstone
)

var stateNames = [...]string{"NONE", "WAITING", "RESERVED", "HELD", "EVICTING", "STOPPING", "TOMBSTONE"}

// String returns the state's name in the words of PROTOCOL.md.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Holds reports whether a grant in this state owns its assignment. A Waiting
// grant does not: it owns what no victim of it holds.
func (s State) Holds() bool { return s >= Reserved && s <= Stopping }

// Origin says who made a grant.
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

// Member is one member of a unit on this host. Its slices are never changed.
type Member struct {
	// Index is the member's position in its unit, from 0.
	Index int
	// Request is what it asked for; zero where the grant was adopted from a
	// record, which does not keep it.
	Request resource.Request
	// Assignment is exactly what it has.
	Assignment resource.Assignment
}

// Grant is all members of one transaction on this host. Its slices are never
// changed.
//
// Invariant: Members ascend by Index and are empty exactly in a Tombstone;
// Victims is empty unless State is Waiting.
type Grant struct {
	Tx     resource.TxID
	Unit   resource.UnitUID
	Epoch  resource.Epoch
	Origin Origin
	State  State
	// Members have the assignments, in ascending order of Index.
	Members []Member
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
	// Name is the unit's, Tenant whose it is, where Reserve said so.
	Name   string
	Tenant resource.TenantID
}

// RecordState is what the store says of a transaction.
type RecordState uint8

// The states of PROTOCOL.md section 1. RecordAbsent means undecided.
const (
	RecordAbsent RecordState = iota
	RecordCommitted
	RecordEvicting
	RecordReleasing
	RecordReleased
	RecordAborted
)

var recordStateNames = [...]string{"absent", "COMMITTED", "EVICTING", "RELEASING", "RELEASED", "ABORTED"}

// String returns the state's name.
func (s RecordState) String() string {
	if int(s) < len(recordStateNames) {
		return recordStateNames[s]
	}
	return fmt.Sprintf("RecordState(%d)", uint8(s))
}

// Record is a transaction's record in the store, as far as this host is named.
type Record struct {
	Tx       resource.TxID
	Unit     resource.UnitUID
	Epoch    resource.Epoch
	State    RecordState
	Members  []Member // of this host, ascending by Index
	Grace    time.Duration
	Revision resource.Revision
	// Name is the unit's and Tenant whose it is; "" where that is not known, or
	// too long to be kept.
	Name   string
	Tenant resource.TenantID
}

// grant is a Grant with what the ledger keeps about it.
//
// Invariant: blocked, which is what of its assignment no victim of it has, is
// not zero only while Waiting.
type grant struct {
	Grant
	blocked resource.Assignment
	// claimed is the Waiting grant that this one is a victim of, or "".
	claimed resource.TxID
	hash    uint64
}
