package api

import (
	"encoding/json"

	"github.com/musterd/muster/resource"
)

// ResourceQuota limits what a namespace may hold. All quotas of a namespace
// that a unit falls under must have room for it.
type ResourceQuota struct {
	APIVersion string              `json:"apiVersion,omitempty"`
	Kind       string              `json:"kind,omitempty"`
	Metadata   ObjectMeta          `json:"metadata"`
	Spec       ResourceQuotaSpec   `json:"spec"`
	Status     ResourceQuotaStatus `json:"status,omitzero"`
}

// ResourceQuotaSpec is what an operator sets, in quantities as written.
type ResourceQuotaSpec struct {
	// Hard is never exceeded by admission; Soft only warns.
	Hard map[resource.Name]string `json:"hard,omitempty" strict:"number"`
	Soft map[resource.Name]string `json:"soft,omitempty" strict:"number"`
	// Scopes and ScopeSelector say which units fall under it; all must match.
	Scopes        []string       `json:"scopes,omitempty"` // Terminating | NotTerminating
	ScopeSelector *ScopeSelector `json:"scopeSelector,omitempty"`
}

// ScopeSelector selects units by expressions that must all match.
type ScopeSelector struct {
	MatchExpressions []ScopeExpression `json:"matchExpressions,omitempty"`
}

// ScopeExpression is one condition on a unit.
type ScopeExpression struct {
	ScopeName string   `json:"scopeName"` // PriorityClass | Terminating | NotTerminating
	Operator  string   `json:"operator"`  // In | NotIn | Exists | DoesNotExist
	Values    []string `json:"values,omitempty"`
}

// ResourceQuotaStatus is what is used of a quota now.
type ResourceQuotaStatus struct {
	Hard map[resource.Name]string `json:"hard,omitempty"`
	Used map[resource.Name]string `json:"used,omitempty"`
	// Utilization is Used in percent of Hard, e.g. "65%".
	Utilization map[resource.Name]string `json:"utilization,omitempty"`
	// Trend is how the utilization has changed, e.g. "+5% over 24h"; resources
	// of which too little is known yet are left out.
	Trend map[resource.Name]string `json:"trend,omitempty"`
	// Conditions: SoftExceeded, OverLimit (a limit was lowered below the usage).
	Conditions []Condition `json:"conditions,omitempty"`
}

// QuotaTree is a tree of quotas in the form of the quota manager
// (spec/quota-manager.txt), kept as it was submitted.
type QuotaTree struct {
	APIVersion string     `json:"apiVersion,omitempty"`
	Kind       string     `json:"kind"`
	Metadata   ObjectMeta `json:"metadata"`
	// Spec has resourceNames and nodes; coordinator/quota/quotajson reads it.
	Spec   json.RawMessage `json:"spec"`
	Status QuotaTreeStatus `json:"status,omitzero"`
}

// QuotaTreeStatus is a tree as it is in force.
type QuotaTreeStatus struct {
	Root string `json:"root,omitempty"`
	// Dangling are nodes of the specification that are no part of the tree; the
	// lists below say why. All ascend.
	Dangling   []string `json:"dangling,omitempty"`
	OtherRoots []string `json:"otherRoots,omitempty"`
	Orphans    []string `json:"orphans,omitempty"`
	Cyclic     []string `json:"cyclic,omitempty"`
	// Detached are consumers whose group is no leaf any more.
	Detached []string `json:"detached,omitempty"`
	// Nodes in depth-first order, children ascending.
	Nodes []QuotaNodeStatus `json:"nodes,omitempty"`
}

// QuotaNodeStatus is one node of a tree, with amounts as people write them.
type QuotaNodeStatus struct {
	Name   string `json:"name"`
	Parent string `json:"parent,omitempty"`
	Depth  int    `json:"depth"`
	Hard   bool   `json:"hard,omitempty"`
	Leaf   bool   `json:"leaf,omitempty"`
	// Quota, what is allocated at it and below, what its consumers alone hold,
	// what its groups hold further up (borrowed) and what others hold of it
	// further up (lent).
	Quota     map[resource.Name]string `json:"quota,omitempty"`
	Allocated map[resource.Name]string `json:"allocated,omitempty"`
	Own       map[resource.Name]string `json:"own,omitempty"`
	Borrowed  map[resource.Name]string `json:"borrowed,omitempty"`
	Lent      map[resource.Name]string `json:"lent,omitempty"`
	// OverQuota names the resources of which more is allocated than the quota.
	OverQuota []resource.Name `json:"overQuota,omitempty"`
	// Consumers are the units counted here, in the order in which they give way.
	Consumers []string `json:"consumers,omitempty"`
}

// QuotaForest is a set of trees on which units are allocated conjointly: a
// namespace that is bound to it has a group on each of its trees.
type QuotaForest struct {
	APIVersion string          `json:"apiVersion,omitempty"`
	Kind       string          `json:"kind"`
	Metadata   ObjectMeta      `json:"metadata"`
	Spec       QuotaForestSpec `json:"spec"`
}

// QuotaForestSpec names the trees; a tree is in one forest at most.
type QuotaForestSpec struct {
	Trees []string `json:"trees"`
}

// QuotaBinding says to which groups a namespace's units are charged. Its name
// is the namespace's.
type QuotaBinding struct {
	APIVersion string           `json:"apiVersion,omitempty"`
	Kind       string           `json:"kind"`
	Metadata   ObjectMeta       `json:"metadata"`
	Spec       QuotaBindingSpec `json:"spec"`
}

// QuotaBindingSpec maps trees to groups.
type QuotaBindingSpec struct {
	// Forest, where set, must have all of its trees in Groups.
	Forest string            `json:"forest,omitempty"`
	Groups map[string]string `json:"groups,omitempty"` // tree → leaf
	// Admission says what becomes of an allocation over quota: "reject" (403,
	// the default) or "queue". Jobs always queue.
	Admission string `json:"admission,omitempty"`
}

// QuotaDemand is how a unit wishes to be charged, in its specification.
type QuotaDemand struct {
	// Groups replace the namespace's, tree by tree.
	Groups        map[string]string `json:"groups,omitempty"`
	Type          int               `json:"type,omitempty"`
	Unpreemptable bool              `json:"unPreemptable,omitempty"`
}

// QuotaExplanation says where one unit is counted on the trees that it is
// charged to, and what quota lacks where it is not charged.
type QuotaExplanation struct {
	Kind       string           `json:"kind"`
	Consumer   string           `json:"consumer"` // namespace/name of the allocation or job
	Phase      Phase            `json:"phase"`
	Placements []QuotaPlacement `json:"placements"`
	// Reasons say which quota is short, where that keeps the unit from being
	// charged.
	Reasons []resource.Reason `json:"reasons,omitempty"`
	Summary string            `json:"summary"`
}

// QuotaPlacement is the place of a unit on one tree.
type QuotaPlacement struct {
	Tree          string                   `json:"tree"`
	Group         string                   `json:"group"`
	Request       map[resource.Name]string `json:"request"`
	Priority      int32                    `json:"priority"`
	Unpreemptable bool                     `json:"unPreemptable,omitempty"`
	// Node counts the unit; "" where none does. A unit that is counted above
	// its group borrows.
	Node string `json:"node,omitempty"`
	// BorrowsFrom names the nodes of other groups whose quota the unit uses.
	BorrowsFrom []string `json:"borrowsFrom,omitempty"`
	// ReclaimableBy names the leaf groups that may claim that quota back: their
	// arrivals may push the unit up the tree or evict it.
	ReclaimableBy []string `json:"reclaimableBy,omitempty"`
}

// QuotaDryRun says how admission would answer a consumer now. Asking has no
// effect.
type QuotaDryRun struct {
	Kind     string `json:"kind"`
	Admitted bool   `json:"admitted"`
	// Placements say where the consumer would be counted.
	Placements []QuotaPlacement `json:"placements,omitempty"`
	// Victims would be evicted for it, Moved pushed to other nodes.
	Victims []string          `json:"victims,omitempty"`
	Moved   []string          `json:"moved,omitempty"`
	Reasons []resource.Reason `json:"reasons,omitempty"`
	Summary string            `json:"summary"`
}

// Lists, ordered by namespace and name.
type (
	ResourceQuotaList struct {
		Kind     string          `json:"kind"`
		Metadata ListMeta        `json:"metadata"`
		Items    []ResourceQuota `json:"items"`
	}
	QuotaTreeList struct {
		Kind     string      `json:"kind"`
		Metadata ListMeta    `json:"metadata"`
		Items    []QuotaTree `json:"items"`
	}
	QuotaForestList struct {
		Kind     string        `json:"kind"`
		Metadata ListMeta      `json:"metadata"`
		Items    []QuotaForest `json:"items"`
	}
	QuotaBindingList struct {
		Kind     string         `json:"kind"`
		Metadata ListMeta       `json:"metadata"`
		Items    []QuotaBinding `json:"items"`
	}
)
