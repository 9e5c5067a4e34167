package api

// Job is a set of members, equal unless spec.members says otherwise. A gang of them
// starts together.
type Job struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document. Where the kind is absent, muster submit takes
	// a document with a spec.template as a Job.
	Kind string `json:"kind,omitempty" default:"Job" oneof:"Job"`
	// Metadata names the job.
	Metadata ObjectMeta `json:"metadata"`
	// Spec is the tenant's request.
	Spec JobSpec `json:"spec"`
	// Status is the state of the job, set by the server.
	Status JobStatus `json:"status,omitzero" by:"server"`
}

// JobSpec describes the members of a job and their number.
type JobSpec struct {
	// Parallelism is the number of members or, where completions is given, the most
	// members that run at the same time. A PATCH may change it: a greater number of
	// members adds members at the end, a smaller one ends those with the highest
	// indices. The first members of a gang, minMembers of them, stay.
	Parallelism *int32 `json:"parallelism,omitempty" default:"1" range:"1..4096" unit:"members" example:"4"`
	// Completions is the number of members, each of which has to succeed, of a job that
	// is no gang; the default is parallelism. A command reads the number of its member,
	// from 0, in MUSTER_INDEX. A gang has as many completions as parallelism.
	Completions *int32 `json:"completions,omitempty" range:"1..4096" unit:"members" example:"4"`
	// BackoffLimit is the number of retries after failures of members, of the whole
	// job, before the job fails. A retry waits 10 s, and twice as long as the one before
	// it, at most 6 minutes. A preemption, a drain or the loss of a node is no failure.
	BackoffLimit *int32 `json:"backoffLimit,omitempty" default:"6" range:"0.." unit:"retries" example:"3"`
	// OnMemberFailure is the consequence of a command that has failed: Restart starts
	// the members that started together again, FailJob ends the job, and Ignore lets the
	// other members go on.
	OnMemberFailure string `json:"onMemberFailure,omitempty" default:"Restart" oneof:"Restart,FailJob,Ignore" example:"FailJob"`
	// OnMemberLost is the consequence of the loss of a node, once its death is confirmed, for
	// the members that started together: with Restart all of them start again, with Replace
	// the others go on, and the lost member waits for another place. Members of a job that
	// is no gang are replaced in any case.
	OnMemberLost string `json:"onMemberLost,omitempty" default:"Restart" oneof:"Restart,Replace" example:"Replace"`
	// ActiveDeadlineSeconds is the time after which a unit of the job ends, since the
	// unit has last come from the queue and begun to run, with its retries: the unit and
	// the job are Failed then. Resource quotas
	// of the scope Terminating count jobs that have it, or the ttl of the template.
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty" range:"1.." unit:"seconds" example:"86400"`
	// TTLSecondsAfterFinished is the time after its end at which the job is removed, with
	// its members, and its name is free. The history keeps the job.
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty" default:"86400" range:"0.." unit:"seconds" example:"3600"`
	// Dependencies are conditions on other jobs, all of which have to come true before a
	// member starts. A PATCH cannot change them.
	Dependencies []JobDependency `json:"dependencies,omitempty"`
	// Template describes each member.
	Template Template `json:"template" required:"true"`
	// Members are the members where they differ, e.g. one launcher without GPUs and four
	// workers: sets of equal members, at most 8, in the order of their indices. All of them
	// start together or not at all; parallelism and minMembers are left out, or are their
	// sum. A PATCH cannot change them.
	Members []MemberSet `json:"members,omitempty"`
	// Priority orders the queue: greater numbers come first, and may preempt smaller
	// ones. It replaces the number of priorityClass.
	Priority *int32 `json:"priority,omitempty" default:"0" range:"0..1000000000" example:"200"`
	// PriorityClass is the name of a PriorityClass: low, default and normal are 0,
	// batch-high is 200, high-priority 1000, system-critical 1000000. Left out, it is the
	// class with globalDefault, else none. The job keeps the value that the class has at
	// the submission.
	PriorityClass string `json:"priorityClass,omitempty" example:"high-priority"`
	// Queue is the name of the queue that the units wait in: an RFC 1123 label. A
	// PATCH may change it while all units wait.
	Queue string `json:"queue,omitempty" default:"default" example:"nightly"`
	// Suspend keeps the units from running: they wait at their places in the order and
	// are not tried. Units that run are given notice with grace, and wait again. A
	// PATCH may change it at any time.
	Suspend *bool `json:"suspend,omitempty" default:"false" example:"true"`
}

// ReplacesLost reports whether a gang goes on without members whose nodes are lost.
func (s *JobSpec) ReplacesLost() bool { return s.OnMemberLost == "Replace" }

// IsSuspended reports whether the owner keeps the job's units from running.
func (j *Job) IsSuspended() bool { return j.Spec.Suspend != nil && *j.Spec.Suspend }

// Template describes each member of a job.
type Template struct {
	// Metadata has the labels and annotations of the members. The server names them:
	// name and namespace are left out.
	Metadata ObjectMeta `json:"metadata,omitzero"`
	// Spec is the request of one member. Priority, priorityClass, queue and
	// suspend are the job's own, and are left out here.
	Spec AllocationSpec `json:"spec"`
}

// JobStatus is the state of a job, as the server knows it.
type JobStatus struct {
	// Phase is the stage of the job's life: Queued, Running, Cancelling, and at the
	// end Succeeded, Failed, Cancelled or Preempted.
	Phase Phase `json:"phase,omitempty" example:"Running"`
	// QueuePosition is the place of the job's first unit that waits in its queue; 1 is
	// next, 0 is not in the queue. The place in the order over all queues is that of
	// explain.
	QueuePosition int `json:"queuePosition,omitempty" unit:"units" example:"3"`
	// Active is the number of members that run.
	Active int `json:"active" unit:"members" example:"4"`
	// Succeeded is the number of members that have succeeded.
	Succeeded int `json:"succeeded" unit:"members" example:"0"`
	// Failed is the number of members that have failed.
	Failed int `json:"failed" unit:"members" example:"0"`
	// Retries is the number of retries of backoffLimit that the job has used.
	Retries int `json:"retries,omitempty" unit:"retries" example:"2"`
	// NextRetryTime is the time before which a unit that has failed does not start
	// again; of several units the first such time.
	NextRetryTime string `json:"nextRetryTime,omitempty" format:"time" example:"2026-03-01T12:00:31Z"`
	// StartTime is the time when the first unit was committed.
	StartTime string `json:"startTime,omitempty" format:"time" example:"2026-03-01T12:00:01Z"`
	// Dependencies are the conditions of spec.dependencies, in their order.
	Dependencies []JobDependencyStatus `json:"dependencies,omitempty"`
	// Boost is the greater priority that the members which wait have for a while; absent
	// where there is none.
	Boost *JobBoost `json:"boost,omitempty"`
	// Conditions are aspects of the state: Queued, Running, GangBelowMinimum while lost
	// members of a gang wait for another place, and at the end Complete or Failed.
	Conditions []Condition `json:"conditions,omitempty"`
	// Allocations are the members.
	Allocations []JobMember `json:"allocations,omitempty"`
	// Message says in one line why the job does not run.
	Message string `json:"message,omitempty" text:"lines" example:"waits for room: short of 2 nvidia.com/gpu"`
}

// JobMember is one member of a job.
type JobMember struct {
	// Name is the name of the member's allocation.
	Name string `json:"name" example:"train-0"`
	// Node is the name of the node that the member is on; absent while it waits.
	Node string `json:"node,omitempty" example:"gpu-17"`
	// Phase is the stage of the member's life, as of an Allocation.
	Phase Phase `json:"phase" example:"Running"`
	// ExitCode is the exit code of the member's command once the command has ended:
	// 128 and the signal's number where a signal ended it, 255 where nobody saw the end.
	ExitCode *int32 `json:"exitCode,omitempty" range:"0..255" example:"0"`
	// ExitReason says how the command ended: Completed by itself, Stopped or Killed after
	// it was asked to end, NotStarted, PrologFailed, SupervisorLost or NodeRestarted.
	ExitReason string `json:"exitReason,omitempty" text:"lines" example:"Completed"`
	// ExitMessage explains the reason, where there is more to say.
	ExitMessage string `json:"exitMessage,omitempty" text:"lines" example:"command \"trian\" is in no folder of PATH /usr/bin:/bin"`
	// Use is the measured use of the member from its start to its end, or so far while the
	// member runs: as its node has reported it last, up to a minute ago. Use is absent where
	// nothing was measured. It is computed at reading and makes no event.
	Use *MemberUse `json:"use,omitempty"`
}

// MemberUse is the measured use of a member from its start on. Sums and peaks never
// fall.
type MemberUse struct {
	// CPUMillis is the time of processors, of all processes of the member.
	CPUMillis int64 `json:"cpuMillis" unit:"milliseconds" range:"0.." example:"61250"`
	// MemoryBytes is the memory in use at the last sample; 0 at the end.
	MemoryBytes int64 `json:"memoryBytes,omitempty" unit:"bytes" range:"0.." example:"1073741824"`
	// PeakMemoryBytes is the most memory in use: as the kernel counts it where the member
	// has a cgroup, else the most of all samples, and of any single process.
	PeakMemoryBytes int64 `json:"peakMemoryBytes" unit:"bytes" range:"0.." example:"2147483648"`
	// OOMKills is the number of processes that the kernel has killed because the member
	// had no memory left. The number is absent where the member has no cgroup.
	OOMKills *int64 `json:"oomKills,omitempty" unit:"processes" range:"0.." example:"1"`
	// Devices are the use of the member's GPUs and MIG instances, by UUID.
	Devices []MemberDeviceUse `json:"devices,omitempty"`
}

// MemberDeviceUse is the use of one GPU or MIG instance by a member. While others use
// the same GPU, as beside a share, the member's part is not known and counts as 0.
type MemberDeviceUse struct {
	// UUID is the GPU's, or the instance's. A job with more than 1024 devices has one sum
	// for each member, under the name all.
	UUID string `json:"uuid" example:"GPU-1b0c2d9e-7a15-4c1e-9f5e-2f8f0f3a6f10"`
	// BusyMillis is the time during which the GPU computed for the member: the sum of
	// the busy part times time. A driver that reports no use of an instance leaves 0.
	BusyMillis int64 `json:"busyMillis" unit:"milliseconds" range:"0.." example:"58100"`
	// MemoryBytes is the device memory in use at the last sample; 0 at the end.
	MemoryBytes int64 `json:"memoryBytes,omitempty" unit:"bytes" range:"0.." example:"8589934592"`
	// PeakMemoryBytes is the most device memory of all samples.
	PeakMemoryBytes int64 `json:"peakMemoryBytes" unit:"bytes" range:"0.." example:"17179869184"`
}

// JobList is a list of jobs, ordered by namespace and name.
type JobList struct {
	// Kind is JobList.
	Kind string `json:"kind" oneof:"JobList"`
	// Metadata has the revision and the token of the next page.
	Metadata ListMeta `json:"metadata"`
	// Items are the jobs.
	Items []Job `json:"items"`
}
