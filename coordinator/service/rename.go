package service

import (
	"context"

	"github.com/musterd/muster/api"
)

// QuotaRenames change names of quota; the charges stay.
type QuotaRenames interface {
	// RenameQuotaNode renames a node of a tree. Units that are charged to it stay
	// attached, and the bindings that name it follow.
	RenameQuotaNode(ctx context.Context, tree string, r api.QuotaRename) (*api.QuotaTree, error)
}
