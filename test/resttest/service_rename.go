package resttest

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
)

// RenameQuotaNode implements service.QuotaRenames.
func (c *Cluster) RenameQuotaNode(ctx context.Context, tree string, r api.QuotaRename) (*api.QuotaTree, error) {
	return ask[*api.QuotaTree](ctx, c, lead.RenameQuotaNode{Tree: tree, From: r.From, To: r.To})
}
