package sdk

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/musterd/muster/api"
)

// PastOptions selects rows of the past. Zero fields select all that the caller may see.
type PastOptions struct {
	// State is the phase of an allocation, the outcome of a preemption, or the type of an
	// event.
	Namespace, Name, State string
	Since, Until           time.Time
	// Limit bounds the rows, 1 to 1000; 0 = 100.
	Limit int
	// Continue is that of the page before, whose rows are newer.
	Continue string
}

func (o PastOptions) request(list string) request {
	query := url.Values{}
	for name, value := range map[string]string{"namespace": o.Namespace, "name": o.Name, "state": o.State, "continue": o.Continue} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if o.Limit > 0 {
		query.Set("limit", strconv.Itoa(o.Limit))
	}
	for name, at := range map[string]time.Time{"since": o.Since, "until": o.Until} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339))
		}
	}
	return request{method: http.MethodGet, path: "/api/v1/history/" + list, query: query}
}

// PastAllocations returns a page of allocations of the past, the newest first.
func (c *Client) PastAllocations(ctx context.Context, o PastOptions) (*api.PastAllocationList, error) {
	return call[api.PastAllocationList](ctx, c, o.request("allocations"))
}

// PastPreemptions returns a page of preemptions of the past, the newest first.
func (c *Client) PastPreemptions(ctx context.Context, o PastOptions) (*api.PastPreemptionList, error) {
	return call[api.PastPreemptionList](ctx, c, o.request("preemptions"))
}

// PastEvents returns a page of events of allocations of the past, the newest first.
func (c *Client) PastEvents(ctx context.Context, o PastOptions) (*api.PastEventList, error) {
	return call[api.PastEventList](ctx, c, o.request("events"))
}
