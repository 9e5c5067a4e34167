package resttest

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/quota/quotajson"
	"github.com/musterd/muster/coordinator/service"
)

// ExplainAllocation implements service.Allocations.
func (c *Cluster) ExplainAllocation(ctx context.Context, namespace, name string, o service.ExplainOptions) (*api.Explanation, error) {
	return explained(ask[*lead.Explaining](ctx, c, lead.ExplainAllocation{Namespace: namespace, Name: name, Asked: lead.Asked(o)}))
}

// ExplainJob implements service.Jobs. The job's first unit that waits is
// explained.
func (c *Cluster) ExplainJob(ctx context.Context, namespace, name string, o service.ExplainOptions) (*api.Explanation, error) {
	return explained(ask[*lead.Explaining](ctx, c, lead.ExplainJob{Namespace: namespace, Name: name, Asked: lead.Asked(o)}))
}

// ExplainQuota implements service.Quotas. Of a job the first unit that waits is
// explained, else the first.
func (c *Cluster) ExplainQuota(ctx context.Context, namespace, name string) (*api.QuotaExplanation, error) {
	return ask[*api.QuotaExplanation](ctx, c, lead.ExplainQuota{Namespace: namespace, Name: name})
}

// TryQuota implements service.Quotas.
func (c *Cluster) TryQuota(ctx context.Context, consumer []byte, reader service.Principal) (*api.QuotaDryRun, error) {
	spec, _, err := quotajson.Consumer(consumer, quotajson.Natural)
	if err != nil {
		return nil, api.Errorf(422, "%v", err)
	}
	return ask[*api.QuotaDryRun](ctx, c, lead.TryQuota{Consumer: spec, Operator: reader.Everywhere(service.Tenants), Tenant: reader.Tenant})
}

// ReclaimQuota implements service.Quotas.
func (c *Cluster) ReclaimQuota(ctx context.Context, tree string, dryRun bool, grace *int64) (*api.QuotaReclaim, error) {
	options := api.ReclaimOptions{GracePeriodSeconds: grace}
	if status := options.Validate(); status != nil {
		return nil, status
	}
	return ask[*api.QuotaReclaim](ctx, c, lead.ReclaimQuota{Tree: tree, DryRun: dryRun, Grace: grace})
}

// explained answers without the leader.
func explained(x *lead.Explaining, err error) (*api.Explanation, error) {
	if err != nil {
		return nil, err
	}
	return x.Answer(), nil
}

// TryAllocation implements service.Allocations.
func (c *Cluster) TryAllocation(ctx context.Context, create service.Create, a *api.Allocation, o service.ExplainOptions) (*api.Explanation, error) {
	return explained(ask[*lead.Explaining](ctx, c, lead.TryAllocation{Submitted: submittedAs(ctx, create), Document: a, Asked: lead.Asked(o)}))
}

// TryJob implements service.Jobs.
func (c *Cluster) TryJob(ctx context.Context, create service.Create, j *api.Job, o service.ExplainOptions) (*api.Explanation, error) {
	return explained(ask[*lead.Explaining](ctx, c, lead.TryJob{Submitted: submittedAs(ctx, create), Document: j, Asked: lead.Asked(o)}))
}
