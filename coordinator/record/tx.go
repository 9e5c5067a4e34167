package record

import (
	"slices"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Tx is a transaction's outcome (TxKey), the only place where one is
// decided. An ABORTED record may consist of state, unit UID and reason alone.
type Tx struct {
	State   grant.RecordState `json:"state"`
	Epoch   resource.Epoch    `json:"epoch,omitempty"` // of the leader that committed
	Unit    UnitPath          `json:"unit,omitzero"`
	UnitUID resource.UnitUID  `json:"unitUID,omitempty"`
	// Tenant is the unit's, for the agents that adopt the record.
	Tenant resource.TenantID `json:"tenant,omitempty"`
	// Charges count while State.Charged, once per transaction.
	Charges []Charge    `json:"charges,omitempty"`
	Members []Placement `json:"members,omitempty"`
	// LostMembers had a place in the transaction until their nodes were confirmed dead,
	// in the order of the losses: other units replace them (ADR 110). Each member is in
	// Members or in LostMembers.
	LostMembers []LostMember `json:"lostMembers,omitempty"`
	// Alternative is the number of the alternative that the members have; 0 for the
	// request of the specification itself.
	Alternative int `json:"alternative,omitempty"`
	// By is the preemptor of an EVICTING record, or what ended the unit.
	By     resource.TxID `json:"by,omitempty"`
	Reason string        `json:"reason,omitempty"`
	// Evicted: it ends by an eviction, not by its owner's wish. Set from EVICTING
	// on, unless the owner asks for the end too.
	Evicted bool `json:"evicted,omitempty"`
	// Lost: it ends because a node of its members is confirmed dead.
	Lost bool `json:"lost,omitempty"`
	// Unheard are the nodes, ascending, that counted as freed because they were
	// confirmed dead. A RELEASED record stays until each has told of itself.
	Unheard []resource.NodeID `json:"unheard,omitempty"`
	// GraceSeconds is what was promised between notice and forced stop.
	GraceSeconds int64 `json:"graceSeconds,omitempty"`
	// GraceKept: the owner wrote the grace of a RELEASING record, and agents keep the grace
	// for unattached work, too. An older version refuses the field.
	GraceKept bool `json:"graceKept,omitempty"`
	// EndingMillis is the instant at which the end of an EVICTING, RELEASING or
	// RELEASED record began: the notice where it is Evicted, else the owner's
	// request. Milliseconds of the leader's clock since 1970; 0 in a record of an
	// older version.
	EndingMillis int64 `json:"endingMillis,omitempty"`
	// Outcome is how the work of the unit ended, where that is why the record ends: set
	// from RELEASING on.
	Outcome *Outcome `json:"outcome,omitempty"`
	// Times are RFC 3339 in UTC, for people: nothing is decided by them.
	Created   string `json:"created,omitempty"`
	Committed string `json:"committed,omitempty"`
	Ended     string `json:"ended,omitempty"`
	// CommittedMillis and EndedMillis are the instants of COMMITTED and of RELEASED, as
	// EndingMillis is one; 0 before, and in a record of an older version.
	CommittedMillis int64 `json:"committedMillis,omitempty"`
	EndedMillis     int64 `json:"endedMillis,omitempty"`
	// Port is where the members of a unit with work meet, on the host of member 0: 1 to
	// 65535; 0 for no work, and in a record of an older version.
	Port int `json:"port,omitempty"`
}

// Outcome is how the work of a unit ended.
type Outcome struct {
	// Phase is Succeeded or Failed, or Pending where the unit waits again.
	Phase   string `json:"phase"`
	Message string `json:"message,omitempty"`
	// End is the kind of the end, as in Unit: see EndedBy.
	End EndKind `json:"end,omitempty"`
	// Retry is the number of the retry of the job that follows a failure, from 1; 0
	// where none follows, or where the unit starts again without blame.
	Retry int `json:"retry,omitempty"`
	// Exits are those of the members that have ended, ascending.
	Exits []Exit `json:"exits,omitempty"`
}

// Exit is how the work of one member ended.
type Exit struct {
	Member int             `json:"member"` // index in the unit, from 0
	Node   resource.NodeID `json:"node,omitempty"`
	// Code is the exit code, Signal the signal that ended the command, Reason a word:
	// Completed with code 0 alone is a success.
	Code    int    `json:"code"`
	Signal  int    `json:"signal,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Tx is the transaction that the member ran in, where that is not the unit's: another
	// unit has replaced the member.
	Tx resource.TxID `json:"tx,omitempty"`
	// Use is the measured use of the member; nil where nothing was measured.
	Use *Use `json:"use,omitempty"`
}

// Use is the measured use of a member's work from its start on.
type Use struct {
	CPUMillis  int64          `json:"cpuMillis"`
	Memory     resource.Bytes `json:"memory,omitempty"` // now; 0 at the end
	PeakMemory resource.Bytes `json:"peakMemory"`
	OOMKills   *int64         `json:"oomKills,omitempty"` // nil: nobody counts them
	Devices    []WorkDevice   `json:"devices,omitempty"`  // ascending by UUID
}

// WorkDevice is the use of one device or MIG instance by a member.
type WorkDevice struct {
	UUID       string `json:"uuid"`
	BusyMillis int64  `json:"busyMillis"` // the sum of part times time
	// MeasuredMillis is the time that BusyMillis is a part of; 0 where an older version has
	// measured.
	MeasuredMillis int64          `json:"measuredMillis,omitempty"`
	Memory         resource.Bytes `json:"memory,omitempty"`
	PeakMemory     resource.Bytes `json:"peakMemory"`
}

// Ready says which agents hold the members of a live transaction (ReadyKey). Readers
// ignore it beside a record that is absent.
type Ready struct {
	// AtMillis is the instant since which all agents hold their members, as
	// Tx.EndingMillis is one; 0 where it never came. It counts beside COMMITTED alone.
	AtMillis int64 `json:"atMillis"`
	// Freed are the nodes whose agents freed the members before the record's end, ascending
	// by node.
	Freed []FreedNode `json:"freed,omitempty"`
	// SignaledMillis is the instant at which the leader learned that a member has got the
	// signal that announces the end; 0 where none has.
	SignaledMillis int64 `json:"signaledMillis,omitempty"`
	// IdleMillis is the instant since which the GPUs of the members are idle by the rule of
	// their namespace, and IdleBelow the percentage of that rule; 0 where they are not.
	IdleMillis int64 `json:"idleMillis,omitempty"`
	IdleBelow  int32 `json:"idleBelow,omitempty"`
}

// Charge is an amount counted against one group of one quota tree.
type Charge struct {
	Tree    string          `json:"tree"`
	Group   string          `json:"group"`
	Request resource.Vector `json:"request"`
	// Node is the node above Group that counted the amount at the commit; empty for
	// Group itself. A QuotaSeats of the transaction is newer.
	Node string `json:"node,omitempty"`
}

// Placement is what one member of a unit holds, in which memory of which agent.
type Placement struct {
	Member      int                  `json:"member"` // index in the unit, from 0
	Node        resource.NodeID      `json:"node"`
	Incarnation resource.Incarnation `json:"incarnation"`
	Assignment  resource.Assignment  `json:"assignment"`
}

// LostMember is a member that a transaction has lost with its node.
type LostMember struct {
	Placement
	// AtMillis is the instant of the loss, as Tx.EndingMillis is one.
	AtMillis int64 `json:"atMillis"`
}

// SeenBy is the state of the record for the agent of a node, and the seconds of grace for
// its members there: a node whose members the transaction has lost sees it RELEASED, also
// while the others run. Agents keep a written grace as the grace of an eviction.
func (r *Tx) SeenBy(node resource.NodeID) (state grant.RecordState, graceSeconds int64) {
	switch {
	case r.HasLost(node):
		return grant.RecordReleased, LostGraceSeconds
	case r.State == grant.RecordReleasing && r.GraceKept:
		return grant.RecordEvicting, r.GraceSeconds
	}
	return r.State, r.GraceSeconds
}

// HasLost reports whether the transaction has lost its members on a node.
func (r *Tx) HasLost(node resource.NodeID) bool {
	return slices.ContainsFunc(r.LostMembers, func(m LostMember) bool { return m.Node == node })
}

// AsMember returns the placement without node and incarnation.
func (p Placement) AsMember() grant.Member {
	return grant.Member{Index: p.Member, Assignment: p.Assignment}
}
