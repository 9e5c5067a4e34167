package api

import (
	"encoding/json"

	"github.com/musterd/muster/resource"
)

// ResourceQuota limits the amounts that a namespace may hold. Each quota that a
// unit falls under must have room for the unit.
type ResourceQuota struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind,omitempty" default:"ResourceQuota" oneof:"ResourceQuota"`
	// Metadata names the quota and its namespace.
	Metadata ObjectMeta `json:"metadata"`
	// Spec has the limits, as an operator sets them.
	Spec ResourceQuotaSpec `json:"spec"`
	// Status is the present usage, set by the server.
	Status ResourceQuotaStatus `json:"status,omitzero" by:"server"`
}

// ResourceQuotaSpec has the limits of a resource quota.
type ResourceQuotaSpec struct {
	// Hard are the limits that admission never exceeds: at most 256 resources. The
	// resource pods counts members. Limits of resources that Muster does not hand out
	// are recorded and have no effect.
	Hard map[resource.Name]string `json:"hard,omitempty" strict:"number" format:"quantity" example:"{cpu: 256, nvidia.com/gpu: 16, pods: 100}"`
	// Soft are limits beyond which the status warns: at most 256 resources, none
	// greater than its hard limit.
	Soft map[resource.Name]string `json:"soft,omitempty" strict:"number" format:"quantity" example:"{nvidia.com/gpu: 12}"`
	// PerUser are limits for each user: no user holds more at one time in the namespace.
	// The creator of a unit is charged for the unit. At most 256 resources, none greater
	// than its hard limit. Units whose creator is unknown are not counted.
	PerUser map[resource.Name]string `json:"perUser,omitempty" strict:"number" format:"quantity" example:"{nvidia.com/gpu: 8}"`
	// Scopes restrict the units that fall under the quota, all of them: at most 64. A
	// unit is Terminating where its job has an activeDeadlineSeconds, or its job's
	// template a ttl.
	Scopes []string `json:"scopes,omitempty" oneof:"Terminating,NotTerminating"`
	// ScopeSelector restricts the units by expressions.
	ScopeSelector *ScopeSelector `json:"scopeSelector,omitempty"`
}

// ScopeSelector selects units that meet all of its expressions.
type ScopeSelector struct {
	// MatchExpressions are the conditions: at most 64.
	MatchExpressions []ScopeExpression `json:"matchExpressions,omitempty"`
}

// ScopeExpression is one condition on a unit.
type ScopeExpression struct {
	// ScopeName is the property that is compared.
	ScopeName string `json:"scopeName" required:"true" oneof:"PriorityClass,Terminating,NotTerminating"`
	// Operator compares the property with the values. Terminating and NotTerminating
	// take Exists alone.
	Operator string `json:"operator" required:"true" oneof:"In,NotIn,Exists,DoesNotExist"`
	// Values are names of priority classes: at most 256; none with Exists and
	// DoesNotExist.
	Values []string `json:"values,omitempty" example:"[high-priority]"`
}

// ResourceQuotaStatus is the present usage of a resource quota.
type ResourceQuotaStatus struct {
	// Hard are the limits.
	Hard map[resource.Name]string `json:"hard,omitempty" format:"quantity" example:"{nvidia.com/gpu: '16'}"`
	// Used are the amounts that are charged to the quota.
	Used map[resource.Name]string `json:"used,omitempty" format:"quantity" example:"{nvidia.com/gpu: '10'}"`
	// Reserved is the part of used whose units have not started: their place is decided,
	// and the hosts of their members have not all confirmed it yet. Resources without any
	// are left out.
	Reserved map[resource.Name]string `json:"reserved,omitempty" format:"quantity" example:"{nvidia.com/gpu: '2'}"`
	// Users are the users with some use of the resources of spec.perUser, by name. A
	// tenant-admin, an operator and an admin see all users, everybody else sees the own use.
	Users []UserUsage `json:"users,omitempty"`
	// Utilization is used in percent of hard.
	Utilization map[resource.Name]string `json:"utilization,omitempty" unit:"percent" example:"{nvidia.com/gpu: 63%}"`
	// Trend is the change of the utilization. Resources with too short a history are
	// left out.
	Trend map[resource.Name]string `json:"trend,omitempty" unit:"percent" example:"{nvidia.com/gpu: +5% over 24h}"`
	// Conditions are SoftExceeded and OverLimit; OverLimit means that a limit was
	// lowered below the usage.
	Conditions []Condition `json:"conditions,omitempty"`
}

// UserUsage is the use of one user.
type UserUsage struct {
	// User is the name of the user, as muster whoami shows it.
	User string `json:"user" example:"oidc:ada@example.org"`
	// Used are the amounts that are charged to the user.
	Used map[resource.Name]string `json:"used" format:"quantity" example:"{nvidia.com/gpu: '6'}"`
}

// QuotaTree is a tree of quotas in the form of spec/quota-manager.txt, kept as it
// was submitted.
type QuotaTree struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind" default:"QuotaTree" oneof:"QuotaTree"`
	// Metadata names the tree: 1 to 63 letters, digits, '-', '_' and '.'. A tree has
	// no namespace.
	Metadata ObjectMeta `json:"metadata"`
	// Spec has the resources and the nodes, in the form of QuotaTreeSpec.
	Spec json.RawMessage `json:"spec" required:"true"`
	// Status is the tree as it is in force, set by the server.
	Status QuotaTreeStatus `json:"status,omitzero" by:"server"`
}

// QuotaTreeStatus is a tree as it is in force. The lists of names ascend.
type QuotaTreeStatus struct {
	// Root is the name of the root.
	Root string `json:"root,omitempty" example:"company"`
	// Dangling are nodes of the specification that are no part of the tree.
	Dangling []string `json:"dangling,omitempty" example:"[lost]"`
	// OtherRoots are dangling nodes without a parent, beside the root.
	OtherRoots []string `json:"otherRoots,omitempty" example:"[second]"`
	// Orphans are dangling nodes whose parent does not exist.
	Orphans []string `json:"orphans,omitempty" example:"[lost]"`
	// Cyclic are dangling nodes that are their own ancestors.
	Cyclic []string `json:"cyclic,omitempty" example:"[a, b]"`
	// Detached are consumers whose group is no leaf any more, as far as the caller may
	// see them.
	Detached []string `json:"detached,omitempty" example:"[default/train]"`
	// OtherDetached counts such consumers that the caller may not see.
	OtherDetached int `json:"otherDetached,omitempty" unit:"consumers" example:"2"`
	// Nodes are the nodes in depth-first order, children in ascending order.
	Nodes []QuotaNodeStatus `json:"nodes,omitempty"`
}

// QuotaNodeStatus is one node of a tree.
type QuotaNodeStatus struct {
	// Name is the node's name.
	Name string `json:"name" example:"vision"`
	// Parent is the name of the node above; absent at the root.
	Parent string `json:"parent,omitempty" example:"company"`
	// Depth is the number of nodes above.
	Depth int `json:"depth" unit:"nodes" example:"1"`
	// Hard reports whether groups at or below the node may not borrow above it.
	Hard bool `json:"hard,omitempty" example:"false"`
	// Leaf reports whether the node has no children: units are charged to leaves.
	Leaf bool `json:"leaf,omitempty" example:"true"`
	// Quota is the node's quota.
	Quota map[resource.Name]string `json:"quota,omitempty" format:"quantity" example:"{nvidia.com/gpu: '8'}"`
	// Allocated are the amounts that are counted at the node and below.
	Allocated map[resource.Name]string `json:"allocated,omitempty" format:"quantity" example:"{nvidia.com/gpu: '10'}"`
	// Own are the amounts that the node's own consumers hold.
	Own map[resource.Name]string `json:"own,omitempty" format:"quantity" example:"{nvidia.com/gpu: '8'}"`
	// Borrowed are the amounts that groups of the node hold further up.
	Borrowed map[resource.Name]string `json:"borrowed,omitempty" format:"quantity" example:"{nvidia.com/gpu: '2'}"`
	// Lent are the amounts of the node's quota that other groups hold further up.
	Lent map[resource.Name]string `json:"lent,omitempty" format:"quantity" example:"{nvidia.com/gpu: '1'}"`
	// OverQuota names the resources of which more is allocated than the quota.
	OverQuota []resource.Name `json:"overQuota,omitempty" example:"[nvidia.com/gpu]"`
	// Consumers are the units that are counted here and that the caller may see, in the
	// order in which they came to the node.
	Consumers []string `json:"consumers,omitempty" example:"[default/train]"`
	// OtherConsumers counts the units that are counted here and that the caller may not
	// see.
	OtherConsumers int `json:"otherConsumers,omitempty" unit:"units" example:"3"`
}

// QuotaForest is a set of trees whose quotas all bind: a namespace that is bound to
// a forest has a group on each of its trees.
type QuotaForest struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind" default:"QuotaForest" oneof:"QuotaForest"`
	// Metadata names the forest: 1 to 63 letters, digits, '-', '_' and '.'. A forest
	// has no namespace.
	Metadata ObjectMeta `json:"metadata"`
	// Spec names the trees.
	Spec QuotaForestSpec `json:"spec"`
}

// QuotaForestSpec names the trees of a forest.
type QuotaForestSpec struct {
	// Trees are the names of 1 to 256 trees, each at most once. A tree is in at most
	// one forest.
	Trees []string `json:"trees" required:"true" example:"[company, projects]"`
}

// QuotaBinding names the groups that the units of a namespace are charged to. Its
// name is the namespace's.
type QuotaBinding struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind" default:"QuotaBinding" oneof:"QuotaBinding"`
	// Metadata has the namespace as its name, and no namespace of its own.
	Metadata ObjectMeta `json:"metadata"`
	// Spec names the groups.
	Spec QuotaBindingSpec `json:"spec"`
}

// QuotaBindingSpec names a group on each tree.
type QuotaBindingSpec struct {
	// Forest is the name of a forest; groups then names a leaf of each of its trees.
	Forest string `json:"forest,omitempty" example:"quota"`
	// Groups map trees to leaves: at most 256 trees.
	Groups map[string]string `json:"groups,omitempty" example:"{company: vision}"`
	// Admission is the treatment of an allocation over quota: reject answers 403,
	// queue lets the allocation wait. Jobs always wait.
	Admission string `json:"admission,omitempty" default:"reject" oneof:"reject,queue"`
}

// QuotaDemand is a unit's own wish about the quota that it is charged to.
type QuotaDemand struct {
	// Groups replace the groups of the namespace, tree by tree: at most 256 trees.
	Groups map[string]string `json:"groups,omitempty" example:"{company: vision}"`
	// Type is a whole number: only consumers of the same type evict each other for
	// quota.
	Type int `json:"type,omitempty" default:"0" example:"0"`
	// Unpreemptable marks a unit that is evicted for no other unit.
	Unpreemptable bool `json:"unPreemptable,omitempty" default:"false" example:"true"`
}

// QuotaExplanation says where a unit is counted on its quota trees, and which
// quota is short where the unit is not charged.
type QuotaExplanation struct {
	// Kind is QuotaExplanation.
	Kind string `json:"kind" oneof:"QuotaExplanation"`
	// Consumer is the allocation or job, as namespace/name.
	Consumer string `json:"consumer" example:"default/train"`
	// Phase is the stage of the object's life.
	Phase Phase `json:"phase" example:"Running"`
	// Placements are the places of the unit, one for each tree.
	Placements []QuotaPlacement `json:"placements"`
	// Reasons are the quotas that are short, where they keep the unit from being
	// charged.
	Reasons []resource.Reason `json:"reasons,omitempty"`
	// Summary is the answer in one sentence, with its numbers.
	Summary string `json:"summary" example:"counted at company/vision"`
}

// QuotaPlacement is the place of a unit on one tree.
type QuotaPlacement struct {
	// Tree is the name of the tree.
	Tree string `json:"tree" example:"company"`
	// Group is the leaf that the unit belongs to.
	Group string `json:"group" example:"vision"`
	// Request are the amounts that are charged.
	Request map[resource.Name]string `json:"request" format:"quantity" example:"{nvidia.com/gpu: '2'}"`
	// Priority is the unit's priority.
	Priority int32 `json:"priority" range:"0..1000000000" example:"0"`
	// Unpreemptable marks a unit that is evicted for no other unit.
	Unpreemptable bool `json:"unPreemptable,omitempty" example:"false"`
	// Node is the node that counts the unit; empty where none does. A unit that is
	// counted above its group borrows.
	Node string `json:"node,omitempty" example:"company"`
	// BorrowsFrom are the nodes of other groups whose quota the unit uses.
	BorrowsFrom []string `json:"borrowsFrom,omitempty" example:"[speech]"`
	// ReclaimableBy are the leaf groups that may claim that quota back: their new
	// units may move this unit up the tree or evict it.
	ReclaimableBy []string `json:"reclaimableBy,omitempty" example:"[speech]"`
}

// QuotaDryRun is the present answer of admission to a consumer. The request has no
// effect.
type QuotaDryRun struct {
	// Kind is QuotaDryRun.
	Kind string `json:"kind" oneof:"QuotaDryRun"`
	// Admitted reports whether the consumer would be admitted.
	Admitted bool `json:"admitted" example:"true"`
	// Placements are the places at which the consumer would be counted.
	Placements []QuotaPlacement `json:"placements,omitempty"`
	// Victims are the units that would be evicted. To all but operators, work of
	// other tenants is one entry: its number, its GPUs and its priorities.
	Victims []string `json:"victims,omitempty" example:"[default/sweep]"`
	// Moved are the units that would move to other nodes of the tree, other tenants'
	// as with the victims.
	Moved []string `json:"moved,omitempty" example:"[default/train]"`
	// Reasons are the quotas that are short.
	Reasons []resource.Reason `json:"reasons,omitempty"`
	// Summary is the answer in one sentence, with its numbers.
	Summary string `json:"summary" example:"admitted at company/vision"`
}
