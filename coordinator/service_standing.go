package coordinator

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/quota/quotajson"
	"github.com/musterd/muster/coordinator/service"
)

// ExplainQuota implements service.Quotas. Of a job the first unit that waits is
// explained, else the first.
func (c *Coordinator) ExplainQuota(ctx context.Context, namespace, name string) (*api.QuotaExplanation, error) {
	return ask[*api.QuotaExplanation](ctx, c, lead.ExplainQuota{Namespace: namespace, Name: name})
}

// TryQuota implements service.Quotas.
func (c *Coordinator) TryQuota(ctx context.Context, consumer []byte, reader service.Principal) (*api.QuotaDryRun, error) {
	spec, _, err := quotajson.Consumer(consumer, quotajson.Natural)
	if err != nil {
		return nil, api.Errorf(422, "%v", err)
	}
	return ask[*api.QuotaDryRun](ctx, c, lead.TryQuota{Consumer: spec, Operator: reader.Everywhere(service.Tenants), Tenant: reader.Tenant})
}
