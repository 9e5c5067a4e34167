package service

import (
	"context"

	"github.com/musterd/muster/api"
)

// Quotas are the limits of tenants. Objects are changed under optimistic
// concurrency: an update carries the resourceVersion it was made from and is
// refused with 409 where that is no longer the object's; "" means any. Limits
// that are lowered below the usage end nothing.
type Quotas interface {
	CreateResourceQuota(ctx context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error)
	GetResourceQuota(ctx context.Context, namespace, name string) (*api.ResourceQuota, error)
	// ListResourceQuotas lists a namespace's, or with "" all.
	ListResourceQuotas(ctx context.Context, namespace string) (*api.ResourceQuotaList, error)
	UpdateResourceQuota(ctx context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error)
	DeleteResourceQuota(ctx context.Context, namespace, name string, require api.Preconditions) (*api.ResourceQuota, error)

	// PutQuotaTree creates a tree (create: refused with 409 where it exists) or
	// replaces it; its consumers move to the new tree, none is evicted.
	PutQuotaTree(ctx context.Context, t *api.QuotaTree, create bool) (*api.QuotaTree, error)
	GetQuotaTree(ctx context.Context, name string) (*api.QuotaTree, error)
	ListQuotaTrees(ctx context.Context) (*api.QuotaTreeList, error)
	// DeleteQuotaTree is refused with 409 while units are charged to the tree or
	// bindings name it.
	DeleteQuotaTree(ctx context.Context, name string, require api.Preconditions) (*api.QuotaTree, error)

	PutQuotaForest(ctx context.Context, f *api.QuotaForest, create bool) (*api.QuotaForest, error)
	GetQuotaForest(ctx context.Context, name string) (*api.QuotaForest, error)
	ListQuotaForests(ctx context.Context) (*api.QuotaForestList, error)
	DeleteQuotaForest(ctx context.Context, name string, require api.Preconditions) (*api.QuotaForest, error)

	PutQuotaBinding(ctx context.Context, b *api.QuotaBinding, create bool) (*api.QuotaBinding, error)
	GetQuotaBinding(ctx context.Context, namespace string) (*api.QuotaBinding, error)
	ListQuotaBindings(ctx context.Context) (*api.QuotaBindingList, error)
	DeleteQuotaBinding(ctx context.Context, namespace string, require api.Preconditions) (*api.QuotaBinding, error)

	// ReclaimQuota ends units until no node of a tree is over its quota any
	// more, or with dryRun only lists them. Jobs end whole; units that must not
	// be evicted stay. grace is in seconds, nil for the default. It answers
	// once the ends are durable, which may take grace to come; asked again in
	// between it ends nothing more.
	ReclaimQuota(ctx context.Context, tree string, dryRun bool, grace *int64) (*api.QuotaReclaim, error)

	// ExplainQuota returns the placements of an allocation or job on its trees.
	ExplainQuota(ctx context.Context, namespace, name string) (*api.QuotaExplanation, error)
	// TryQuota returns the answer of admission to a consumer document
	// (spec/quota-manager.txt, kind Consumer) now, without effect. It names the work
	// that reader may see, and counts the rest.
	TryQuota(ctx context.Context, consumer []byte, reader Principal) (*api.QuotaDryRun, error)
}
