// Package service is the one door to the coordinator: the contract of each kind,
// the caller of a request, and the coordinators among which a request finds the
// leader. REST and gRPC are codecs over it. It knows neither HTTP nor gRPC, and
// it decides nothing about a kind: that is the business of the implementation
// behind the contract.
package service

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
)

// Service is the implementation behind the API: the kinds, quota and the
// explanations. All methods may block; they return an *api.Status as error for
// every refusal. The results are the caller's own copies.
type Service interface {
	Allocations
	Jobs
	Logs
	Execs
	Nodes
	Evictions
	Quotas
	QuotaRenames
	QuotaModes
	Metrics
	Spaces
	Resources
	Written
	Snapshots
	Events
}

// Create is a validated submission.
type Create struct {
	Namespace string
	// Document is the body as JSON without blanks between its tokens, which is kept and
	// echoed. It is not changed.
	Document []byte
	// Hash is the HashOf the body exactly as it was submitted (a YAML body as the JSON
	// that it was converted to); "" = that of Document.
	Hash string
	// RequestID makes the create idempotent for 24 h; "" = not.
	RequestID string
	// Repeated, where not nil, is set to true by the service when RequestID was
	// seen before: the answer then is the object that the first request made.
	Repeated *bool
	// Wait bounds how long to wait for the object to run; 0 = answer at once.
	Wait time.Duration
}

// ExplainOptions say who asks for an explanation, and for how much.
type ExplainOptions struct {
	// Operator sees the names of all work; anybody else the names of the work of
	// the object's tenant.
	Operator bool
	// EveryNode wants the answer of each node, and all names of a group.
	EveryNode bool
}

// Allocations are single members. Namespace "" in List means all.
type Allocations interface {
	CreateAllocation(ctx context.Context, c Create, a *api.Allocation) (*api.Allocation, error)
	// GetAllocation waits up to wait for the allocation to run or end.
	GetAllocation(ctx context.Context, namespace, name string, wait time.Duration) (*api.Allocation, error)
	// ListAllocations returns a page; metadata.continue is the position of its
	// last object where there are more.
	ListAllocations(ctx context.Context, namespace string, p Page[api.Allocation]) (*api.AllocationList, error)
	// PatchAllocation changes labels, annotations, spec.suspend or spec.queue. It is refused with 409 where
	// the allocation has another resourceVersion than the patch names, is ending,
	// or is a member of a job.
	PatchAllocation(ctx context.Context, namespace, name string, p api.WorkPatch) (*api.Allocation, error)
	DeleteAllocation(ctx context.Context, namespace, name string, o api.DeleteOptions) (*api.Allocation, error)
	// ReleaseAllocations asks for the end of several allocations of a namespace.
	ReleaseAllocations(ctx context.Context, namespace string, r Release) (*api.BulkRelease, error)
	// TryAllocation explains the outcome that a submission would have, and stores nothing.
	TryAllocation(ctx context.Context, c Create, a *api.Allocation, o ExplainOptions) (*api.Explanation, error)
	ExplainAllocation(ctx context.Context, namespace, name string, o ExplainOptions) (*api.Explanation, error)
}

// Jobs are sets of members.
type Jobs interface {
	CreateJob(ctx context.Context, c Create, j *api.Job) (*api.Job, error)
	GetJob(ctx context.Context, namespace, name string, wait time.Duration) (*api.Job, error)
	// ListJobs is as ListAllocations.
	ListJobs(ctx context.Context, namespace string, p Page[api.Job]) (*api.JobList, error)
	// PatchJob changes labels, annotations, spec.suspend, spec.queue or spec.parallelism, with the same precondition.
	PatchJob(ctx context.Context, namespace, name string, p api.WorkPatch) (*api.Job, error)
	// CancelJob ends a job and keeps its object; DeleteJob ends it and removes
	// the object.
	CancelJob(ctx context.Context, namespace, name string, o api.DeleteOptions) (*api.Job, error)
	DeleteJob(ctx context.Context, namespace, name string, o api.DeleteOptions) (*api.Job, error)
	// BoostJob gives the job's members that wait a greater priority for a while. It is
	// refused with 409 where none waits, and with 403 above a ceiling.
	BoostJob(ctx context.Context, namespace, name string, o api.BoostOptions) (*api.Boost, error)
	// TryJob explains the outcome that a submission would have, and stores nothing.
	TryJob(ctx context.Context, c Create, j *api.Job, o ExplainOptions) (*api.Explanation, error)
	ExplainJob(ctx context.Context, namespace, name string, o ExplainOptions) (*api.Explanation, error)
}

// Nodes are hosts.
type Nodes interface {
	ListNodes(ctx context.Context) (*api.NodeList, error)
	GetNode(ctx context.Context, name string) (*api.Node, error)
	// PatchNode changes the fields of a node that operators set. The change is
	// refused with 409 where the node has another resourceVersion than the
	// patch names.
	PatchNode(ctx context.Context, name string, p api.NodePatch) (*api.Node, error)
	// CreateNode writes the settings of a node and the capacity that its host is
	// expected to have. Each node is created once, before its agent registers or after;
	// the second creation is refused with 409.
	CreateNode(ctx context.Context, n *api.Node) (*api.Node, error)
	// PatchNodeStatus lowers the amounts of a node that are handed out, or ends that.
	PatchNodeStatus(ctx context.Context, name string, p api.NodeStatusPatch) (*api.Node, error)
	// ApproveNode approves all that a node has registered. It may be repeated.
	ApproveNode(ctx context.Context, name string, o api.ApproveOptions) (*api.Node, error)
	// DeleteNode forgets a node that has left for good, and returns it as it was.
	DeleteNode(ctx context.Context, name string, require api.Preconditions) (*api.Node, error)
	// FenceNode returns once the fence is durable. It may be repeated.
	FenceNode(ctx context.Context, name string, o api.FenceOptions) (*api.Node, error)
	// ReconcileNode returns once the node's agent is out of quarantine; a dry
	// run returns the effect. It may be repeated.
	ReconcileNode(ctx context.Context, name string, o api.ReconcileOptions) (*api.Reconciliation, error)
}
