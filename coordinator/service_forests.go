package coordinator

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/shown"
)

// PutQuotaForest implements service.Quotas.
func (c *Coordinator) PutQuotaForest(ctx context.Context, f *api.QuotaForest, create bool) (*api.QuotaForest, error) {
	if status := f.Validate(); status != nil {
		return nil, status
	}
	return ask[*api.QuotaForest](ctx, c, lead.Put[api.QuotaForest]{Object: f, Create: create})
}

// GetQuotaForest implements service.Quotas.
func (c *Coordinator) GetQuotaForest(ctx context.Context, name string) (*api.QuotaForest, error) {
	return look(ctx, c, func(i *objects.View) (*api.QuotaForest, *api.Status) {
		s, found := i.Forest(name)
		if !found {
			return nil, edit.Forests.NotFound(name)
		}
		return s.Copy(), nil
	})
}

// ListQuotaForests implements service.Quotas.
func (c *Coordinator) ListQuotaForests(ctx context.Context) (*api.QuotaForestList, error) {
	return look(ctx, c, func(i *objects.View) (*api.QuotaForestList, *api.Status) {
		items, version := shown.List(i.Floor(), i.Forests())
		return &api.QuotaForestList{Kind: "QuotaForestList", Metadata: version, Items: items}, nil
	})
}

// DeleteQuotaForest implements service.Quotas.
func (c *Coordinator) DeleteQuotaForest(ctx context.Context, name string, require api.Preconditions) (*api.QuotaForest, error) {
	return ask[*api.QuotaForest](ctx, c, lead.Delete[api.QuotaForest]{Name: name, Require: require})
}
