package api

import "github.com/musterd/muster/resource"

// ObjectMeta names an object. UID, ResourceVersion and the timestamps are the
// server's; a client's values for them are ignored on create.
type ObjectMeta struct {
	Name                       string            `json:"name,omitempty"`
	Namespace                  string            `json:"namespace,omitempty"`
	UID                        string            `json:"uid,omitempty"`
	ResourceVersion            string            `json:"resourceVersion,omitempty"`
	CreationTimestamp          string            `json:"creationTimestamp,omitempty"` // RFC 3339, UTC
	DeletionTimestamp          string            `json:"deletionTimestamp,omitempty"`
	DeletionGracePeriodSeconds *int64            `json:"deletionGracePeriodSeconds,omitempty"`
	Labels                     map[string]string `json:"labels,omitempty"`
	Annotations                map[string]string `json:"annotations,omitempty"`
}

// Allocation is one member's resources on one host: submitted by itself, or a
// member of a Job.
type Allocation struct {
	APIVersion string           `json:"apiVersion,omitempty"`
	Kind       string           `json:"kind,omitempty"`
	Metadata   ObjectMeta       `json:"metadata"`
	Spec       AllocationSpec   `json:"spec"`
	Status     AllocationStatus `json:"status,omitzero"`
}

// AllocationSpec is what a tenant asks for.
type AllocationSpec struct {
	Resources        Requirements `json:"resources"`
	Priority         *int32       `json:"priority,omitempty"`
	PriorityClass    string       `json:"priorityClass,omitempty"`
	PreemptionPolicy string       `json:"preemptionPolicy,omitempty"` // PreemptLowerPriority | Never
	Scheduling       Scheduling   `json:"scheduling,omitzero"`
	TTL              string       `json:"ttl,omitempty"` // duration, e.g. "7200s"
	Queue            string       `json:"queue,omitempty"`
	// GangScheduling is the same as Scheduling.GangScheduling; spec/api-design.txt
	// writes it here for allocations and there for jobs. At most one is given.
	GangScheduling *GangScheduling `json:"gangScheduling,omitempty"`
	// Quota says to which groups it is charged, where not to its namespace's;
	// Muster's own.
	Quota *QuotaDemand `json:"quota,omitempty"`
}

// Gang is the gang asked for in either of its two places, or nil.
func (s *AllocationSpec) Gang() *GangScheduling {
	if s.GangScheduling != nil {
		return s.GangScheduling
	}
	return s.Scheduling.GangScheduling
}

// Requirements holds quantities as they were written ("8000m", "32Gi"; a bare
// number is kept as its text), by the names that CheckResource knows. A limit
// without a request is also the request. Limits of whole cores, huge pages and
// MIG instances equal their requests.
type Requirements struct {
	Requests map[resource.Name]string `json:"requests,omitempty" strict:"number"`
	Limits   map[resource.Name]string `json:"limits,omitempty" strict:"number"`
}

// Scheduling says where an allocation may go and with whom.
type Scheduling struct {
	NodeSelector              map[string]string          `json:"nodeSelector,omitempty"`
	Affinity                  *Affinity                  `json:"affinity,omitempty"`
	Tolerations               []Toleration               `json:"tolerations,omitempty"`
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	GangScheduling            *GangScheduling            `json:"gangScheduling,omitempty"`
	// GPU and NUMAPolicy are Muster's own.
	GPU        *GPUConstraint `json:"gpu,omitempty"`
	NUMAPolicy string         `json:"numaPolicy,omitempty"` // none | best-effort | restricted | single-numa-node
}

// GPUConstraint narrows the devices; Muster's own.
type GPUConstraint struct {
	Model  string `json:"model,omitempty"`                  // exact product name
	Memory string `json:"memory,omitempty" strict:"number"` // least memory per device or MIG instance, a quantity
	Link   string `json:"link,omitempty"`                   // any | pcie-switch | nvlink; any for MIG instances
}

// GangScheduling asks for all-or-nothing placement of a job's members.
type GangScheduling struct {
	GroupID    string `json:"groupId,omitempty"`
	MinMembers *int32 `json:"minMembers,omitempty"` // default: all members
	Timeout    string `json:"timeout,omitempty"`
}

// Affinity holds node affinity and anti-affinity between allocations.
type Affinity struct {
	NodeAffinity    *NodeAffinity    `json:"nodeAffinity,omitempty"`
	PodAntiAffinity *PodAntiAffinity `json:"podAntiAffinity,omitempty"`
}

// NodeAffinity selects nodes by their labels.
type NodeAffinity struct {
	Required  *NodeSelectorTerms `json:"requiredDuringScheduling,omitempty"`
	Preferred []PreferredTerm    `json:"preferredDuringScheduling,omitempty"`
}

// NodeSelectorTerms are alternatives: one of them must match.
type NodeSelectorTerms struct {
	NodeSelectorTerms []NodeSelectorTerm `json:"nodeSelectorTerms"`
}

// NodeSelectorTerm matches when all of its expressions do.
type NodeSelectorTerm struct {
	MatchExpressions []MatchExpression `json:"matchExpressions"`
}

// MatchExpression compares one label. Operator is In, NotIn, Exists,
// DoesNotExist, Gt, Lt, Gte or Lte; the last four compare integers.
type MatchExpression struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

// PreferredTerm adds Weight (1..100) to nodes that match.
type PreferredTerm struct {
	Weight     int32            `json:"weight"`
	Preference NodeSelectorTerm `json:"preference"`
}

// PodAntiAffinity keeps allocations apart.
type PodAntiAffinity struct {
	Required []AntiAffinityTerm `json:"requiredDuringScheduling,omitempty"`
}

// AntiAffinityTerm forbids sharing a topology domain with allocations of the
// same namespace that match.
type AntiAffinityTerm struct {
	TopologyKey   string        `json:"topologyKey"`
	LabelSelector LabelSelector `json:"labelSelector"`
}

// LabelSelector matches labels that equal all of MatchLabels.
type LabelSelector struct {
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
}

// TopologySpreadConstraint bounds how unevenly members fill domains.
type TopologySpreadConstraint struct {
	MaxSkew           int32  `json:"maxSkew"`
	TopologyKey       string `json:"topologyKey"`
	WhenUnsatisfiable string `json:"whenUnsatisfiable,omitempty"`
}

// Toleration lets an allocation onto nodes with a matching taint.
type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"` // Equal (default) | Exists
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"` // "" = all effects
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

// AllocationStatus is what the server knows.
type AllocationStatus struct {
	Phase              Phase                    `json:"phase,omitempty"`
	NodeID             resource.NodeID          `json:"nodeId,omitempty"`
	NodeName           string                   `json:"nodeName,omitempty"` // the node object's name; its host's is among its addresses
	StartTime          string                   `json:"startTime,omitempty"`
	Conditions         []Condition              `json:"conditions,omitempty"`
	QueuePosition      int                      `json:"queuePosition,omitempty"` // 1 = next; 0 = not queued
	AllocatedResources map[resource.Name]string `json:"allocatedResources,omitempty"`
	// Assignment is exactly what was granted; Muster's own.
	Assignment *AssignmentStatus `json:"assignment,omitempty"`
	// Message says why the allocation is not running, in one line.
	Message string `json:"message,omitempty"`
	// Transaction and Epoch name the attempt that holds the resources.
	Transaction resource.TxID `json:"transaction,omitempty"`
	// Job and Member are set on members of a job.
	Job    string `json:"job,omitempty"`
	Member int    `json:"member,omitempty"`
}

// AssignmentStatus shows the exact CPUs, memory and devices granted.
type AssignmentStatus struct {
	CPUs      string           `json:"cpus,omitempty"` // kernel list format
	NUMANodes []int            `json:"numaNodes,omitempty"`
	Memory    []MemoryStatus   `json:"memory,omitempty"`
	Hugepages []HugepageStatus `json:"hugepages,omitempty"`
	GPUs      []GPUStatus      `json:"gpus,omitempty"`
	MIG       []MIGStatus      `json:"mig,omitempty"`
}

// MemoryStatus is memory granted on one NUMA node.
type MemoryStatus struct {
	Node  int    `json:"node"`
	Bytes string `json:"bytes"` // a quantity
}

// HugepageStatus is memory in huge pages granted on one NUMA node.
type HugepageStatus struct {
	Node     int    `json:"node"`
	PageSize string `json:"pageSize"` // a quantity
	Bytes    string `json:"bytes"`    // a quantity, a multiple of PageSize
}

// MIGStatus is one MIG instance granted.
type MIGStatus struct {
	GPU      int    `json:"gpu"`      // index of the parent device
	Instance int    `json:"instance"` // position among the parent's instances
	UUID     string `json:"uuid"`     // the instance's
	Profile  string `json:"profile"`
	Model    string `json:"model,omitempty"` // the parent's
}

// GPUStatus is one device granted, whole or in part.
type GPUStatus struct {
	Index int            `json:"index"`
	UUID  string         `json:"uuid"`
	Model string         `json:"model,omitempty"`
	Milli resource.Milli `json:"milli"`
}

// Condition is one aspect of an object's state.
type Condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"` // True | False | Unknown
	Reason             string `json:"reason,omitempty"`
	Message            string `json:"message,omitempty"`
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`
	LastHeartbeatTime  string `json:"lastHeartbeatTime,omitempty"`
}

// ListMeta is the metadata of a list.
type ListMeta struct {
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Continue        string `json:"continue,omitempty"`
}

// AllocationList is a list of allocations ordered by namespace and name.
type AllocationList struct {
	Kind     string       `json:"kind"`
	Metadata ListMeta     `json:"metadata"`
	Items    []Allocation `json:"items"`
}

// DeleteOptions is the body of a delete or cancel.
type DeleteOptions struct {
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	PropagationPolicy  string `json:"propagationPolicy,omitempty"`
	Reason             string `json:"reason,omitempty"`
}
