package api

import "github.com/musterd/muster/resource"

// Kinds of the past.
const (
	KindPastAllocation = "PastAllocation"
	KindPastPreemption = "PastPreemption"
	KindPastEvent      = "PastEvent"
)

// PastAllocation is an allocation, or a unit of a job, as the history has it: also after
// its object is gone.
type PastAllocation struct {
	// UID is the id of the allocation; a name can come back, a uid cannot.
	UID string `json:"uid" example:"alloc-7f3a2b1c"`
	// Namespace is the namespace of the allocation.
	Namespace string `json:"namespace" example:"vision-dev"`
	// Name is the name of the allocation, or that of the job for a unit of a job.
	Name string `json:"name" example:"train"`
	// Unit is the number of the unit within its job, from 0; absent for an allocation that
	// is none of a job.
	Unit *int `json:"unit,omitempty" example:"0"`
	// Job is the name of the job; absent for an allocation that is none of a job.
	Job string `json:"job,omitempty" example:"train"`
	// Tenant is the tenant that was charged.
	Tenant string `json:"tenant" example:"vision"`
	// User is the submitter of the work.
	User string `json:"user,omitempty" example:"ada@example.org"`
	// Queue is the queue of the allocation.
	Queue string `json:"queue,omitempty" example:"gpu-training"`
	// Priority is the priority of the allocation.
	Priority int32 `json:"priority,omitempty" example:"100"`
	// Phase is the last phase.
	Phase string `json:"phase" example:"Succeeded"`
	// Reason says why the allocation has that phase, for programs.
	Reason string `json:"reason,omitempty" example:"Completed"`
	// Message says it for people.
	Message string `json:"message,omitempty" example:"exit code 0"`
	// Requests are the amounts that all members asked for.
	Requests map[resource.Name]string `json:"requests,omitempty" format:"quantity" example:"nvidia.com/gpu: 4"`
	// CreationTimestamp is the time of the submission.
	CreationTimestamp string `json:"creationTimestamp" format:"time" example:"2026-03-01T12:00:00Z"`
	// ScheduledTime is the time of the first commit; absent before it.
	ScheduledTime string `json:"scheduledTime,omitempty" format:"time" example:"2026-03-01T12:00:05Z"`
	// StartTime is the time when all members were held first; absent before it.
	StartTime string `json:"startTime,omitempty" format:"time" example:"2026-03-01T12:00:06Z"`
	// CompletionTime is the time of the end; absent before it.
	CompletionTime string `json:"completionTime,omitempty" format:"time" example:"2026-03-01T14:00:00Z"`
}

// PastPreemption is an eviction of an allocation as the history has it.
type PastPreemption struct {
	// ID names the preemption.
	ID string `json:"id" example:"alloc-7f3a2b1c.42.7"`
	// Allocation is the name of the allocation that was evicted.
	Allocation string `json:"allocation" example:"low-priority-batch"`
	// Namespace is the namespace of that allocation.
	Namespace string `json:"namespace,omitempty" example:"vision-dev"`
	// Tenant is the tenant of that allocation.
	Tenant string `json:"tenant" example:"vision"`
	// Priority is the priority of that allocation.
	Priority int32 `json:"priority,omitempty" example:"10"`
	// PreemptorPriority is the priority of the work that needed the room.
	PreemptorPriority int32 `json:"preemptorPriority,omitempty" example:"500"`
	// Reason says why the room was needed.
	Reason string `json:"reason,omitempty" example:"higher priority"`
	// Outcome is the state of the eviction: Evicting, Evicted, Rescheduled, Released
	// or Ended.
	Outcome string `json:"outcome" example:"Rescheduled"`
	// InitiatedBy is the person behind the request for the eviction; absent where the leader
	// decided.
	InitiatedBy string `json:"initiatedBy,omitempty" example:"oncall@example.org"`
	// ResourcesFreed are the amounts that the allocation held.
	ResourcesFreed map[resource.Name]string `json:"resourcesFreed,omitempty" format:"quantity" example:"nvidia.com/gpu: 4"`
	// InitiatedTime is the time of the notice.
	InitiatedTime string `json:"initiatedTime" format:"time" example:"2026-03-01T12:00:00Z"`
	// EvictedTime is the time when nothing was held any more.
	EvictedTime string `json:"evictedTime,omitempty" format:"time" example:"2026-03-01T12:00:30Z"`
	// RescheduledTime is the time when the allocation ran again.
	RescheduledTime string `json:"rescheduledTime,omitempty" format:"time" example:"2026-03-01T12:05:00Z"`
}

// PastEvent is something that happened to an allocation, as the history has it.
type PastEvent struct {
	// Time is the time of the event.
	Time string `json:"time" format:"time" example:"2026-03-01T12:00:00Z"`
	// Type is Created, Waiting, Scheduled, Started, Signaled, Preempted or Ended.
	Type string `json:"type" oneof:"Created,Waiting,Scheduled,Started,Signaled,Preempted,Ended" example:"Scheduled"`
	// Tenant is the tenant of the allocation.
	Tenant string `json:"tenant" example:"vision"`
	// Namespace is the namespace of the allocation.
	Namespace string `json:"namespace" example:"vision-dev"`
	// Allocation is the name of the allocation.
	Allocation string `json:"allocation" example:"train-0"`
	// Reason says why, for programs.
	Reason string `json:"reason,omitempty" example:"Insufficient"`
	// Message says it for people.
	Message string `json:"message,omitempty" example:"0 of 4 nodes have room"`
}

// PastAllocationList is a page of allocations, the newest first.
type PastAllocationList struct {
	// Kind is PastAllocationList.
	Kind string `json:"kind" oneof:"PastAllocationList"`
	// Metadata has the token of the next page, whose allocations are older.
	Metadata ListMeta `json:"metadata"`
	// Items are the allocations.
	Items []PastAllocation `json:"items"`
}

// PastPreemptionList is a page of preemptions, the newest first.
type PastPreemptionList struct {
	// Kind is PastPreemptionList.
	Kind string `json:"kind" oneof:"PastPreemptionList"`
	// Metadata has the token of the next page, whose preemptions are older.
	Metadata ListMeta `json:"metadata"`
	// Items are the preemptions.
	Items []PastPreemption `json:"items"`
}

// PastEventList is a page of events, the newest first.
type PastEventList struct {
	// Kind is PastEventList.
	Kind string `json:"kind" oneof:"PastEventList"`
	// Metadata has the token of the next page, whose events are older.
	Metadata ListMeta `json:"metadata"`
	// Items are the events.
	Items []PastEvent `json:"items"`
}
