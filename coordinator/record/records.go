// Package record holds the coordinator's durable state as values: the keys and
// records of PROTOCOL.md section 1, their encoding, and the store's
// transactions, changes and definite answers. It decides how state is written
// down and which records are well-formed.
//
// It does not read or write: the interface to a store and the election are
// coordinator/store's. It does not decide what to write either: transactions
// are coordinator/txn's, order is coordinator/queue's, limits are
// coordinator/quota's.
package record

import (
	"cmp"
	"encoding/json"
	"fmt"
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
	// Freed are the nodes of a transaction that is ending whose agents hold nothing
	// of it any more.
	Freed []resource.NodeID `json:"freed,omitempty"`
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

// LostGraceSeconds is the grace of a lost member whose node comes back after all.
const LostGraceSeconds = 30

// SeenBy is the state of the record for the agent of a node, and the seconds of grace for
// its members there: a node whose members the transaction has lost sees it RELEASED, also
// while the others run.
func (r *Tx) SeenBy(node resource.NodeID) (state grant.RecordState, graceSeconds int64) {
	if r.HasLost(node) {
		return grant.RecordReleased, LostGraceSeconds
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

// FirstReplacement is the number of the unit that replaces the member 0 of a job; that of
// another member is greater by the member's index. No unit of a submission has such a
// number.
const FirstReplacement = 1_000_000

// Path is the unit's name.
func (u Unit) Path() UnitPath {
	return UnitPath{Namespace: u.Namespace, Kind: u.Kind, Name: u.Name, N: u.N}
}

// Order is the unit's place in its queue.
func (u Unit) Order() OrderKey {
	return OrderKey{Queue: u.Queue, Priority: u.Priority, Sequence: u.Sequence, Unit: u.Path()}
}

// Job is a job (JobKey): its document and its units.
type Job struct {
	UID       string            `json:"uid"`
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Tenant    resource.TenantID `json:"tenant"`
	Phase     string            `json:"phase"`
	// Document is the submitted document, as in Unit.
	Document  json.RawMessage `json:"document"`
	Admitted  *Admitted       `json:"admitted,omitempty"` // as in Unit
	Units     []UnitPath      `json:"units,omitempty"`
	Made      *Actor          `json:"made,omitempty"` // as in Unit
	Cancelled *Cancellation   `json:"cancelled,omitempty"`
	// Shrunk is the end of the units beyond the document's parallelism, where there
	// are any; nil where the number was never lowered.
	Shrunk *Cancellation `json:"shrunk,omitempty"`
	// Boost is the greater priority that the units which wait have for a while.
	Boost *Boost `json:"boost,omitempty"`
	// Suspended is why the leader has suspended the job; "" where its owner has, and where
	// the job is not suspended.
	Suspended string `json:"suspended,omitempty"`
	// Met are the dependencies of the document that have come true, by their index,
	// ascending. The jobs may be gone.
	Met     []int  `json:"met,omitempty"`
	Created string `json:"created,omitempty"` // RFC 3339
	Ended   string `json:"ended,omitempty"`   // RFC 3339
	// EndedMillis is the instant of the end, as in Unit.
	EndedMillis int64  `json:"endedMillis,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Message     string `json:"message,omitempty"`
}

// Boost is the priority of a job's units that wait, in place of the document's.
type Boost struct {
	Priority int32 `json:"priority"`
	// UntilMillis is the instant of its end, as Tx.EndingMillis is one.
	UntilMillis int64  `json:"untilMillis"`
	Reason      string `json:"reason,omitempty"`
	ApprovedBy  string `json:"approvedBy,omitempty"`
}

// Cancellation is a wish to end a job, or an allocation.
type Cancellation struct {
	Reason       string `json:"reason,omitempty"`
	GraceSeconds int64  `json:"graceSeconds"`
	// AskedMillis is the instant of the wish, as Tx.EndingMillis is one.
	AskedMillis int64 `json:"askedMillis,omitempty"`
	// Remove: the job's keys go once all its units have ended.
	Remove bool `json:"remove,omitempty"`
	// Background: no get and no list shows the job any more. Only with Remove.
	Background bool `json:"background,omitempty"`
}

// Order is the value of an OrderKey.
type Order struct {
	UnitUID resource.UnitUID `json:"unitUID"`
	// Waiting is why the unit waits, for readers; nil: it was not tried yet, or an
	// older version has written the record.
	Waiting *Waiting `json:"waiting,omitempty"`
}

// Waiting is why a unit waits. No decision rests on it.
type Waiting struct {
	Code    string `json:"code"` // the reason of the condition Scheduled
	Message string `json:"message,omitempty"`
	// SinceMillis is the instant since which the unit waits for this code, as
	// Tx.EndingMillis is one.
	SinceMillis int64 `json:"sinceMillis,omitempty"`
	// Refusals counts the attempts in a row that came to nothing, and NextMillis is
	// the instant of the next; 0 where the unit waits for no instant.
	Refusals   int   `json:"refusals,omitempty"`
	NextMillis int64 `json:"nextMillis,omitempty"`
	// Never is why the unit can never run, in a sentence: "" where it can, or that is
	// not known. NeverCode is the kind of the reason, NeverSinceMillis the instant
	// since which it is so.
	Never            string `json:"never,omitempty"`
	NeverCode        string `json:"neverCode,omitempty"`
	NeverSinceMillis int64  `json:"neverSinceMillis,omitempty"`
}

// Request is what a request id stands for (RequestKey).
type Request struct {
	// Object is the key of what the request made: a UnitPath.Key or a JobKey.
	Object string `json:"object"`
	UID    string `json:"uid"`
	// DocumentHash tells a repeated request from another one with its id.
	DocumentHash string `json:"documentHash"`
}

// NodeIdentity is the memory of an agent that may promise (NodeIdentityKey).
// The revision of its last write orders registrations.
type NodeIdentity struct {
	Incarnation resource.Incarnation `json:"incarnation"`
	// Fenced: no transaction may count on this incarnation any more, until it
	// registers again.
	Fenced bool `json:"fenced,omitempty"`
	// ConfirmedDead: nothing that this incarnation was granted runs any more, by
	// an operator's word or by the assume-dead policy. Only of a fenced one.
	ConfirmedDead bool `json:"confirmedDead,omitempty"`
	// FencedAt (RFC 3339) and FencedFor, a reason, are for people.
	FencedAt  string `json:"fencedAt,omitempty"`
	FencedFor string `json:"fencedFor,omitempty"`
	// AssumeDeadMillis: without contact for that long this incarnation's agent
	// begins to stop what it was granted. 0 where its operator has not opted in.
	AssumeDeadMillis int64 `json:"assumeDeadMillis,omitempty"`
}

// NodeSpec is what a node has and who may use it (NodeSpecKey).
type NodeSpec struct {
	Hostname    string          `json:"hostname,omitempty"`
	AgentAddr   string          `json:"agentAddr,omitempty"` // host:port
	Capacity    resource.Vector `json:"capacity,omitempty"`
	Allocatable resource.Vector `json:"allocatable,omitempty"`
	// Labels are the agent's layer, OperatorLabels the operators', which wins by
	// key. Which labels the node has with both is admission.Labels. A registration
	// writes the first and never the second.
	Labels         map[string]string `json:"labels,omitempty"`
	OperatorLabels map[string]string `json:"operatorLabels,omitempty"`
	Annotations    map[string]string `json:"annotations,omitempty"` // the operators'
	Taints         []Taint           `json:"taints,omitempty"`
	Unschedulable  bool              `json:"unschedulable,omitempty"`
	// Drain is the drain of the node; nil where there is none. Registrations keep it,
	// an operator who uncordons the node removes it.
	Drain *Drain `json:"drain,omitempty"`
	// Violation is why the node is isolated; nil where it is not. Registrations
	// keep it, an operator who uncordons the node removes it.
	Violation *Violation      `json:"violation,omitempty"`
	Topology  TopologySummary `json:"topology,omitzero"`
	Version   string          `json:"version,omitempty"` // of the agent
	Created   string          `json:"created,omitempty"` // RFC 3339, of the first registration
	// Registrations are the times of the last registrations, RFC 3339, at most
	// MaxRegistrations; the newest is the last.
	Registrations []string `json:"registrations,omitempty"`
	// RegisteredBy are the agents of the last of these registrations, in the same
	// order. Before this field was kept, there are times alone.
	RegisteredBy []Registrant `json:"registeredBy,omitempty"`
	// AssumeDeadMillis is that of the identity, as the last registration had it.
	AssumeDeadMillis int64 `json:"assumeDeadMillis,omitempty"`
	// StartsWork: the agent starts the commands of members.
	StartsWork bool `json:"startsWork,omitempty"`
	// RunsContainers: the agent starts commands in root file systems of their own.
	RunsContainers bool `json:"runsContainers,omitempty"`
	// MountsFolders: the agent mounts folders of the host in these root file systems.
	MountsFolders bool `json:"mountsFolders,omitempty"`
	// IgnoredLabels are keys that the agent registered and that count for nothing
	// (admission.AgentLabels).
	IgnoredLabels []string `json:"ignoredLabels,omitempty"`
	// Token is the id of the bootstrap token that the node was let in with, as the
	// last registration found it; "" without TLS.
	Token string `json:"token,omitempty"`
	// Approved is the most that the node may have without waiting for an operator;
	// nil approves whatever it registers.
	Approved *Capacity `json:"approved,omitempty"`
	// Expected is the capacity that the node's creation has named; nil where the node
	// was not created through the API. Registrations keep it.
	Expected *Expected `json:"expected,omitempty"`
	// Lowered are the amounts to which operators have lowered the allocatable part,
	// by resource. Registrations keep them.
	Lowered resource.Vector `json:"lowered,omitempty"`
	// Kubelet is the operators' part of the pool of devices that the kubelet of the host
	// hands out; nil where they have named none. Registrations keep it.
	Kubelet *KubeletPool `json:"kubelet,omitempty"`
	// Counts are the counted resources as the agent declares them, ascending by name.
	// Their amounts are in Capacity and Allocatable too.
	Counts []grant.Count `json:"counts,omitempty"`
}

// KubeletPool is the operators' part of a kubelet's pool, by the UUIDs of GPUs and MIG
// instances. It wins over the agent's configuration device by device.
type KubeletPool struct {
	Add    []string `json:"add,omitempty"`
	Remove []string `json:"remove,omitempty"`
}

// HasRegistered reports whether an agent has registered the node. A node that was
// created through the API has a specification before that.
func (s *NodeSpec) HasRegistered() bool { return s.Capacity != nil }

// Expected is a capacity as its sender has written it, by resource.
type Expected struct {
	Capacity    map[resource.Name]string `json:"capacity,omitempty"`
	Allocatable map[resource.Name]string `json:"allocatable,omitempty"`
}

// Registrant is an agent that registered: its host, its address, and its data
// folder by the id of the journal.
type Registrant struct {
	Hostname  string `json:"hostname,omitempty"`
	AgentAddr string `json:"agentAddr,omitempty"`
	Journal   string `json:"journal,omitempty"`
}

// String names the agent for people.
func (r Registrant) String() string {
	return fmt.Sprintf("host %s at %s (journal %.8s)", r.Hostname, r.AgentAddr, r.Journal)
}

// MaxRegistrations bounds NodeSpec.Registrations.
const MaxRegistrations = 8

// Violation is how a node's agent broke the protocol.
type Violation struct {
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"` // for people, at most 512 bytes
	At     string `json:"at,omitempty"`     // RFC 3339
	// Severed: no stream to the agent may be opened.
	Severed bool `json:"severed,omitempty"`
}

// Drain is a drain that has begun.
type Drain struct {
	Began string `json:"began,omitempty"` // RFC 3339
	// Allocations is the number of members that were to leave, since it began.
	Allocations int `json:"allocations,omitempty"`
}

// Capacity is how much a node has, and its devices by model.
type Capacity struct {
	Amounts resource.Vector `json:"amounts,omitempty"`
	Models  map[string]int  `json:"models,omitempty"`
}

// Taint keeps allocations without a matching toleration away, ends those that run, or
// has them prefer other nodes.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
	// AddedMillis is the instant at which the taint was set, as Tx.EndingMillis is one.
	AddedMillis int64 `json:"addedMillis,omitempty"`
}

// TopologySummary is a host in numbers; the full topology comes over the
// agent's stream.
type TopologySummary struct {
	Sockets   int      `json:"sockets,omitempty"`
	NUMANodes int      `json:"numaNodes,omitempty"`
	Cores     int      `json:"cores,omitempty"`
	CPUs      int      `json:"cpus,omitempty"`
	GPUs      int      `json:"gpus,omitempty"`
	GPUModels []string `json:"gpuModels,omitempty"` // distinct, ascending
	// NUMACPUs are the logical CPUs of each NUMA node that has any, by its id,
	// as a list such as "0-15,64-79". GPUModel is each device's position in
	// GPUModels. Hosts that were registered by an older version have neither.
	NUMACPUs map[int]string `json:"numaCPUs,omitempty"`
	GPUModel []int          `json:"gpuModel,omitempty"`
	// GPUMemory is that of the first device; 0 where there is none or an older
	// version has registered the host.
	GPUMemory resource.Bytes `json:"gpuMemory,omitempty"`
	// Clique is that of all devices, as devices.Device has it; "" where they have none, or
	// not the same.
	Clique string `json:"clique,omitempty"`
}

// NodeStatus is the last report of a node's agent (NodeStatusKey), as the coordinator
// that hears the agent has written it: at once when the conditions have changed, else
// at a coarse step. It is for readers; of its fields only the condition DeviceLost is
// an input to a decision.
type NodeStatus struct {
	Conditions []Condition `json:"conditions,omitempty"`
	// HeardAt is the time of the report (RFC 3339); "" where an older version wrote it.
	HeardAt string `json:"heardAt,omitempty"`
	// Usage is measured on the host, and Devices on its devices and MIG instances.
	Usage   resource.Vector `json:"usage,omitempty"`
	Devices []DeviceUse     `json:"devices,omitempty"`
	// Available is read and never written.
	Available resource.Vector `json:"available,omitempty"`
	// Kubelet is the pool of the host's kubelet; nil where the agent gives it none.
	Kubelet *KubeletReport `json:"kubelet,omitempty"`
	// Work is the measured use of members that run, ascending by transaction and member.
	Work []MemberUse `json:"work,omitempty"`
}

// MemberUse is the measured use of a member since its start, while it runs.
type MemberUse struct {
	Tx     resource.TxID `json:"tx"`
	Member int           `json:"member"`
	Use    Use           `json:"use"`
}

// CompareMember orders the uses of members.
func (u MemberUse) CompareMember(tx resource.TxID, member int) int {
	return cmp.Or(cmp.Compare(u.Tx, tx), cmp.Compare(u.Member, member))
}

// UseOf is the measured use of a member that runs; nil where there is none.
func (r *NodeStatus) UseOf(tx resource.TxID, member int) *Use {
	at, found := slices.BinarySearchFunc(r.Work, 0, func(u MemberUse, _ int) int { return u.CompareMember(tx, member) })
	if !found {
		return nil
	}
	return &r.Work[at].Use
}

// DeviceUse is the use of one device or MIG instance; devices.UnknownUse where the
// driver does not measure it.
type DeviceUse struct {
	UUID    string         `json:"uuid"`
	Percent int            `json:"percent"`
	Memory  resource.Bytes `json:"memory"`
}

// Condition is one aspect of a node's state.
type Condition struct {
	Type           string `json:"type"`
	Status         string `json:"status"` // True | False | Unknown
	Reason         string `json:"reason,omitempty"`
	Message        string `json:"message,omitempty"`
	LastTransition string `json:"lastTransition,omitempty"` // RFC 3339
}

// NodeLease says who hears the node's agent (NodeLeaseKey).
type NodeLease struct {
	Coordinator string `json:"coordinator"`
}

// NodeTx is the per-node index entry of a transaction (NodeTxKey): written and
// deleted in the same Txn as the record.
type NodeTx struct {
	Members []int `json:"members"` // indices of the members on this node
}

// Quota is what an operator set: a resource quota, a tree, a forest or
// the groups of a namespace (QuotaKey).
type Quota struct {
	UID string `json:"uid"`
	// Namespace of a resource quota; the others are in none.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Document is the object as it was submitted: its kind, what of its
	// metadata is the operator's, and its specification.
	Document json.RawMessage `json:"document"`
	// Former are former names of a tree's nodes, each with its name of today:
	// records of units that run name a group as it was at their commit.
	Former  map[string]string `json:"former,omitempty"`
	Created string            `json:"created,omitempty"` // RFC 3339
	// ChangedMillis is the instant of the last change of a resource quota, as
	// Tx.EndingMillis is one; 0 in a record of an older version.
	ChangedMillis int64 `json:"changedMillis,omitempty"`
}

// QuotaLimit is a namespace's hard limit (QuotaLimits). It is only read.
type QuotaLimit struct {
	Namespace string            `json:"namespace"`
	Tenant    resource.TenantID `json:"tenant"`
	// Hard bounds the sum of charges per resource, in base units; a resource
	// that is not named has no limit.
	Hard resource.Vector `json:"hard,omitempty"`
}

// LeaderAddress is the value of a leader's key: who it is and where it serves.
type LeaderAddress struct {
	ID   string `json:"id"`
	GRPC string `json:"grpc,omitempty"` // host:port
	REST string `json:"rest,omitempty"` // host:port
}

// FencedFor begins the reason of a record that a fence has made; the node's name
// follows.
const FencedFor = "fenced for "
