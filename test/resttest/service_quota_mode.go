package resttest

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/record"
)

// GetQuotaMode implements service.QuotaModes.
func (c *Cluster) GetQuotaMode(context.Context) (*api.QuotaMode, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	kv, found, _ := c.key(record.QuotaModeKey)
	rec := record.QuotaMode{}
	if found {
		var err error
		if rec, err = record.Decode[record.QuotaMode](kv.Key, kv.Value); err != nil {
			return nil, err
		}
	}
	mode := charges.QuotaModeOf(rec, kv.ModRev)
	return &mode, nil
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
