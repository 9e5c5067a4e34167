package coordinator

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
)

// ReclaimQuota implements service.Quotas.
func (c *Coordinator) ReclaimQuota(ctx context.Context, tree string, dryRun bool, grace *int64) (*api.QuotaReclaim, error) {
	options := api.ReclaimOptions{GracePeriodSeconds: grace}
	if status := options.Validate(); status != nil {
		return nil, status
	}
	return ask[*api.QuotaReclaim](ctx, c, lead.ReclaimQuota{Tree: tree, DryRun: dryRun, Grace: grace})
}
