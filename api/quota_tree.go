package api

import "github.com/musterd/muster/resource"

// QuotaTreeSpec is the form of QuotaTree.Spec, for clients that build trees and
// for the reference. Package coordinator/quota/quotajson reads it, and also takes
// numbers and texts for amounts, and texts for true and false.
type QuotaTreeSpec struct {
	// ResourceNames are the resources that the tree counts. The tree ignores other
	// resources of quotas and requests.
	ResourceNames []resource.Name `json:"resourceNames,omitempty" default:"[cpu, memory, nvidia.com/gpu]" example:"[cpu, nvidia.com/gpu]"`
	// Nodes are the nodes of the tree, by name.
	Nodes map[string]QuotaTreeNode `json:"nodes,omitempty"`
}

// QuotaTreeNode is one node of a quota tree. Every amount may be unlimited.
type QuotaTreeNode struct {
	// Parent is the name of the node above. The root has nil, or none.
	Parent string `json:"parent,omitempty" default:"nil" example:"company"`
	// Hard keeps groups at or below the node from borrowing above it. The root never
	// borrows.
	Hard bool `json:"hard,omitempty" default:"false" example:"false"`
	// Quota is the most that consumers on the node and below may hold; of a resource
	// that is not named they may hold none.
	Quota map[resource.Name]string `json:"quota" required:"true" format:"quantity" example:"{cpu: '64', nvidia.com/gpu: '8'}"`
	// BorrowingLimit is the most that groups at or below the node may hold above it; a
	// resource that is not named has no limit.
	BorrowingLimit map[resource.Name]string `json:"borrowingLimit,omitempty" format:"quantity" example:"{nvidia.com/gpu: '4'}"`
	// LendingLimit is the most of the node's unused quota that others may use; a
	// resource that is not named has no limit.
	LendingLimit map[resource.Name]string `json:"lendingLimit,omitempty" format:"quantity" example:"{nvidia.com/gpu: '6'}"`
	// Cap is the most that groups at or below the node may hold in all, borrowed
	// amounts included; a resource that is not named has no limit. Nothing is evicted
	// for a cap.
	Cap map[resource.Name]string `json:"cap,omitempty" format:"quantity" example:"{nvidia.com/gpu: '12'}"`
	// PerOwner is the most that one tenant may hold in groups at or below the node; a
	// resource that is not named has no limit. Nothing is evicted for this limit.
	PerOwner map[resource.Name]string `json:"perOwner,omitempty" format:"quantity" example:"{nvidia.com/gpu: '2'}"`
}

// Consumer is a request for quota in the form of spec/quota-manager.txt. Muster
// answers how admission would decide (POST /api/v1/quota/dryruns) and keeps
// nothing.
type Consumer struct {
	// APIVersion is accepted and not compared.
	APIVersion string `json:"apiVersion,omitempty" example:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind" required:"true" oneof:"Consumer"`
	// Metadata is accepted and not used.
	Metadata ObjectMeta `json:"metadata,omitzero"`
	// Spec names the consumer and its demands.
	Spec ConsumerSpec `json:"spec" required:"true"`
}

// ConsumerSpec names a consumer and its demands.
type ConsumerSpec struct {
	// ID is the consumer's name.
	ID string `json:"id" required:"true" example:"trial-1"`
	// Owner is the tenant that perOwner counts the consumer for; without an owner no
	// such limit holds.
	Owner string `json:"owner,omitempty" example:"vision"`
	// Trees are the demands, one for each tree.
	Trees []ConsumerDemand `json:"trees,omitempty"`
}

// ConsumerDemand is a demand on one quota tree.
type ConsumerDemand struct {
	// ID may repeat the consumer's id and is not used.
	ID string `json:"id,omitempty" example:"trial-1"`
	// TreeName is the name of the tree.
	TreeName string `json:"treeName" required:"true" example:"company"`
	// GroupID is the name of a leaf of the tree.
	GroupID string `json:"groupID" required:"true" example:"vision"`
	// Request are the amounts.
	Request map[resource.Name]string `json:"request,omitempty" format:"quantity" example:"{nvidia.com/gpu: '2'}"`
	// Priority orders consumers: greater numbers come first.
	Priority int `json:"priority,omitempty" default:"0" example:"100"`
	// Type is a whole number: only consumers of the same type evict each other.
	Type int `json:"type,omitempty" default:"0" example:"0"`
	// Unpreemptable marks a consumer that is evicted for no other consumer.
	Unpreemptable bool `json:"unPreemptable,omitempty" default:"false" example:"true"`
}
