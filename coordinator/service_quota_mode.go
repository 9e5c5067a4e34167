package coordinator

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/objects"
)

// GetQuotaMode implements service.QuotaModes.
func (c *Coordinator) GetQuotaMode(ctx context.Context) (*api.QuotaMode, error) {
	return look(ctx, c, func(*objects.View) (*api.QuotaMode, *api.Status) {
		m := c.follower.QuotaMode() // not older than the view
		return &m, nil
	})
}

// PatchQuotaMode implements service.QuotaModes.
func (c *Coordinator) PatchQuotaMode(ctx context.Context, p api.QuotaModePatch, by string) (*api.QuotaMode, error) {
	if status := p.Validate(); status != nil {
		return nil, status
	}
	got, err := ask[*api.QuotaMode](ctx, c, lead.PatchQuotaMode{Patch: p, By: by})
	if err == nil {
		if _, late := c.follower.Fresh(ctx); late != nil {
			c.log.Debug("quota_mode_not_followed_yet", "error", late)
		}
	}
	return got, err
}

// Notices are the warnings that each answer of this coordinator has now. Notices does
// not block.
func (c *Coordinator) Notices() []string {
	if notice := c.follower.QuotaMode().Notice(); notice != "" {
		return []string{notice}
	}
	return nil
}
