package sdk

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/musterd/muster/api"
)

// AuditOptions selects entries of the audit. Zero fields select all.
type AuditOptions struct {
	// Person is a user's name, Verb and Resource are those of the table of roles, such
	// as delete and allocations, and Result is done or refused.
	Person, Verb, Resource, Namespace, Name, Result string
	Since, Until                                    time.Time
	// Limit bounds the entries, 1 to 1000; 0 = 100.
	Limit int
	// Continue is that of the page before, whose entries are newer.
	Continue string
}

// Audit returns a page of the entries that the caller may see, the newest first:
// changes that persons have made in the last 25 hours, and requests that the
// coordinator which answers has refused. An admin sees all, a tenant-admin those of the
// own tenant.
func (c *Client) Audit(ctx context.Context, o AuditOptions) (*api.AuditEntryList, error) {
	query := url.Values{}
	set := func(name, value string) {
		if value != "" {
			query.Set(name, value)
		}
	}
	set("person", o.Person)
	set("verb", o.Verb)
	set("resource", o.Resource)
	set("namespace", o.Namespace)
	set("name", o.Name)
	set("result", o.Result)
	set("continue", o.Continue)
	if o.Limit > 0 {
		set("limit", strconv.Itoa(o.Limit))
	}
	if !o.Since.IsZero() {
		set("since", o.Since.UTC().Format(time.RFC3339))
	}
	if !o.Until.IsZero() {
		set("until", o.Until.UTC().Format(time.RFC3339))
	}
	return call[api.AuditEntryList](ctx, c, request{method: http.MethodGet, path: "/api/v1/audit", query: query})
}
