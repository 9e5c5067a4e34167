package coordinator

import (
	"context"
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// PutQuotaForest implements rest.Quotas.
func (c *Coordinator) PutQuotaForest(ctx context.Context, f *api.QuotaForest, create bool) (*api.QuotaForest, error) {
	if status := f.Validate(); status != nil {
		return nil, status
	}
	name := f.Metadata.Name
	judge := func(l *leader) (quotaWrite, *api.Status) {
		object := api.QuotaForest{APIVersion: api.APIVersion, Kind: api.KindQuotaForest, Spec: f.Spec}
		w, status := put(l, l.quotas.forests[name], "quota forest "+name, f.Metadata, create, func(o *api.QuotaForest) *api.ObjectMeta { return &o.Metadata }, &object)
		if status == nil {
			status = l.judgeForest(&object)
		}
		if status != nil {
			return w, status
		}
		w.op = record.Put(record.QuotaKey{Kind: record.QuotaForests, Name: name}.Key(), record.MustEncode(*recordOf(object.Metadata, object)))
		w.landed = func(rev resource.Revision) {
			object.Metadata = at(object.Metadata, rev)
			l.quotas.forests[name] = &kept[api.QuotaForest]{object, rev}
		}
		return w, nil
	}
	return changeQuotas(ctx, c, judge, func(l *leader) *api.QuotaForest { return l.quotas.forests[name].copy() })
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
	return see(ctx, c, func(v *view) (*api.QuotaForest, *api.Status) {
		f, status := v.quotaForest(name)
		if status != nil {
			return nil, status
		}
		return f.copy(), nil
	})
}

// ListQuotaForests implements rest.Quotas.
func (c *Coordinator) ListQuotaForests(ctx context.Context) (*api.QuotaForestList, error) {
	return see(ctx, c, func(v *view) (*api.QuotaForestList, *api.Status) {
		items, version := listed(v, v.quotas.forests)
		return &api.QuotaForestList{Kind: "QuotaForestList", Metadata: version, Items: items}, nil
	})
}

// DeleteQuotaForest implements rest.Quotas.
func (c *Coordinator) DeleteQuotaForest(ctx context.Context, name string) (*api.QuotaForest, error) {
	var was *api.QuotaForest
	judge := func(l *leader) (quotaWrite, *api.Status) {
		f, status := l.quotaForest(name)
		if status != nil {
			return quotaWrite{}, status
		}
		for _, namespace := range slices.Sorted(maps.Keys(l.quotas.bindings)) {
			if l.quotas.bindings[namespace].object.Spec.Forest == name {
				return quotaWrite{}, api.Errorf(409, "quota forest %s is in use: namespace %s is bound to it", name, namespace)
			}
		}
		was = f.copy()
		return quotaWrite{
			op: record.Delete(record.QuotaKey{Kind: record.QuotaForests, Name: name}.Key()), rev: f.rev,
			landed: func(resource.Revision) { delete(l.quotas.forests, name) },
		}, nil
	}
	return changeQuotas(ctx, c, judge, func(*leader) *api.QuotaForest { return was })
}

func (v *view) quotaForest(name string) (*kept[api.QuotaForest], *api.Status) {
	if f := v.quotas.forests[name]; f != nil {
		return f, nil
	}
	return nil, api.Errorf(404, "quota forest %s not found", name)
}

// copy is the object for a caller. What it points to is never changed.
func (k *kept[T]) copy() *T {
	object := k.object
	return &object
}

// listed is the list of all objects of a kind, by name.
func listed[T any](v *view, objects map[string]*kept[T]) ([]T, api.ListMeta) {
	newest := v.floor
	items := make([]T, 0, len(objects))
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		items = append(items, *objects[name].copy())
		newest = max(newest, objects[name].rev)
	}
	return items, api.ListMeta{ResourceVersion: at(api.ObjectMeta{}, newest).ResourceVersion}
}
