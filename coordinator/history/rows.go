// Package history has the rows of the history as values: what happened to nodes,
// work, quotas and people, in the words of SQL tables. It decides which facts a row
// has, and what makes two rows the same row.
//
// It reads no store and writes no database: history/narrate makes rows of the
// store's changes, history/warehouse writes them into PostgreSQL or SQLite,
// history/projector carries them from one to the other, and history/usage makes
// slices and sums of them.
package history

import (
	"encoding/json"
	"time"

	"github.com/musterd/muster/resource"
)

// Batch is what the changes of the store within a range of revisions add to the
// history. A batch is written whole or not at all, and only onto a history that
// stands at After; so each change is in the history once.
//
// A row replaces the row of the same key, which its comment names, if it has a
// greater Revision than that one, or that one is reverted. Instants are those of the
// leader's clock, in milliseconds UTC; the zero Time is unknown, or not yet.
type Batch struct {
	// After is the position before the batch and Upto the one behind it.
	After, Upto resource.Revision
	// Mark is the Mark of the position behind the batch.
	Mark string
	// At is the instant of the newest change of the batch.
	At time.Time
	// Repair has rows replace those of the same Revision too: they put right what somebody
	// has changed in the history.
	Repair bool `json:",omitempty"`

	Nodes       []Node
	Jobs        []Job
	Units       []Unit
	Grants      []Grant
	Waits       []Wait
	Quotas      []Quota
	Preemptions []Preemption
	Conditions  []Condition
	Audit       []Audit
	// Cuts are applied before Slices.
	Cuts   []Cut `json:",omitempty"`
	Slices []Slice
	Slots  []Slot
	// Gaps are the ranges of revisions of which the history has nothing.
	Gaps []Gap
}

// Position is how far a history is. The zero value is a history without any change.
type Position struct {
	Revision resource.Revision
	// Mark is a text of the projector's, kept with the revision: by it the projector
	// knows whether the store still has the past that the history was made of. At most
	// 4096 bytes.
	Mark string
}

// Slot is a resource name of the registry. Its key is Name.
type Slot struct {
	Name        resource.Name
	Kind        string // count, bytes or unique
	DisplayName string
	Description string
	Unit        string
	PerCluster  bool // of the whole cluster, as licences are; else of each node
	Rank        int  // the place on the screen
	Revision    resource.Revision
}

// Node is a host. Its key is ID: a node that is deleted and registered again
// continues its row.
type Node struct {
	ID           resource.NodeID
	Hostname     string
	Cluster      string
	Region, Zone string
	Rack         string
	GPUModel     string
	Labels       map[string]string
	Taints       json.RawMessage
	Annotations  map[string]string
	Conditions   json.RawMessage
	Capacity     resource.Vector // whole amounts in base units
	Allocatable  resource.Vector
	Phase        string // Ready, NotReady, Unregistered, …
	Cordoned     bool
	Registered   time.Time
	Deleted      time.Time // zero while the node is in the store
	Revision     resource.Revision
}

// Job is a job. Its key is UID.
type Job struct {
	UID             string
	Namespace, Name string
	Tenant          resource.TenantID
	User            string
	Phase           string
	Document        json.RawMessage
	Created, Ended  time.Time
	Reason, Message string
	Revision        resource.Revision
}

// Unit is an allocation, or a unit of a job. Its key is UID.
type Unit struct {
	UID             resource.UnitUID
	Namespace, Name string
	N               int // the number of a job's unit; 0 for an allocation
	// JobUID and JobName are those of the unit's job; "" for an allocation.
	JobUID, JobName  string
	Tenant           resource.TenantID
	User             string // who has submitted it
	Queue            string
	Priority         int32
	PriorityClass    string
	PreemptionPolicy string
	QOSClass         string
	GroupID          string
	Members          int
	// Requests and Limits are those of all members together.
	Requests, Limits resource.Vector
	// The rules of placement as they were submitted; nil where there are none.
	NodeSelector, Affinity, Tolerations, Topology json.RawMessage
	// State is the phase that clients read: Pending, Running, Terminating, Succeeded,
	// Failed, Cancelled or Preempted.
	State           string
	Reason, Message string
	Created         time.Time
	// Scheduled is the first commit, and Started the instant since which all agents
	// held the members for the first time. A row has those of the present run: the
	// history keeps the earliest of all rows of the unit.
	Scheduled, Started time.Time
	Ended              time.Time
	TTL                time.Duration // 0: none
	// TimeLimited: quotas count the unit as Terminating.
	TimeLimited bool
	Expires     time.Time
	Retries     int
	Revision    resource.Revision
}

// Grant is one transaction of a unit: what its members hold from the commit to the
// end. Its key is Tx.
type Grant struct {
	Tx        resource.TxID
	Unit      resource.UnitUID
	Namespace string
	Tenant    resource.TenantID
	State     string // COMMITTED, EVICTING, RELEASING or RELEASED
	Committed time.Time
	Ready     time.Time // zero: never
	// Signaled is when the leader learned that a member has got the signal that announces
	// its end; zero: none has.
	Signaled time.Time
	Ending   time.Time // notice, or the owner's request
	Ended    time.Time // nothing is held any more
	Evicted  bool
	By       resource.TxID // the preemptor's
	Reason   string
	Exits    json.RawMessage // how the work of the members has ended; nil: no work
	Members  []Member        // ascending by Index
	Revision resource.Revision
}

// Member is what one member of a grant holds on its node.
type Member struct {
	Index    int
	Node     resource.NodeID
	Devices  []string // UUIDs of GPUs and MIG instances, ascending
	GPUModel string   // "" where the member holds no GPU
	// Requested and Allocated differ where the node rounds up.
	Requested, Allocated, Limits resource.Vector
	// Ended is the instant at which this member freed what it held, where it is
	// earlier than the grant's.
	Ended time.Time
}

// Wait is a stay of a unit in the queue for one reason. Its key is (Unit, Since).
type Wait struct {
	Unit         resource.UnitUID
	Namespace    string
	Tenant       resource.TenantID
	Queue        string
	Priority     int32
	Since, Until time.Time // Until is zero while the unit waits
	Code         string    // the reason of the condition Scheduled
	Message      string
	Attempts     int
	NextTry      time.Time
	Revision     resource.Revision
}

// Quota is one limit of a resource quota from one change to the next. Its key is
// (Namespace, Name, Slot, From).
type Quota struct {
	Namespace, Name string
	Tenant          resource.TenantID
	Slot            resource.Name
	Hard, Soft      int64 // base units; resource.Unlimited is no limit
	// Scoped: the quota counts a part of the work alone, so that slices do not tell its use.
	Scoped   bool
	From, To time.Time // To is zero for the present limit
	Revision resource.Revision
}

// Preemption is the eviction of one grant for another unit, for a claim of quota or
// by an operator. Its key is Tx: a grant is evicted once.
type Preemption struct {
	Tx                              resource.TxID // of the victim
	Victim                          resource.UnitUID
	VictimTenant                    resource.TenantID
	VictimPriority                  int32
	Nodes                           []resource.NodeID
	Freed                           resource.Vector
	By                              resource.TxID
	Preemptor                       resource.UnitUID
	PreemptorTenant                 resource.TenantID
	PreemptorPriority               int32
	Reason                          string
	Grace                           time.Duration
	Initiated, Evicted, Rescheduled time.Time
	// Outcome is Evicting, then Evicted (the unit waits again), Rescheduled (it runs
	// again), Ended, or Released where the owner has ended it during the notice.
	Outcome     string
	InitiatedBy string // preemptor, rule or the name of a person
	Revision    resource.Revision
}

// Condition is a change of a condition of a node. Its key is (Node, Type, Revision):
// two changes may have the same instant.
type Condition struct {
	Node            resource.NodeID
	Type            string
	Old, New        string // True, False, Unknown; Old is "" for the first
	Reason, Message string
	At              time.Time
	Revision        resource.Revision
}

// Audit is an entry of the audit. Its key is ID.
type Audit struct {
	ID              string
	At              time.Time
	Actor           json.RawMessage // who: user, token, address, via
	User            string
	Verb, Kind      string
	Namespace, Name string
	RequestID       string
	Result          string
	Revision        resource.Revision
}

// Slice is the use of one slot by one member within an interval in which nothing
// changed. Amount and duration stay apart. Its key is (Tx, Member, Slot, From). A slice
// without duration removes the slice of its key.
type Slice struct {
	Tx        resource.TxID
	Member    int
	Unit      resource.UnitUID
	Namespace string
	Tenant    resource.TenantID
	Node      resource.NodeID
	Slot      resource.Name
	GPUModel  string
	From, To  time.Time
	// Requested and Allocated are amounts in base units during the interval.
	Requested, Allocated int64
	Limit                int64 // 0: none
	// Measured is the integral of the measured use over the interval in base units
	// times milliseconds; nil where nothing measures it.
	Measured *int64
	// Counter is the member's counter of this slot at To, of which Measured is a
	// difference; nil where it is not known. Its unit is that of Use.
	Counter *int64
}

// Cut takes back the slices of one slot of one member behind an instant: those that begin
// there or later go, and a slice across the instant ends there, without a counter.
type Cut struct {
	Tx     resource.TxID
	Member int
	Slot   resource.Name
	At     time.Time
}

// Use is the measured use of a member at an instant: counters since the start of its work,
// which never fall. Slices are made of their differences; it has no row.
type Use struct {
	Tx         resource.TxID
	Member     int
	At         time.Time
	CPUMillis  int64  // processor time
	BusyMillis *int64 // of all devices, the part that computed times time; nil: none is measured
}

// Gap is a range of revisions, both ends within, whose changes the history has not.
type Gap struct {
	From, Upto resource.Revision
	At         time.Time
	Reason     string
}

// AddDevice adds the busy time of a device.
func (u *Use) AddDevice(busyMillis int64) {
	sum := max(0, busyMillis)
	if u.BusyMillis != nil {
		sum = resource.SaturatingAdd(sum, *u.BusyMillis)
	}
	u.BusyMillis = &sum
}
