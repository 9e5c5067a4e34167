package resttest

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/shown"
)

// PutQuotaForest implements service.Quotas.
func (c *Cluster) PutQuotaForest(ctx context.Context, f *api.QuotaForest, create bool) (*api.QuotaForest, error) {
	if status := f.Validate(); status != nil {
		return nil, status
	}
	return ask[*api.QuotaForest](ctx, c, lead.Put[api.QuotaForest]{Object: f, Create: create})
}

// GetQuotaForest implements service.Quotas.
func (c *Cluster) GetQuotaForest(ctx context.Context, name string) (*api.QuotaForest, error) {
	return see(ctx, c, func(v *objects.View) (*api.QuotaForest, *api.Status) {
		s, found := v.Forest(name)
		if !found {
			return nil, edit.Forests.NotFound(name)
		}
		return s.Copy(), nil
	})
}

// ListQuotaForests implements service.Quotas.
func (c *Cluster) ListQuotaForests(ctx context.Context) (*api.QuotaForestList, error) {
	return see(ctx, c, func(v *objects.View) (*api.QuotaForestList, *api.Status) {
		items, version := shown.List(v.Floor(), v.Forests())
		return &api.QuotaForestList{Kind: "QuotaForestList", Metadata: version, Items: items}, nil
	})
}

// DeleteQuotaForest implements service.Quotas.
func (c *Cluster) DeleteQuotaForest(ctx context.Context, name string, require api.Preconditions) (*api.QuotaForest, error) {
	return ask[*api.QuotaForest](ctx, c, lead.Delete[api.QuotaForest]{Name: name, Require: require})
}

// PutQuotaBinding implements service.Quotas. Units that run stay charged as they
// are; those that wait follow.
func (c *Cluster) PutQuotaBinding(ctx context.Context, b *api.QuotaBinding, create bool) (*api.QuotaBinding, error) {
	if status := b.Validate(); status != nil {
		return nil, status
	}
	return ask[*api.QuotaBinding](ctx, c, lead.Put[api.QuotaBinding]{Object: b, Create: create})
}

// GetQuotaBinding implements service.Quotas.
func (c *Cluster) GetQuotaBinding(ctx context.Context, namespace string) (*api.QuotaBinding, error) {
	return see(ctx, c, func(v *objects.View) (*api.QuotaBinding, *api.Status) {
		s, found := v.Binding(namespace)
		if !found {
			return nil, edit.Bindings.NotFound(namespace)
		}
		return s.Copy(), nil
	})
}

// ListQuotaBindings implements service.Quotas.
func (c *Cluster) ListQuotaBindings(ctx context.Context) (*api.QuotaBindingList, error) {
	return see(ctx, c, func(v *objects.View) (*api.QuotaBindingList, *api.Status) {
		items, version := shown.List(v.Floor(), v.Bindings())
		return &api.QuotaBindingList{Kind: "QuotaBindingList", Metadata: version, Items: items}, nil
	})
}

// DeleteQuotaBinding implements service.Quotas.
func (c *Cluster) DeleteQuotaBinding(ctx context.Context, namespace string, require api.Preconditions) (*api.QuotaBinding, error) {
	return ask[*api.QuotaBinding](ctx, c, lead.Delete[api.QuotaBinding]{Name: namespace, Require: require})
}
