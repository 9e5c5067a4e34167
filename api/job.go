package api

// Job is a set of equal members, placed together where it is a gang.
type Job struct {
	APIVersion string     `json:"apiVersion,omitempty"`
	Kind       string     `json:"kind,omitempty"`
	Metadata   ObjectMeta `json:"metadata"`
	Spec       JobSpec    `json:"spec"`
	Status     JobStatus  `json:"status,omitzero"`
}

// JobSpec describes the members. A gang (template…gangScheduling) starts with
// minMembers at once or not at all; minMembers defaults to parallelism.
type JobSpec struct {
	Parallelism           *int32   `json:"parallelism,omitempty"` // default 1
	Completions           *int32   `json:"completions,omitempty"`
	BackoffLimit          *int32   `json:"backoffLimit,omitempty"`
	ActiveDeadlineSeconds *int64   `json:"activeDeadlineSeconds,omitempty"`
	Template              Template `json:"template"`
	Priority              *int32   `json:"priority,omitempty"`
	PriorityClass         string   `json:"priorityClass,omitempty"`
	Queue                 string   `json:"queue,omitempty"`
}

// Template is the member's specification.
type Template struct {
	Metadata ObjectMeta     `json:"metadata,omitzero"`
	Spec     AllocationSpec `json:"spec"`
}

// JobStatus is what the server knows of a job.
type JobStatus struct {
	Phase         Phase       `json:"phase,omitempty"`
	QueuePosition int         `json:"queuePosition,omitempty"`
	Active        int         `json:"active"`
	Succeeded     int         `json:"succeeded"`
	Failed        int         `json:"failed"`
	StartTime     string      `json:"startTime,omitempty"`
	Conditions    []Condition `json:"conditions,omitempty"`
	Allocations   []JobMember `json:"allocations,omitempty"`
	Message       string      `json:"message,omitempty"`
}

// JobMember is one line of a job's status.
type JobMember struct {
	Name  string `json:"name"`
	Node  string `json:"node,omitempty"`
	Phase Phase  `json:"phase"`
}

// JobList is a list of jobs ordered by namespace and name.
type JobList struct {
	Kind     string   `json:"kind"`
	Metadata ListMeta `json:"metadata"`
	Items    []Job    `json:"items"`
}
