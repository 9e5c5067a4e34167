package coordinator

import (
	"context"
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/shown"
)

// PutQuotaForest implements rest.Quotas.
func (c *Coordinator) PutQuotaForest(ctx context.Context, f *api.QuotaForest, create bool) (*api.QuotaForest, error) {
	if status := f.Validate(); status != nil {
		return nil, status
	}
	return ask[*api.QuotaForest](ctx, c, putQuotaForest{f, create})
}

// judgeForest refuses a forest of trees that do not exist or are in another
// one, or that would leave a namespace bound to it without a group.
func (l *leader) judgeForest(f *api.QuotaForest) *api.Status {
	for i, tree := range f.Spec.Trees {
		if l.quotas.planted[tree] == nil {
			return api.Errorf(422, "spec.trees[%d]: quota tree %s does not exist", i, tree)
		}
		for _, other := range slices.Sorted(maps.Keys(l.quotas.forests)) {
			if other != f.Metadata.Name && slices.Contains(l.quotas.forests[other].object.Spec.Trees, tree) {
				return api.Errorf(409, "spec.trees[%d]: quota tree %s is in forest %s already", i, tree, other)
			}
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(l.quotas.bindings)) {
		b := &l.quotas.bindings[namespace].object
		if b.Spec.Forest != f.Metadata.Name {
			continue
		}
		for _, tree := range f.Spec.Trees {
			if b.Spec.Groups[tree] == "" {
				return api.Errorf(409, "quota forest %s: namespace %s is bound to it and has no group on tree %s", f.Metadata.Name, namespace, tree)
			}
		}
	}
	return nil
}

// GetQuotaForest implements rest.Quotas.
func (c *Coordinator) GetQuotaForest(ctx context.Context, name string) (*api.QuotaForest, error) {
	return see(ctx, c, func(i shown.Index) (*api.QuotaForest, *api.Status) {
		s, found := i.Forest(name)
		if !found {
			return nil, noQuotaForest(name)
		}
		return s.Copy(), nil
	})
}

// ListQuotaForests implements rest.Quotas.
func (c *Coordinator) ListQuotaForests(ctx context.Context) (*api.QuotaForestList, error) {
	return see(ctx, c, func(i shown.Index) (*api.QuotaForestList, *api.Status) {
		items, version := shown.List(i.Floor(), i.Forests())
		return &api.QuotaForestList{Kind: "QuotaForestList", Metadata: version, Items: items}, nil
	})
}

// DeleteQuotaForest implements rest.Quotas.
func (c *Coordinator) DeleteQuotaForest(ctx context.Context, name string) (*api.QuotaForest, error) {
	return ask[*api.QuotaForest](ctx, c, deleteQuotaForest{name})
}

func (l *leader) quotaForest(name string) (*kept[api.QuotaForest], *api.Status) {
	if k := l.quotas.forests[name]; k != nil {
		return k, nil
	}
	return nil, noQuotaForest(name)
}

func noQuotaForest(name string) *api.Status {
	return api.Errorf(404, "quota forest %s not found", name)
}
