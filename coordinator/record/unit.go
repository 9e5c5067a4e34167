package record

import (
	"encoding/json"
	"slices"

	"github.com/musterd/muster/resource"
)

// Unit is the smallest all-or-nothing set of members (UnitPath.Key).
type Unit struct {
	UID       resource.UnitUID  `json:"uid"`
	Kind      UnitKind          `json:"kind"`
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	N         int               `json:"n"`
	Tenant    resource.TenantID `json:"tenant"`
	Queue     string            `json:"queue,omitempty"`
	Priority  int32             `json:"priority"`
	Phase     string            `json:"phase"`
	// Sequence is the place in the order of arrival.
	Sequence Sequence `json:"sequence"`
	// TxID is the transaction that holds the members, if any.
	TxID resource.TxID `json:"txID,omitempty"`
	// Members is how many the unit has, at least 1, with those in Lost.
	Members int `json:"members"`
	// Lost are the indices in the unit, ascending, of the members that its transaction has
	// lost with their nodes, and that other units replace. Fewer than Members; none once
	// the unit holds nothing.
	Lost []int `json:"lost,omitempty"`
	// FirstMember is the index in the job of the unit's member 0.
	FirstMember int `json:"firstMember,omitempty"`
	// Document is an allocation's submitted document: all its values as they
	// were written, without insignificant white space.
	Document json.RawMessage `json:"document,omitempty"`
	// Admitted completes an allocation's document; nil where nothing is left out, or an
	// older version has accepted it. A unit of a job has that of its job.
	Admitted *Admitted `json:"admitted,omitempty"`
	// Parent is the unit that this one grows, or a member of which it replaces, if any.
	Parent resource.UnitUID `json:"parent,omitempty"`
	// Replaces: the unit has the place of a lost member of its parent, the one with the
	// index FirstMember in the job.
	Replaces bool `json:"replaces,omitempty"`
	// Ending is the end that an allocation's owner has asked for while it was the
	// victim of an undecided preemption: until that is decided its transaction
	// cannot carry the wish. nil where there is none.
	Ending *Cancellation `json:"ending,omitempty"`
	// Made is the caller who has submitted an allocation; nil in a record of an older
	// version.
	Made *Actor `json:"made,omitempty"`
	// Gang is the place of an allocation's group in the order; nil for one that waits
	// for no others.
	Gang *GangPlace `json:"gang,omitempty"`
	// StartByMillis is the instant by which a unit that waits has to start, as
	// Tx.EndingMillis is one; 0 for none. A unit without a start by then is Failed. The
	// commit clears it.
	StartByMillis int64 `json:"startByMillis,omitempty"`
	// Requeues: notice was given to an allocation that its owner had suspended. The
	// allocation waits again once nothing of it is held, in place of its end.
	Requeues bool `json:"requeues,omitempty"`
	// NodeResources are the names with a domain that the unit's members ask nodes for,
	// ascending. Other names with a domain are of the whole cluster.
	NodeResources []resource.Name `json:"nodeResources,omitempty"`
	// Hidden: the owner has deleted the allocation in the background. Once that is
	// durable no get and no list shows it; the key goes when nothing is held.
	Hidden  bool   `json:"hidden,omitempty"`
	Created string `json:"created,omitempty"` // RFC 3339
	Started string `json:"started,omitempty"` // RFC 3339
	Ended   string `json:"ended,omitempty"`   // RFC 3339
	// EndedMillis is the instant of the end, as Tx.EndingMillis is one; 0 before, and in a
	// record of an older version.
	EndedMillis int64 `json:"endedMillis,omitempty"`
	// FirstReadyMillis is the instant since which all agents held the members at the
	// first start, of a job's unit that was evicted and waits or runs again; 0 before.
	FirstReadyMillis int64 `json:"firstReadyMillis,omitempty"`
	// ActiveSinceMillis is the same of the first start since the unit has last come from
	// the queue, where failures were followed by retries; 0 before, and after an eviction.
	ActiveSinceMillis int64 `json:"activeSinceMillis,omitempty"`
	// Retries counts the retries of the unit after failures of its work, and Retry is the
	// number that the last had among those of its job. A unit that waits for its next try
	// is not tried before RetryMillis, an instant as Tx.EndingMillis is one; the commit
	// clears it. Failure says how the last run has ended.
	Retries     int    `json:"retries,omitempty"`
	Retry       int    `json:"retry,omitempty"`
	RetryMillis int64  `json:"retryMillis,omitempty"`
	Failure     string `json:"failure,omitempty"`
	// End is the kind of the unit's end, "" where its work or its owner has decided the
	// end, and in records of older versions: see EndedBy. Reason explains the end.
	End     EndKind `json:"end,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Message string  `json:"message,omitempty"`
	// Exits are how the work of the members ended last, ascending; LastTx is the
	// transaction that they ran in. Both are set when a unit with work has released its
	// devices, also where the unit waits again.
	Exits  []Exit        `json:"exits,omitempty"`
	LastTx resource.TxID `json:"lastTx,omitempty"`
}

// GangPlace is the arrival of the first member of a group.
type GangPlace struct {
	// First tells groups of the same name apart, one after the other.
	First Sequence `json:"first"`
	// SinceMillis is the instant of the arrival, as Tx.EndingMillis is one.
	SinceMillis int64 `json:"sinceMillis"`
	// MinMembers is the number of members that start together.
	MinMembers int `json:"minMembers"`
}

// Held is the number of members that a transaction of the unit has.
func (u *Unit) Held() int { return u.Members - len(u.Lost) }

// HasLost reports whether the unit has lost a member, by its index in the unit.
func (u *Unit) HasLost(index int) bool {
	_, lost := slices.BinarySearch(u.Lost, index)
	return lost
}

// Path is the unit's name.
func (u Unit) Path() UnitPath {
	return UnitPath{Namespace: u.Namespace, Kind: u.Kind, Name: u.Name, N: u.N}
}

// Order is the unit's place in its queue.
func (u Unit) Order() OrderKey {
	return OrderKey{Queue: u.Queue, Priority: u.Priority, Sequence: u.Sequence, Unit: u.Path()}
}
