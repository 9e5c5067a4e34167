package api

// Scheduling restricts the nodes and devices of a member, and joins members to a
// gang.
type Scheduling struct {
	// NodeSelector is a set of labels that a node must have, all of them, at most 64.
	NodeSelector map[string]string `json:"nodeSelector,omitempty" example:"{zone: a}"`
	// Affinity holds rules about nodes and about other allocations.
	Affinity *Affinity `json:"affinity,omitempty"`
	// Tolerations let the member onto nodes whose taints they match: at most 64.
	Tolerations []Toleration `json:"tolerations,omitempty"`
	// TopologySpreadConstraints bound how unevenly members fill domains: at most 16.
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// GangScheduling makes members start together or not at all.
	GangScheduling *GangScheduling `json:"gangScheduling,omitempty"`
	// GPU restricts the devices. Muster's own field.
	GPU *GPUConstraint `json:"gpu,omitempty"`
	// NUMAPolicy says how closely devices, CPUs and memory must lie together: none
	// ignores NUMA nodes, best-effort prefers few, restricted takes as few as the
	// amounts need on that host, single-numa-node takes one. Muster's own field.
	NUMAPolicy string `json:"numaPolicy,omitempty" default:"best-effort" oneof:"none,best-effort,restricted,single-numa-node"`
}

// GPUConstraint restricts the devices of a member. Muster's own.
type GPUConstraint struct {
	// Model is the exact product name, of at most 128 characters.
	Model string `json:"model,omitempty" example:"NVIDIA A100-SXM4-80GB"`
	// Memory is the least memory of each device or MIG instance, at most 1Pi.
	Memory string `json:"memory,omitempty" strict:"number" format:"quantity" unit:"bytes" example:"40Gi"`
	// Link is the connection that each pair of the devices must have. MIG instances
	// take any alone.
	Link string `json:"link,omitempty" default:"any" oneof:"any,pcie-switch,nvlink"`
}

// GangScheduling makes members start together or not at all: the members of a job, or
// the allocations of one namespace that name the same group.
type GangScheduling struct {
	// GroupID is the name of the group that an Allocation joins: an RFC 1123 subdomain.
	// Allocations of one namespace with the same groupId are one gang; they have the
	// same minMembers, timeout, queue and priority. Of a Job it is a name only.
	GroupID string `json:"groupId,omitempty" example:"train-1"`
	// MinMembers is the number of members that start together. Members beyond it
	// follow one by one. Of a Job it defaults to all members, and is at most
	// spec.parallelism; of an Allocation it defaults to 1. The annotation
	// scheduler.example.com/gang-size of an Allocation means the same.
	MinMembers *int32 `json:"minMembers,omitempty" default:"spec.parallelism" range:"1..4096" unit:"members" example:"2"`
	// Timeout is the time within which the gang has to start, from the arrival of its
	// first member on. A gang that waits longer is Failed with GangTimeout. It
	// defaults to no end. The annotation scheduler.example.com/max-wait of an
	// Allocation means the same.
	Timeout string `json:"timeout,omitempty" format:"duration" range:"1ns.." example:"10m"`
	// Topology are levels of domains for the members of a Job, or for the allocations of a
	// group, the widest first, at most 4: zone, block, rack. A domain is all nodes with the
	// same values of the labels down to its level. The members that start together go to
	// one domain of the narrowest level that has room for all, and their order follows the
	// domains. Members that follow later stay in the required domains. All members of a
	// group have the same levels.
	Topology []TopologyLevel `json:"topology,omitempty"`
	// Subgroup keeps members of a Job that follow each other, or allocations of a group that
	// name the same subgroup, in one domain.
	Subgroup *Subgroup `json:"subgroup,omitempty"`
}

// TopologyLevel is one level of domains.
type TopologyLevel struct {
	// TopologyKey is the node label whose values are the domains.
	TopologyKey string `json:"topologyKey" required:"true" example:"rack"`
	// WhenUnsatisfiable is the treatment of a gang for which no domain has room:
	// DoNotSchedule lets the gang wait, ScheduleAnyway takes as few domains as can be.
	WhenUnsatisfiable string `json:"whenUnsatisfiable,omitempty" default:"DoNotSchedule" oneof:"DoNotSchedule,ScheduleAnyway"`
}

// Subgroup is members of a gang that run in one domain: a number of members of a Job that
// follow each other, or the allocations of a group with the same name.
type Subgroup struct {
	// Members is the number of members of each subgroup of a Job; the number of the members
	// that start together is a multiple of it. An Allocation has a name in its place.
	Members int32 `json:"members,omitempty" range:"1..4096" unit:"members" example:"8"`
	// Name is the subgroup of an Allocation: an RFC 1123 label. All allocations of the group
	// with the same name run in one domain, and have the same topologyKey.
	Name string `json:"name,omitempty" example:"pair-1"`
	// TopologyKey is the key of one of the levels of topology.
	TopologyKey string `json:"topologyKey" required:"true" example:"rack"`
}

// Affinity holds affinity to nodes, and affinity and anti-affinity between allocations
// of one namespace.
type Affinity struct {
	// NodeAffinity selects nodes by their labels.
	NodeAffinity *NodeAffinity `json:"nodeAffinity,omitempty"`
	// PodAffinity brings the members near allocations that match: into the same
	// topology domain.
	PodAffinity *PodAffinity `json:"podAffinity,omitempty"`
	// PodAntiAffinity keeps the members apart from allocations that match. Allocations
	// that start later are kept apart from the members, too.
	PodAntiAffinity *PodAffinity `json:"podAntiAffinity,omitempty"`
}

// NodeAffinity selects nodes by their labels.
type NodeAffinity struct {
	// Required holds conditions that the node must meet.
	Required *NodeSelectorTerms `json:"requiredDuringScheduling,omitempty"`
	// Preferred holds conditions that make a node the better choice: at most 64.
	Preferred []PreferredTerm `json:"preferredDuringScheduling,omitempty"`
}

// NodeSelectorTerms are alternatives: a node must match one of them.
type NodeSelectorTerms struct {
	// NodeSelectorTerms are the alternatives: 1 to 64.
	NodeSelectorTerms []NodeSelectorTerm `json:"nodeSelectorTerms" required:"true"`
}

// NodeSelectorTerm matches a node that meets all of its expressions.
type NodeSelectorTerm struct {
	// MatchExpressions are conditions on labels: 1 to 64.
	MatchExpressions []MatchExpression `json:"matchExpressions" required:"true"`
}

// MatchExpression is a condition on one label.
type MatchExpression struct {
	// Key is the label's key.
	Key string `json:"key" required:"true" example:"zone"`
	// Operator compares the label with the values. Gt, Lt, Gte and Lte compare whole
	// numbers; Exists and DoesNotExist take no values.
	Operator string `json:"operator" required:"true" oneof:"In,NotIn,Exists,DoesNotExist,Gt,Lt,Gte,Lte"`
	// Values are the label's values to compare with: at most 256; one for Gt, Lt, Gte
	// and Lte.
	Values []string `json:"values,omitempty" example:"[a, b]"`
}

// PreferredTerm makes nodes that match the better choice.
type PreferredTerm struct {
	// Weight is added to the rank of a node that matches.
	Weight int32 `json:"weight" required:"true" range:"1..100" example:"10"`
	// Preference is the condition.
	Preference NodeSelectorTerm `json:"preference" required:"true"`
}

// PodAffinity holds rules about other allocations of the namespace. An allocation
// counts from the decision to start it to the end of its grace.
type PodAffinity struct {
	// Required holds rules that must be met: at most 16.
	Required []PodAffinityTerm `json:"requiredDuringScheduling,omitempty"`
	// Preferred holds rules that make a node the better choice, or the worse one under
	// podAntiAffinity: at most 16.
	Preferred []WeightedPodAffinityTerm `json:"preferredDuringScheduling,omitempty"`
}

// RequiredTerms are the rules that must be met.
func (p *PodAffinity) RequiredTerms() []PodAffinityTerm {
	if p == nil {
		return nil
	}
	return p.Required
}

// PreferredTerms are the rules with weights.
func (p *PodAffinity) PreferredTerms() []WeightedPodAffinityTerm {
	if p == nil {
		return nil
	}
	return p.Preferred
}

// PodAffinityTerm names topology domains by the allocations that run there.
type PodAffinityTerm struct {
	// TopologyKey is the node label whose values are the domains.
	TopologyKey string `json:"topologyKey" required:"true" example:"rack"`
	// LabelSelector selects the allocations of the same namespace. Left out, it selects
	// the members of the same job or, of allocations with a groupId, of the same group.
	LabelSelector *LabelSelector `json:"labelSelector,omitempty"`
}

// WeightedPodAffinityTerm makes nodes of the domains the better choice, or the worse
// one under podAntiAffinity.
type WeightedPodAffinityTerm struct {
	// Weight is added to the rank of a node in such a domain, or taken off it.
	Weight int32 `json:"weight" required:"true" range:"1..100" example:"10"`
	// PodAffinityTerm names the domains.
	PodAffinityTerm PodAffinityTerm `json:"podAffinityTerm" required:"true"`
}

// LabelSelector matches objects by their labels. An empty one matches every object.
type LabelSelector struct {
	// MatchLabels are labels that an object must have, all of them: at most 64.
	MatchLabels map[string]string `json:"matchLabels,omitempty" example:"{app: web}"`
	// MatchExpressions are conditions on labels, all of which must hold: at most 64.
	MatchExpressions []LabelExpression `json:"matchExpressions,omitempty"`
}

// LabelExpression is a condition on one label of an object.
type LabelExpression struct {
	// Key is the label's key.
	Key string `json:"key" required:"true" example:"app"`
	// Operator compares the label with the values; Exists and DoesNotExist take no
	// values.
	Operator string `json:"operator" required:"true" oneof:"In,NotIn,Exists,DoesNotExist"`
	// Values are the label's values to compare with: at most 256.
	Values []string `json:"values,omitempty" example:"[web, cache]"`
}

// The values of whenUnsatisfiable.
const (
	DoNotSchedule  = "DoNotSchedule"
	ScheduleAnyway = "ScheduleAnyway"
)

// TopologySpreadConstraint bounds how unevenly members fill domains. The domains are
// those of the nodes that the node selector and the required node affinity allow; taints
// do not matter.
type TopologySpreadConstraint struct {
	// MaxSkew is the greatest difference between the members of two domains.
	MaxSkew int32 `json:"maxSkew" required:"true" range:"1.." unit:"members" example:"1"`
	// TopologyKey is the node label whose values are the domains. With DoNotSchedule a
	// node without the label is no candidate.
	TopologyKey string `json:"topologyKey" required:"true" example:"rack"`
	// WhenUnsatisfiable is the treatment of a member that would exceed the skew:
	// DoNotSchedule lets the member wait, ScheduleAnyway prefers the nodes with less skew.
	WhenUnsatisfiable string `json:"whenUnsatisfiable,omitempty" default:"DoNotSchedule" oneof:"DoNotSchedule,ScheduleAnyway"`
	// LabelSelector selects the allocations that count. Left out, it selects the members
	// of the same job or, of allocations with a groupId, of the same group.
	LabelSelector *LabelSelector `json:"labelSelector,omitempty"`
}

// Toleration lets a member onto nodes with a matching taint.
type Toleration struct {
	// Key is the taint's key. Empty with the operator Exists, it matches every taint.
	Key string `json:"key,omitempty" example:"reserved"`
	// Operator compares the value of the taint: Equal wants the same value, Exists
	// takes any.
	Operator string `json:"operator,omitempty" default:"Equal" oneof:"Equal,Exists"`
	// Value is the taint's value; none with the operator Exists.
	Value string `json:"value,omitempty" example:"vision"`
	// Effect is the taint's effect; empty matches all effects.
	Effect string `json:"effect,omitempty" oneof:"NoExecute,NoSchedule,PreferNoSchedule"`
	// TolerationSeconds is how long a member runs on a node with the taint, from the
	// start of both on: then it is given notice. Absent, the member stays. Only with
	// the effect NoExecute.
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty" range:"0..315360000" unit:"seconds" example:"300"`
}

// MaxTolerationSeconds is ten years.
const MaxTolerationSeconds = 315_360_000
