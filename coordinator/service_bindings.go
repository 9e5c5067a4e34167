package coordinator

import (
	"context"
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// PutQuotaBinding implements rest.Quotas. Units that run stay charged as they
// are; those that wait follow.
func (c *Coordinator) PutQuotaBinding(ctx context.Context, b *api.QuotaBinding, create bool) (*api.QuotaBinding, error) {
	if status := b.Validate(); status != nil {
		return nil, status
	}
	namespace := b.Metadata.Name
	judge := func(l *leader) (quotaWrite, *api.Status) {
		object := api.QuotaBinding{APIVersion: api.APIVersion, Kind: api.KindQuotaBinding, Spec: b.Spec}
		w, status := put(l, l.quotas.bindings[namespace], "quota binding "+namespace, b.Metadata, create, func(o *api.QuotaBinding) *api.ObjectMeta { return &o.Metadata }, &object)
		if status == nil {
			status = l.judgeBinding(&object)
		}
		if status != nil {
			return w, status
		}
		w.op = record.Put(record.QuotaKey{Kind: record.QuotaNamespaces, Name: namespace}.Key(), record.MustEncode(*recordOf(object.Metadata, object)))
		w.landed = func(rev resource.Revision) {
			object.Metadata = at(object.Metadata, rev)
			l.quotas.bindings[namespace] = &kept[api.QuotaBinding]{object, rev}
			l.quotas.generation++
		}
		return w, nil
	}
	return changeQuotas(ctx, c, judge, func(l *leader) *api.QuotaBinding { return l.quotas.bindings[namespace].copy() })
}

// judgeBinding refuses a binding to what does not exist, or to a part of a
// forest. A group that is no leaf of its tree is taken, for trees change, and
// reported: until it is one, units are refused or wait and say so.
func (l *leader) judgeBinding(b *api.QuotaBinding) *api.Status {
	for _, tree := range slices.Sorted(maps.Keys(b.Spec.Groups)) {
		group := b.Spec.Groups[tree]
		t := l.quotas.planted[tree]
		if t == nil {
			return api.Errorf(422, "spec.groups.%s: quota tree %s does not exist", tree, tree)
		}
		if _, named := t.spec.Nodes[group]; !named {
			return api.Errorf(422, "spec.groups.%s: quota tree %s has no node %s", tree, tree, group)
		}
		if !t.nodes[group] {
			l.out.warn("binding_without_leaf", "namespace", b.Metadata.Name, "tree", tree, "group", group)
		}
	}
	if b.Spec.Forest == "" {
		return nil
	}
	f := l.quotas.forests[b.Spec.Forest]
	if f == nil {
		return api.Errorf(422, "spec.forest: quota forest %s does not exist", b.Spec.Forest)
	}
	for _, tree := range f.object.Spec.Trees {
		if b.Spec.Groups[tree] == "" {
			return api.Errorf(422, "spec.groups: forest %s has tree %s, on which no group is named", b.Spec.Forest, tree)
		}
	}
	return nil
}

// GetQuotaBinding implements rest.Quotas.
func (c *Coordinator) GetQuotaBinding(ctx context.Context, namespace string) (*api.QuotaBinding, error) {
	return see(ctx, c, func(v *view) (*api.QuotaBinding, *api.Status) {
		b, status := v.quotaBinding(namespace)
		if status != nil {
			return nil, status
		}
		return b.copy(), nil
	})
}

// ListQuotaBindings implements rest.Quotas.
func (c *Coordinator) ListQuotaBindings(ctx context.Context) (*api.QuotaBindingList, error) {
	return see(ctx, c, func(v *view) (*api.QuotaBindingList, *api.Status) {
		items, version := listed(v, v.quotas.bindings)
		return &api.QuotaBindingList{Kind: "QuotaBindingList", Metadata: version, Items: items}, nil
	})
}

// DeleteQuotaBinding implements rest.Quotas.
func (c *Coordinator) DeleteQuotaBinding(ctx context.Context, namespace string) (*api.QuotaBinding, error) {
	var was *api.QuotaBinding
	judge := func(l *leader) (quotaWrite, *api.Status) {
		b, status := l.quotaBinding(namespace)
		if status != nil {
			return quotaWrite{}, status
		}
		was = b.copy()
		return quotaWrite{
			op: record.Delete(record.QuotaKey{Kind: record.QuotaNamespaces, Name: namespace}.Key()), rev: b.rev,
			landed: func(resource.Revision) {
				delete(l.quotas.bindings, namespace)
				l.quotas.generation++
			},
		}, nil
	}
	return changeQuotas(ctx, c, judge, func(*leader) *api.QuotaBinding { return was })
}

func (v *view) quotaBinding(namespace string) (*kept[api.QuotaBinding], *api.Status) {
	if b := v.quotas.bindings[namespace]; b != nil {
		return b, nil
	}
	return nil, api.Errorf(404, "quota binding of namespace %s not found", namespace)
}
