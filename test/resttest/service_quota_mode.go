package resttest

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
)

// GetQuotaMode implements service.QuotaModes.
func (c *Cluster) GetQuotaMode(ctx context.Context) (*api.QuotaMode, error) {
	return ask[*api.QuotaMode](ctx, c, lead.GetQuotaMode{})
}

// PatchQuotaMode implements service.QuotaModes.
func (c *Cluster) PatchQuotaMode(ctx context.Context, p api.QuotaModePatch, by string) (*api.QuotaMode, error) {
	if status := p.Validate(); status != nil {
		return nil, status
	}
	return ask[*api.QuotaMode](ctx, c, lead.PatchQuotaMode{Patch: p, By: by})
}

// Notices are the warnings of the moment.
func (c *Cluster) Notices() []string {
	m, err := c.GetQuotaMode(context.Background())
	if err != nil || m.Notice() == "" {
		return nil
	}
	return []string{m.Notice()}
}

// GetQuotaMode implements service.Service.
func (NotLeading) GetQuotaMode(context.Context) (*api.QuotaMode, error) { return nil, notLeading() }

// PatchQuotaMode implements service.Service.
func (NotLeading) PatchQuotaMode(context.Context, api.QuotaModePatch, string) (*api.QuotaMode, error) {
	return nil, notLeading()
}
