package resttest

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/grant"
)

// NotLeading is the service of a follower whose cache is not loaded: it refuses
// each request about allocations, jobs, nodes, quota, tenants, namespaces and usage
// with api.NotLeader. The other methods are those of Service, which may be nil.
type NotLeading struct{ service.Service }

var _ service.Service = NotLeading{}

func notLeading() error { return api.Errorf(503, "another coordinator leads").Because(api.NotLeader) }

// CreateAllocation implements service.Service.
func (NotLeading) CreateAllocation(context.Context, service.Create, *api.Allocation) (*api.Allocation, error) {
	return nil, notLeading()
}

// GetAllocation implements service.Service.
func (NotLeading) GetAllocation(context.Context, string, string, time.Duration) (*api.Allocation, error) {
	return nil, notLeading()
}

// ListAllocations implements service.Service.
func (NotLeading) ListAllocations(context.Context, string, service.Page[api.Allocation]) (*api.AllocationList, error) {
	return nil, notLeading()
}

// PatchAllocation implements service.Service.
func (NotLeading) PatchAllocation(context.Context, string, string, api.WorkPatch) (*api.Allocation, error) {
	return nil, notLeading()
}

// DeleteAllocation implements service.Service.
func (NotLeading) DeleteAllocation(context.Context, string, string, api.DeleteOptions) (*api.Allocation, error) {
	return nil, notLeading()
}

// TryAllocation implements service.Service.
func (NotLeading) TryAllocation(context.Context, service.Create, *api.Allocation, service.ExplainOptions) (*api.Explanation, error) {
	return nil, notLeading()
}

// ExplainAllocation implements service.Service.
func (NotLeading) ExplainAllocation(context.Context, string, string, service.ExplainOptions) (*api.Explanation, error) {
	return nil, notLeading()
}

// CreateJob implements service.Service.
func (NotLeading) CreateJob(context.Context, service.Create, *api.Job) (*api.Job, error) {
	return nil, notLeading()
}

// GetJob implements service.Service.
func (NotLeading) GetJob(context.Context, string, string, time.Duration) (*api.Job, error) {
	return nil, notLeading()
}

// ListJobs implements service.Service.
func (NotLeading) ListJobs(context.Context, string, service.Page[api.Job]) (*api.JobList, error) {
	return nil, notLeading()
}

// PatchJob implements service.Service.
func (NotLeading) PatchJob(context.Context, string, string, api.WorkPatch) (*api.Job, error) {
	return nil, notLeading()
}

// BoostJob implements service.Service.
func (NotLeading) BoostJob(context.Context, string, string, api.BoostOptions) (*api.Boost, error) {
	return nil, notLeading()
}

// CancelJob implements service.Service.
func (NotLeading) CancelJob(context.Context, string, string, api.DeleteOptions) (*api.Job, error) {
	return nil, notLeading()
}

// DeleteJob implements service.Service.
func (NotLeading) DeleteJob(context.Context, string, string, api.DeleteOptions) (*api.Job, error) {
	return nil, notLeading()
}

// TryJob implements service.Service.
func (NotLeading) TryJob(context.Context, service.Create, *api.Job, service.ExplainOptions) (*api.Explanation, error) {
	return nil, notLeading()
}

// ExplainJob implements service.Service.
func (NotLeading) ExplainJob(context.Context, string, string, service.ExplainOptions) (*api.Explanation, error) {
	return nil, notLeading()
}

// ListNodes implements service.Service.
func (NotLeading) ListNodes(context.Context) (*api.NodeList, error) {
	return nil, notLeading()
}

// GetNode implements service.Service.
func (NotLeading) GetNode(context.Context, string) (*api.Node, error) {
	return nil, notLeading()
}

// PatchNode implements service.Service.
func (NotLeading) PatchNode(context.Context, string, api.NodePatch) (*api.Node, error) {
	return nil, notLeading()
}

// CreateNode implements service.Service.
func (NotLeading) CreateNode(context.Context, *api.Node) (*api.Node, error) {
	return nil, notLeading()
}

// PatchNodeStatus implements service.Service.
func (NotLeading) PatchNodeStatus(context.Context, string, api.NodeStatusPatch) (*api.Node, error) {
	return nil, notLeading()
}

// ApproveNode implements service.Service.
func (NotLeading) ApproveNode(context.Context, string, api.ApproveOptions) (*api.Node, error) {
	return nil, notLeading()
}

// DeleteNode implements service.Service.
func (NotLeading) DeleteNode(context.Context, string, api.Preconditions) (*api.Node, error) {
	return nil, notLeading()
}

// FenceNode implements service.Service.
func (NotLeading) FenceNode(context.Context, string, api.FenceOptions) (*api.Node, error) {
	return nil, notLeading()
}

// ReconcileNode implements service.Service.
func (NotLeading) ReconcileNode(context.Context, string, api.ReconcileOptions) (*api.Reconciliation, error) {
	return nil, notLeading()
}

// CreateResourceQuota implements service.Service.
func (NotLeading) CreateResourceQuota(context.Context, *api.ResourceQuota) (*api.ResourceQuota, error) {
	return nil, notLeading()
}

// GetResourceQuota implements service.Service.
func (NotLeading) GetResourceQuota(context.Context, string, string) (*api.ResourceQuota, error) {
	return nil, notLeading()
}

// ListResourceQuotas implements service.Service.
func (NotLeading) ListResourceQuotas(context.Context, string) (*api.ResourceQuotaList, error) {
	return nil, notLeading()
}

// UpdateResourceQuota implements service.Service.
func (NotLeading) UpdateResourceQuota(context.Context, *api.ResourceQuota) (*api.ResourceQuota, error) {
	return nil, notLeading()
}

// DeleteResourceQuota implements service.Service.
func (NotLeading) DeleteResourceQuota(context.Context, string, string, api.Preconditions) (*api.ResourceQuota, error) {
	return nil, notLeading()
}

// PutQuotaTree implements service.Service.
func (NotLeading) PutQuotaTree(context.Context, *api.QuotaTree, bool) (*api.QuotaTree, error) {
	return nil, notLeading()
}

// GetQuotaTree implements service.Service.
func (NotLeading) GetQuotaTree(context.Context, string) (*api.QuotaTree, error) {
	return nil, notLeading()
}

// ListQuotaTrees implements service.Service.
func (NotLeading) ListQuotaTrees(context.Context) (*api.QuotaTreeList, error) {
	return nil, notLeading()
}

// DeleteQuotaTree implements service.Service.
func (NotLeading) DeleteQuotaTree(context.Context, string, api.Preconditions) (*api.QuotaTree, error) {
	return nil, notLeading()
}

// PutQuotaForest implements service.Service.
func (NotLeading) PutQuotaForest(context.Context, *api.QuotaForest, bool) (*api.QuotaForest, error) {
	return nil, notLeading()
}

// GetQuotaForest implements service.Service.
func (NotLeading) GetQuotaForest(context.Context, string) (*api.QuotaForest, error) {
	return nil, notLeading()
}

// ListQuotaForests implements service.Service.
func (NotLeading) ListQuotaForests(context.Context) (*api.QuotaForestList, error) {
	return nil, notLeading()
}

// DeleteQuotaForest implements service.Service.
func (NotLeading) DeleteQuotaForest(context.Context, string, api.Preconditions) (*api.QuotaForest, error) {
	return nil, notLeading()
}

// PutQuotaBinding implements service.Service.
func (NotLeading) PutQuotaBinding(context.Context, *api.QuotaBinding, bool) (*api.QuotaBinding, error) {
	return nil, notLeading()
}

// GetQuotaBinding implements service.Service.
func (NotLeading) GetQuotaBinding(context.Context, string) (*api.QuotaBinding, error) {
	return nil, notLeading()
}

// ListQuotaBindings implements service.Service.
func (NotLeading) ListQuotaBindings(context.Context) (*api.QuotaBindingList, error) {
	return nil, notLeading()
}

// DeleteQuotaBinding implements service.Service.
func (NotLeading) DeleteQuotaBinding(context.Context, string, api.Preconditions) (*api.QuotaBinding, error) {
	return nil, notLeading()
}

// ReclaimQuota implements service.Service.
func (NotLeading) ReclaimQuota(context.Context, string, bool, *int64) (*api.QuotaReclaim, error) {
	return nil, notLeading()
}

// ExplainQuota implements service.Service.
func (NotLeading) ExplainQuota(context.Context, string, string) (*api.QuotaExplanation, error) {
	return nil, notLeading()
}

// TryQuota implements service.Service.
func (NotLeading) TryQuota(context.Context, []byte, service.Principal) (*api.QuotaDryRun, error) {
	return nil, notLeading()
}

// ListEvents implements service.Service.
func (NotLeading) ListEvents(context.Context, string, service.Page[api.Event]) (*api.EventList, error) {
	return nil, notLeading()
}

// GetEvent implements service.Service.
func (NotLeading) GetEvent(context.Context, string, string) (*api.Event, error) {
	return nil, notLeading()
}

// PreemptAllocation implements service.Service.
func (NotLeading) PreemptAllocation(context.Context, string, api.PreemptionRequest) (*api.Preemption, error) {
	return nil, notLeading()
}

// DrainNode implements service.Service.
func (NotLeading) DrainNode(context.Context, string, api.DrainOptions) (*api.Drain, error) {
	return nil, notLeading()
}

// JobLogs implements service.Service: any coordinator serves output.
func (n NotLeading) JobLogs(ctx context.Context, namespace, name string, q service.LogQuery) (service.LogStream, error) {
	return nil, api.Errorf(503, "the cache is not loaded")
}

// JobExec implements service.Service: any coordinator serves sessions.
func (n NotLeading) JobExec(ctx context.Context, namespace, name string, q service.ExecQuery) (grant.ExecSession, error) {
	return nil, api.Errorf(503, "the cache is not loaded")
}
