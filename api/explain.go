package api

import "github.com/musterd/muster/resource"

// Explanation says why an allocation or a job does not run: on each level the
// constraint that binds, with its numbers.
type Explanation struct {
	// Kind is Explanation.
	Kind string `json:"kind" oneof:"Explanation"`
	// Namespace is the namespace of the object.
	Namespace string `json:"namespace" example:"default"`
	// Name is the name of the object.
	Name string `json:"name" example:"train"`
	// Phase is the stage of the object's life.
	Phase Phase `json:"phase" example:"Queued"`
	// Queue is the queue that the unit waits in.
	Queue string `json:"queue,omitempty" example:"default"`
	// QueuePosition is the place in the order; 1 is next, 0 is not in the queue.
	QueuePosition int `json:"queuePosition,omitempty" unit:"units" example:"3"`
	// Summary is the answer in one sentence, with its numbers.
	Summary string `json:"summary" example:"waits for room: short of 2 nvidia.com/gpu (8 wanted, 6 free)"`
	// Members is the number of members that the next unit needs at once.
	Members int `json:"members" unit:"members" example:"4"`
	// Fit is the number of members that would have room now.
	Fit int `json:"fit" unit:"members" example:"3"`
	// Quota are the quotas that are short.
	Quota []resource.Reason `json:"quota,omitempty"`
	// Shortages are the missing amounts, summed over the nodes that could be used.
	Shortages []resource.Reason `json:"shortages,omitempty"`
	// Nodes are the answers of the nodes, one by one.
	Nodes []NodeExplanation `json:"nodes,omitempty"`
	// Nomination names the units that make room for this one, while they leave.
	Nomination *Nomination `json:"nomination,omitempty"`
	// PreemptionBlockedBy is the reason why no other unit is preempted for this
	// one, where others could make room.
	PreemptionBlockedBy string `json:"preemptionBlockedBy,omitempty" example:"no unit of a lower priority runs"`
	// Attempts is the number of placements that were tried.
	Attempts int `json:"attempts,omitempty" unit:"attempts" example:"12"`
	// LastAttempt is the time of the last placement that was tried.
	LastAttempt string `json:"lastAttempt,omitempty" format:"time" example:"2026-03-01T12:00:00Z"`
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
	Unit string `json:"unit" example:"default/job/sweep/0"`
	// Priority is the unit's priority.
	Priority int32 `json:"priority" range:"0..1000000000" example:"0"`
	// Members is the number of the unit's members.
	Members int `json:"members" unit:"members" example:"2"`
	// Freed reports whether all members have left.
	Freed bool `json:"freed,omitempty" example:"true"`
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
