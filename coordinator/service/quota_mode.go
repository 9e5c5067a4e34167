package service

import (
	"context"

	"github.com/musterd/muster/api"
)

// QuotaModes is the mode of the quota trees.
type QuotaModes interface {
	GetQuotaMode(ctx context.Context) (*api.QuotaMode, error)
	// PatchQuotaMode changes the mode; by is the caller's name, which the record keeps.
	// No unit moves or ends. The change counts at this coordinator when the call
	// returns.
	PatchQuotaMode(ctx context.Context, p api.QuotaModePatch, by string) (*api.QuotaMode, error)
}
