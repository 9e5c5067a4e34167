package api

import (
	"slices"

	"github.com/musterd/muster/resource"
)

// ObjectMeta names an object and describes it. The values of a submission for uid,
// resourceVersion, the timestamps and the grace period are ignored.
type ObjectMeta struct {
	// Name is the object's name, unique among the objects of its kind and
	// namespace: an RFC 1123 subdomain of at most 253 characters, of a job at most
	// 248. Quota trees and forests may have capitals and underscores.
	Name string `json:"name,omitempty" example:"train"`
	// Namespace is the namespace of the object: an RFC 1123 label. Nodes, quota
	// trees, forests and bindings, tokens and certificates have none. Left out, it
	// is the namespace of the request.
	Namespace string `json:"namespace,omitempty" example:"default"`
	// UID is unique over all objects of all times.
	UID string `json:"uid,omitempty" by:"server" example:"alloc-00000000000000a1-1"`
	// ResourceVersion is the store's revision of the last change. In an update the
	// field is a precondition: an object with another version is answered with 409.
	ResourceVersion string `json:"resourceVersion,omitempty" example:"1042"`
	// CreationTimestamp is the time when the object was accepted.
	CreationTimestamp string `json:"creationTimestamp,omitempty" by:"server" format:"time" example:"2026-03-01T12:00:00Z"`
	// DeletionTimestamp is the time when the deletion was asked for or, where nobody
	// has asked, when notice of an eviction was given; it is absent before that.
	DeletionTimestamp string `json:"deletionTimestamp,omitempty" by:"server" format:"time" example:"2026-03-01T12:30:00Z"`
	// DeletionGracePeriodSeconds is the time between the notice of the deletion and
	// the forced stop.
	DeletionGracePeriodSeconds *int64 `json:"deletionGracePeriodSeconds,omitempty" by:"server" unit:"seconds" example:"30"`
	// Labels are key and value pairs that selectors match. A key is
	// [DNS-PREFIX/]NAME; name and value have at most 63 letters, digits, '-', '_' or
	// '.'. An object has at most 64.
	Labels map[string]string `json:"labels,omitempty" example:"{team: vision}"`
	// Annotations are key and value pairs that Muster keeps: at most 256, at most 256
	// KiB of keys and values together. Of an Allocation, scheduler.example.com/gang-size
	// and max-wait mean minMembers and timeout of its gangScheduling; Muster interprets
	// no others.
	Annotations map[string]string `json:"annotations,omitempty" text:"lines" example:"{contact: ada@example.org}"`
}

// Allocation is the devices, CPUs and memory of one member on one node. A client
// submits it by itself, or the server makes it for each member of a Job.
type Allocation struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document. Where the kind is absent, muster submit takes
	// a document with a spec.template as a Job and any other as an Allocation.
	Kind string `json:"kind,omitempty" default:"Allocation" oneof:"Allocation"`
	// Metadata names the allocation.
	Metadata ObjectMeta `json:"metadata"`
	// Spec is the tenant's request.
	Spec AllocationSpec `json:"spec"`
	// Status is the state of the allocation, set by the server.
	Status AllocationStatus `json:"status,omitzero" by:"server"`
}

// AllocationSpec is a tenant's request for one member.
type AllocationSpec struct {
	// Resources are the amounts that the member asks for.
	Resources Requirements `json:"resources"`
	// Alternatives are other requests that would do, in order, at most 7. The request of
	// the specification itself comes first; an alternative is tried where nothing before it
	// has room, and another unit is evicted only where no alternative has room. All members
	// of a unit have the same one. Not together with minMembers of a group.
	Alternatives []Alternative `json:"alternatives,omitempty"`
	// Priority orders the queue: greater numbers come first, and may preempt smaller
	// ones. It replaces the number of priorityClass. A job has it in its own spec,
	// not in the template.
	Priority *int32 `json:"priority,omitempty" default:"0" range:"0..1000000000" example:"200"`
	// PriorityClass is the name of a PriorityClass: low, default and normal are 0,
	// batch-high is 200, high-priority 1000, system-critical 1000000. Left out, it is the
	// class with globalDefault, else none. The unit keeps the value that the class has at
	// the submission. A job has it in its own spec, not in the template.
	PriorityClass string `json:"priorityClass,omitempty" example:"high-priority"`
	// PreemptionPolicy says which other units may be evicted to make room for this
	// one: PreemptLowerPriority those of a lower priority, OwnQuota those alone that use the
	// quota of its own group, Never none. Left out, it is that of the priority class, else
	// preemptionPolicy of the coordinators' configuration.
	PreemptionPolicy string `json:"preemptionPolicy,omitempty" oneof:"PreemptLowerPriority,OwnQuota,Never"`
	// Scheduling restricts the nodes and devices that the member may have.
	Scheduling Scheduling `json:"scheduling,omitzero"`
	// TTL is the time after which the allocation, or a member of a job, ends, since its
	// unit has first run: the unit is Succeeded then, with the reason TTLExpired.
	TTL string `json:"ttl,omitempty" format:"duration" range:"1ns.." example:"7200s"`
	// Queue is the name of the queue that the unit waits in: an RFC 1123 label. A job
	// has it in its own spec, not in the template. A PATCH may change it while the
	// unit waits.
	Queue string `json:"queue,omitempty" default:"default" example:"nightly"`
	// Suspend keeps the unit from running: it waits at its place in the order and is
	// not tried. A unit that runs is given notice with grace, and waits again. A PATCH
	// may change it at any time. A job has it in its own spec, not in the template.
	Suspend *bool `json:"suspend,omitempty" default:"false" example:"true"`
	// GangScheduling is the same as scheduling.gangScheduling; a document has at most
	// one of the two.
	GangScheduling *GangScheduling `json:"gangScheduling,omitempty"`
	// Quota names the quota groups that the unit is charged to, where they are not
	// those of its namespace. Muster's own field.
	Quota *QuotaDemand `json:"quota,omitempty"`
	// Command is the program that each member of a job runs, and its first arguments.
	// A program without a slash is looked up in PATH. Where the cluster starts no
	// processes, and in an Allocation, a command is refused with 422. With args and env
	// together at most 64 KiB and 256 entries.
	Command []string `json:"command,omitempty" text:"free" example:"[python3, train.py]"`
	// Args are further arguments of the command.
	Args []string `json:"args,omitempty" text:"free" example:"[--epochs, \"10\"]"`
	// Env are variables of the environment of the command. Muster's own variables and
	// those of the granted devices cannot be set: MUSTER_*, MASTER_ADDR, MASTER_PORT,
	// CUDA_VISIBLE_DEVICES.
	Env []EnvVar `json:"env,omitempty"`
	// WorkingDir is the folder that the command begins in, an absolute path. Left out,
	// the agent of the node chooses.
	WorkingDir string `json:"workingDir,omitempty" example:"/home/ada/train"`
	// Rootfs is the folder of a root file system that the command runs in, an absolute path on
	// the nodes, which has a container of its own by the node's crun. It is read-only there, and
	// workingDir is a folder of it. Left out, the command runs in the file system of the node.
	// The operators of the nodes name the folders in which root file systems may lie.
	Rootfs string `json:"rootfs,omitempty" example:"/srv/images/pytorch"`
	// Bundle is the folder of an OCI bundle, an absolute path on the nodes, in place of rootfs:
	// a root file system with a config.json, whose command, environment and working directory
	// count where the job gives none. docs/work.md lists the fields of config.json that count.
	Bundle string `json:"bundle,omitempty" example:"/srv/images/pytorch"`
	// Mounts are folders and files of the nodes that the command sees in its root file system,
	// with the rights of its user: at most 32. Only with rootfs or bundle. The operators of the
	// nodes name the folders whose contents may be mounted.
	Mounts []Mount `json:"mounts,omitempty"`
	// Stdin: the command has a standard input, which a client that attaches sends; until
	// then the command waits where it reads. Otherwise the input is empty. For a job of one
	// member.
	Stdin bool `json:"stdin,omitempty" default:"false" example:"true"`
	// TTY: the command has a terminal. Its size is that of a client that attaches, and 24
	// rows and 80 columns before. For a job of one member.
	TTY bool `json:"tty,omitempty" default:"false" example:"true"`
	// Signal is sent to the process group of the command before a known end: that of ttl
	// and of activeDeadlineSeconds, and an eviction. One of HUP, INT, QUIT, USR1, USR2,
	// ALRM, TERM, CONT, URG, XCPU and WINCH.
	Signal string `json:"signal,omitempty" example:"USR1"`
	// SignalBefore is the time from the signal to the end.
	SignalBefore string `json:"signalBefore,omitempty" default:"60s" format:"duration" range:"1s.." example:"5m"`
}

// Gang is the gang asked for in either of its two places, or nil.
func (s *AllocationSpec) Gang() *GangScheduling {
	if s.GangScheduling != nil {
		return s.GangScheduling
	}
	return s.Scheduling.GangScheduling
}

// IsSuspended reports whether the owner keeps the allocation from running.
func (a *Allocation) IsSuspended() bool { return a.Spec.Suspend != nil && *a.Spec.Suspend }

// Requirements are amounts by resource. The resources are cpu (cores, 1m is a
// thousandth), muster.io/cores (whole cores with all their threads), memory
// (bytes), ephemeral-storage (bytes of the file system of the agent's work folder), hugepages-SIZE (bytes, a multiple of the page size), nvidia.com/gpu
// (devices; less than 1 is a share of one device), nvidia.com/mig-PROFILE
// (MIG instances) and the names with a domain that nodes declare or that an operator
// has created. At most 64 resources are named.
type Requirements struct {
	// Requests are the amounts that the member is granted. More than 1
	// nvidia.com/gpu must be whole.
	Requests map[resource.Name]string `json:"requests,omitempty" strict:"number" format:"quantity" example:"{cpu: 8000m, memory: 32Gi, nvidia.com/gpu: 2}"`
	// Limits are the amounts that the member may use at most. A limit without a
	// request is also the request. Limits of whole cores, huge pages and MIG
	// instances equal their requests. A limit of cpu or memory beyond its request binds the
	// processes of a command, where the host enforces it (docs/work.md); other limits beyond
	// their requests are recorded and not acted on.
	Limits map[resource.Name]string `json:"limits,omitempty" strict:"number" format:"quantity" example:"{cpu: 8000m}"`
}

// Phase is where an allocation or a job stands.
type Phase string

// The phases. Allocations go Pending → Running → Terminating → an end; jobs
// are Queued instead of Pending and Cancelling instead of Terminating.
const (
	Pending     Phase = "Pending"
	Queued      Phase = "Queued"
	Running     Phase = "Running"
	Terminating Phase = "Terminating"
	Cancelling  Phase = "Cancelling"
	Succeeded   Phase = "Succeeded"
	Failed      Phase = "Failed"
	Cancelled   Phase = "Cancelled"
	Preempted   Phase = "Preempted"
)

// Ended reports whether the phase is final.
func (p Phase) Ended() bool {
	return p == Succeeded || p == Failed || p == Cancelled || p == Preempted
}

// AllocationStatus is the state of an allocation, as the server knows it.
type AllocationStatus struct {
	// Phase is the stage of the allocation's life: Pending, Running, Terminating, and
	// at the end Succeeded, Failed, Cancelled or Preempted.
	Phase Phase `json:"phase,omitempty" example:"Running"`
	// NodeID is the id of the node that the allocation is on, or that its command ran on.
	NodeID resource.NodeID `json:"nodeId,omitempty" example:"gpu-17"`
	// NodeName is the name of the node object. The host's own name is among the
	// node's addresses.
	NodeName string `json:"nodeName,omitempty" example:"gpu-17"`
	// StartTime is the time when the allocation was committed.
	StartTime string `json:"startTime,omitempty" format:"time" example:"2026-03-01T12:00:01Z"`
	// Alternative is the number of the alternative that was chosen, from 1; absent where
	// the specification's own request was, and while nothing is granted.
	Alternative int `json:"alternative,omitempty" range:"1..7" example:"1"`
	// Conditions are aspects of the state: Scheduled, Ready, Terminating.
	Conditions []Condition `json:"conditions,omitempty"`
	// QueuePosition is the place in the queue; 1 is next, 0 is not in the queue. The place
	// in the order over all queues is that of explain.
	QueuePosition int `json:"queuePosition,omitempty" unit:"units" example:"3"`
	// AllocatedResources are the amounts that are granted.
	AllocatedResources map[resource.Name]string `json:"allocatedResources,omitempty" format:"quantity" example:"{cpu: '8', nvidia.com/gpu: '2'}"`
	// Assignment names the exact CPUs, memory and devices that are granted. Muster's
	// own field.
	Assignment *AssignmentStatus `json:"assignment,omitempty"`
	// Message says in one line why the allocation does not run.
	Message string `json:"message,omitempty" text:"lines" example:"waits for room: short of 2 nvidia.com/gpu"`
	// Transaction is the id of the transaction that holds the resources.
	Transaction resource.TxID `json:"transaction,omitempty" example:"alloc-00000000000000a1-1.1"`
	// Job is the name of the job that the allocation is a member of.
	Job string `json:"job,omitempty" example:"train"`
	// Member is the number of the member within its job, from 0.
	Member int `json:"member,omitempty" example:"1"`
}

// AssignmentStatus names the exact CPUs, memory and devices of one member.
type AssignmentStatus struct {
	// CPUs are the numbers of the logical CPUs, in the kernel's list format.
	CPUs string `json:"cpus,omitempty" example:"0-7,64-71"`
	// NUMANodes are the numbers of the NUMA nodes that the member uses.
	NUMANodes []int `json:"numaNodes,omitempty" example:"[0]"`
	// Memory is the memory on each NUMA node.
	Memory []MemoryStatus `json:"memory,omitempty"`
	// Hugepages is the memory in huge pages on each NUMA node.
	Hugepages []HugepageStatus `json:"hugepages,omitempty"`
	// GPUs are the devices, whole or in part.
	GPUs []GPUStatus `json:"gpus,omitempty"`
	// MIG are the MIG instances.
	MIG []MIGStatus `json:"mig,omitempty"`
}

// MemoryStatus is memory that is granted on one NUMA node.
type MemoryStatus struct {
	// Node is the number of the NUMA node.
	Node int `json:"node" example:"0"`
	// Bytes is the amount.
	Bytes string `json:"bytes" format:"quantity" unit:"bytes" example:"32Gi"`
}

// HugepageStatus is memory in huge pages that is granted on one NUMA node.
type HugepageStatus struct {
	// Node is the number of the NUMA node.
	Node int `json:"node" example:"0"`
	// PageSize is the size of one page.
	PageSize string `json:"pageSize" format:"quantity" unit:"bytes" example:"2Mi"`
	// Bytes is the amount, a multiple of pageSize.
	Bytes string `json:"bytes" format:"quantity" unit:"bytes" example:"1Gi"`
}

// MIGStatus is one MIG instance that is granted.
type MIGStatus struct {
	// GPU is the index of the parent device.
	GPU int `json:"gpu" example:"0"`
	// Instance is the position among the parent's instances, from 0.
	Instance int `json:"instance" example:"1"`
	// UUID is the driver's name of the instance.
	UUID string `json:"uuid" example:"MIG-6e8a5f2c-0000-4000-8000-000000000001"`
	// Profile is the size of the instance.
	Profile string `json:"profile" example:"1g.10gb"`
	// Model is the product name of the parent device.
	Model string `json:"model,omitempty" example:"NVIDIA A100-SXM4-80GB"`
}

// GPUStatus is one device that is granted, whole or in part.
type GPUStatus struct {
	// Index is the number of the device on its host, from 0.
	Index int `json:"index" example:"0"`
	// UUID is the driver's name of the device.
	UUID string `json:"uuid" example:"GPU-6e8a5f2c-0000-4000-8000-000000000000"`
	// Model is the product name.
	Model string `json:"model,omitempty" example:"NVIDIA A100-SXM4-80GB"`
	// Milli is the granted part; 1000 is the whole device.
	Milli resource.Milli `json:"milli" range:"1..1000" unit:"thousandths of a device" example:"1000"`
}

// Condition is one aspect of an object's state.
type Condition struct {
	// Type names the aspect.
	Type string `json:"type" example:"Ready"`
	// Status says whether the aspect holds: True, False or Unknown.
	Status string `json:"status" oneof:"True,False,Unknown"`
	// Reason is one word for the cause, for programs.
	Reason string `json:"reason,omitempty" text:"lines" example:"AgentReady"`
	// Message is the cause in a sentence, for people.
	Message string `json:"message,omitempty" text:"lines" example:"its agent is heard"`
	// LastTransitionTime is the time of the last change of status.
	LastTransitionTime string `json:"lastTransitionTime,omitempty" format:"time" example:"2026-03-01T12:00:00Z"`
	// LastHeartbeatTime is the time of the last report.
	LastHeartbeatTime string `json:"lastHeartbeatTime,omitempty" format:"time" example:"2026-03-01T12:00:10Z"`
}

// ListMeta is the metadata of a list.
type ListMeta struct {
	// ResourceVersion is the store's revision that the list was made at.
	ResourceVersion string `json:"resourceVersion,omitempty" example:"1042"`
	// Continue is the token of the next page; it is absent on the last page.
	Continue string `json:"continue,omitempty" example:"MTpkZWZhdWx0L3RyYWlu"`
	// Since is the time from which on the coordinator has every event. Lists of events
	// alone have it.
	Since string `json:"since,omitempty" format:"time" example:"2026-03-01T12:00:00Z"`
}

// AllocationList is a list of allocations, ordered by namespace and name.
type AllocationList struct {
	// Kind is AllocationList.
	Kind string `json:"kind" oneof:"AllocationList"`
	// Metadata has the revision and the token of the next page.
	Metadata ListMeta `json:"metadata"`
	// Items are the allocations.
	Items []Allocation `json:"items"`
}

// DeleteOptions is the optional body of a deletion or a cancellation.
type DeleteOptions struct {
	// GracePeriodSeconds is the time between the notice and the forced stop.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty" default:"30" range:"0..86400" unit:"seconds" example:"60"`
	// PropagationPolicy says how long the object is shown. Foreground shows the
	// object, Terminating, until nothing is held. Background takes the object out of
	// gets and lists at once; its devices, its quota and its name are free once it
	// has stopped. Orphan is refused: nothing may go on without an owner.
	PropagationPolicy string `json:"propagationPolicy,omitempty" default:"Foreground" oneof:"Foreground,Background"`
	// Preconditions are values that the object must have: another object is left as
	// it is, with 409.
	Preconditions *Preconditions `json:"preconditions,omitempty"`
	// Reason is kept for people: at most 1024 bytes.
	Reason string `json:"reason,omitempty" text:"lines" example:"wrong data set"`
}

// OfWork lists the options that have a meaning for the end of work alone.
func (o DeleteOptions) OfWork() []string {
	var set []string
	for field, given := range map[string]bool{"gracePeriodSeconds": o.GracePeriodSeconds != nil, "propagationPolicy": o.PropagationPolicy != "", "reason": o.Reason != ""} {
		if given {
			set = append(set, field)
		}
	}
	slices.Sort(set)
	return set
}
