package sdk

import (
	"context"
	"net/http"
	"net/url"

	"github.com/musterd/muster/api"
)

// History is the history of the cluster, as its operators see it. Each coordinator
// answers by itself.
type History struct{ c *Client }

// History returns the calls on the history.
func (c *Client) History() History { return History{c} }

// Status says how far the history is.
func (h History) Status(ctx context.Context) (*api.HistoryStatus, error) {
	return call[api.HistoryStatus](ctx, h.c, request{method: http.MethodGet, path: "/api/v1/history/status"})
}

// Verify compares the history with the store, and changes nothing.
func (h History) Verify(ctx context.Context) (*api.HistoryReport, error) {
	return call[api.HistoryReport](ctx, h.c, request{method: http.MethodGet, path: "/api/v1/history/verify"})
}

// Rebuild writes the rows anew that differ, and returns the differences. It may be
// repeated.
func (h History) Rebuild(ctx context.Context) (*api.HistoryReport, error) {
	return call[api.HistoryReport](ctx, h.c, request{method: http.MethodPost, path: "/api/v1/history/rebuild"})
}

// Prune removes the rows that are older than the periods of their kinds; with dryRun it
// removes nothing and says which would go. It may be repeated.
func (h History) Prune(ctx context.Context, dryRun bool) (*api.HistoryRetention, error) {
	query := url.Values{}
	if dryRun {
		query.Set("dryRun", "All")
	}
	return call[api.HistoryRetention](ctx, h.c, request{method: http.MethodPost, path: "/api/v1/history/prune", query: query})
}
