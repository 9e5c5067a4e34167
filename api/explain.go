package api

import "github.com/musterd/muster/resource"

// Explanation says why an allocation or a job does not run: the one reason that
// binds, whether the object can ever run, changes that would help, and the nodes by
// their reasons, in this order.
type Explanation struct {
	// Kind is Explanation.
	Kind string `json:"kind" oneof:"Explanation"`
	// Format is the version of this document. Format 1 had no field of that name.
	Format int `json:"format" example:"2"`
	// Object is the kind of the object.
	Object string `json:"object" oneof:"Allocation,Job"`
	// Namespace is the namespace of the object.
	Namespace string `json:"namespace" example:"default"`
	// Name is the name of the object.
	Name string `json:"name" example:"train"`
	// Phase is the stage of the object's life.
	Phase Phase `json:"phase" example:"Queued"`
	// DryRun reports whether the object was tried and not submitted.
	DryRun bool `json:"dryRun,omitempty" example:"true"`
	// Placement is the place that a dry run has found.
	Placement []MemberNode `json:"placement,omitempty"`
	// Summary is the reason that binds, in one sentence with its numbers.
	Summary string `json:"summary" example:"default/train wants 8 GPUs: 2 GPUs short (8 wanted, 6 free) on the 3 nodes that may take it."`
	// Reason is the reason that binds, for programs.
	Reason resource.Reason `json:"reason"`
	// Outlook says whether the object can ever run; absent where that is no
	// question.
	Outlook *Outlook `json:"outlook,omitempty"`
	// Alternative is the number of the alternative that the object runs with, from 1;
	// absent where it runs with the specification's own request, or waits.
	Alternative int `json:"alternative,omitempty" range:"1..7" example:"1"`
	// Alternatives are the alternatives of an object that waits, in order; the other
	// fields are about the specification's own request.
	Alternatives []AlternativeExplanation `json:"alternatives,omitempty"`
	// Help lists changes that were tried on a copy of the cluster, and helped.
	Help []Help `json:"help,omitempty"`
	// Nodes are all nodes, by their reasons; the largest group is the first.
	Nodes []NodeGroup `json:"nodes,omitempty"`
	// Set is the name of the set of members that members, fit, shortages and nodes are
	// about: of an object that waits and whose members differ.
	Set string `json:"set,omitempty" example:"worker"`
	// Members is the number of members that the next unit needs at once.
	Members int `json:"members" unit:"members" example:"4"`
	// Fit is the number of members that would have room now.
	Fit int `json:"fit" unit:"members" example:"3"`
	// Running is the number of members of the whole object that run.
	Running int `json:"running" unit:"members" example:"0"`
	// Queue is the place in the queue; absent where the object does not wait.
	Queue *QueuePlace `json:"queue,omitempty"`
	// Quota are the quotas that are short.
	Quota []resource.Reason `json:"quota,omitempty"`
	// Shortages are the missing amounts, summed over the nodes that may take the
	// object.
	Shortages []resource.Reason `json:"shortages,omitempty"`
	// Nomination names the units that make room for this one, while they leave.
	Nomination *Nomination `json:"nomination,omitempty"`
	// PreemptionBlockedBy is the reason why no other unit is preempted for this
	// one, where others could make room.
	PreemptionBlockedBy string `json:"preemptionBlockedBy,omitempty" example:"no unit of a lower priority runs"`
	// Attempts is the number of placements that were tried.
	Attempts int `json:"attempts" unit:"attempts" example:"12"`
	// LastAttempt is the time of the last placement that was tried.
	LastAttempt string `json:"lastAttempt,omitempty" format:"time" example:"2026-03-01T12:00:00Z"`
	// EachNode are the answers of the nodes, one by one, where the request has
	// nodes=all.
	EachNode []NodeExplanation `json:"eachNode,omitempty"`
}

// ExplanationFormat is the version of Explanation that this package writes.
const ExplanationFormat = 2

// MemberNode is the node of one member.
type MemberNode struct {
	// Member is the index of the member.
	Member int `json:"member" example:"0"`
	// Node is the node's id.
	Node resource.NodeID `json:"node" example:"gpu-17"`
}

// QueuePlace is a unit's place among the units that wait: in its own queue, and in
// the one order over all queues, by which units are tried.
type QueuePlace struct {
	// Name is the name of the queue.
	Name string `json:"name" example:"default"`
	// Position is the place in the queue; 1 is next.
	Position int `json:"position" unit:"units" example:"3"`
	// Length is the number of units in the queue.
	Length int `json:"length" unit:"units" example:"12"`
	// OverallPosition is the place in the order over all queues; 1 is next.
	OverallPosition int `json:"overallPosition" unit:"units" example:"20"`
	// OverallLength is the number of units in all queues.
	OverallLength int `json:"overallLength" unit:"units" example:"50"`
}

// The values of Outlook.Can.
const (
	CanNow   = "Now"   // there is room
	CanLater = "Later" // the registered nodes would have room if they were free
	CanNever = "Never" // not on the nodes that are registered now, were all of them free
)

// Outlook says whether a unit can ever run on the nodes that are registered now,
// absent ones included.
type Outlook struct {
	// Can says when: there is room now, there would be room on free nodes, or
	// never on the nodes that are registered now.
	Can string `json:"can" oneof:"Now,Later,Never"`
	// Reason is the bound that keeps the unit from running; absent unless Never.
	Reason *resource.Reason `json:"reason,omitempty"`
	// Message is the outlook in one sentence.
	Message string `json:"message" example:"Never on the nodes registered now: no node has more than 8 GPUs."`
}

// Help is one change that would let the unit start.
type Help struct {
	// Code is the change, for programs.
	Code string `json:"code" example:"FewerGPUs"`
	// Message is the change in one sentence.
	Message string `json:"message" example:"with 6 GPUs in place of 8 it would start now"`
	// At is the time at which the help comes by itself; absent where no end is
	// enforced.
	At string `json:"at,omitempty" format:"time" example:"2026-03-01T12:00:00Z"`
}

// NodeGroup is the nodes that answer with the same reasons.
type NodeGroup struct {
	// Count is the number of nodes.
	Count int `json:"count" unit:"nodes" example:"148"`
	// Fit is the number of members that would have room on these nodes now.
	Fit int `json:"fit" unit:"members" example:"0"`
	// Message is the reasons in words; empty where the nodes have room.
	Message string `json:"message" example:"label gpu-type is a100, want h100"`
	// Reasons are the reasons, each with the greatest have of the group.
	Reasons []resource.Reason `json:"reasons,omitempty"`
	// Names are the first nodes of the group; with nodes=all they are all.
	Names []resource.NodeID `json:"names" example:"gpu-17"`
}

// Nomination is a place that other units have to leave first.
type Nomination struct {
	// WaitingFor names, in one sentence, the event that the nomination waits for.
	WaitingFor string `json:"waitingFor" example:"2 victims still hold their devices"`
	// Victims are the units that are evicted.
	Victims []Victim `json:"victims"`
	// Since is the time when the victims were given notice; absent before that.
	Since string `json:"since,omitempty" format:"time" example:"2026-03-01T12:00:00Z"`
}

// Victim is a unit that is evicted for another unit.
type Victim struct {
	// Unit is the unit's path: NAMESPACE/alloc/NAME/N or NAMESPACE/job/NAME/N.
	// Absent where the unit belongs to another tenant than the caller.
	Unit string `json:"unit,omitempty" example:"default/job/sweep/0"`
	// Priority is the unit's priority.
	Priority int32 `json:"priority" range:"0..1000000000" example:"0"`
	// Members is the number of the unit's members.
	Members int `json:"members" unit:"members" example:"2"`
	// GPUs is the amount of GPUs that the unit holds.
	GPUs string `json:"gpus" unit:"devices" example:"8"`
	// Freed reports whether all members have left.
	Freed bool `json:"freed,omitempty" example:"true"`
}

// AlternativeExplanation says why one alternative has no place now.
type AlternativeExplanation struct {
	// Number is the number of the alternative, from 1.
	Number int `json:"number" example:"1"`
	// Request is the request of one member in words.
	Request string `json:"request" example:"2 GPUs of model A100"`
	// Reason is the reason that binds.
	Reason resource.Reason `json:"reason"`
	// Fit is the number of members that would have room now.
	Fit int `json:"fit" unit:"members" example:"1"`
}

// NodeExplanation is one node's answer to one member.
type NodeExplanation struct {
	// Node is the node's id.
	Node resource.NodeID `json:"node" example:"gpu-17"`
	// Fit is the number of members that would have room here now.
	Fit int `json:"fit" unit:"members" example:"1"`
	// Reasons say why no more have room.
	Reasons []resource.Reason `json:"reasons,omitempty"`
}
