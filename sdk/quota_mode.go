package sdk

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/musterd/muster/api"
)

// QuotaMode returns the mode of the quota trees.
func (c *Client) QuotaMode(ctx context.Context) (*api.QuotaMode, error) {
	return call[api.QuotaMode](ctx, c, request{method: http.MethodGet, path: "/api/v1/quota"})
}

// SetQuotaMode changes the mode of the quota trees. The change is sent once.
func (c *Client) SetQuotaMode(ctx context.Context, p api.QuotaModePatch) (*api.QuotaMode, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return call[api.QuotaMode](ctx, c, request{method: http.MethodPatch, path: "/api/v1/quota", contentType: "application/merge-patch+json", body: body})
}
