package coordinator

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/shown"
)

// PutQuotaBinding implements service.Quotas. Units that run stay charged as they
// are; those that wait follow.
func (c *Coordinator) PutQuotaBinding(ctx context.Context, b *api.QuotaBinding, create bool) (*api.QuotaBinding, error) {
	if status := b.Validate(); status != nil {
		return nil, status
	}
	return ask[*api.QuotaBinding](ctx, c, lead.Put[api.QuotaBinding]{Object: b, Create: create})
}

// GetQuotaBinding implements service.Quotas.
func (c *Coordinator) GetQuotaBinding(ctx context.Context, namespace string) (*api.QuotaBinding, error) {
	return look(ctx, c, func(i *objects.View) (*api.QuotaBinding, *api.Status) {
		s, found := i.Binding(namespace)
		if !found {
			return nil, edit.Bindings.NotFound(namespace)
		}
		return s.Copy(), nil
	})
}

// ListQuotaBindings implements service.Quotas.
func (c *Coordinator) ListQuotaBindings(ctx context.Context) (*api.QuotaBindingList, error) {
	return look(ctx, c, func(i *objects.View) (*api.QuotaBindingList, *api.Status) {
		items, version := shown.List(i.Floor(), i.Bindings())
		return &api.QuotaBindingList{Kind: "QuotaBindingList", Metadata: version, Items: items}, nil
	})
}

// DeleteQuotaBinding implements service.Quotas.
func (c *Coordinator) DeleteQuotaBinding(ctx context.Context, namespace string, require api.Preconditions) (*api.QuotaBinding, error) {
	return ask[*api.QuotaBinding](ctx, c, lead.Delete[api.QuotaBinding]{Name: namespace, Require: require})
}
