package sdk

import (
	"context"

	"github.com/musterd/muster/api"
)

// Resources are the names of resources that requests and quotas may have.
type Resources struct {
	quotaDocuments[api.Resource]
}

// Resources selects the resources: those that are built in, those that registered nodes
// declare, and those that operators created.
func (c *Client) Resources() Resources {
	return Resources{quotaDocuments[api.Resource]{
		objects{client: c, path: collection("", "resources")}, followed[api.Resource](c, "resources", ""), func(r *api.Resource) string { return r.Metadata.Name },
	}}
}

// List returns resources ordered by name.
func (r Resources) List(ctx context.Context, o ListOptions) (*api.ResourceList, error) {
	return listAll(ctx, r.objects, o, func(l *api.ResourceList) (*api.ListMeta, *[]api.Resource) { return &l.Metadata, &l.Items })
}
