package sdk

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/musterd/muster/api"
)

// FeatureLevel returns the feature level of the cluster, with the programs below the newest
// level.
func (c *Client) FeatureLevel(ctx context.Context) (*api.FeatureLevel, error) {
	return call[api.FeatureLevel](ctx, c, request{method: http.MethodGet, path: "/api/v1/featurelevel"})
}

// RaiseFeatureLevel raises the feature level of the cluster for good. Where a program does
// not know the level the answer is 409. The raise is sent once.
func (c *Client) RaiseFeatureLevel(ctx context.Context, p api.FeatureLevelPatch) (*api.FeatureLevel, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return call[api.FeatureLevel](ctx, c, request{method: http.MethodPatch, path: "/api/v1/featurelevel", contentType: "application/merge-patch+json", body: body})
}
