package resttest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/quota/quotajson"
)

// quotas are what limits the cluster's tenants. The manager is derived: it is
// built anew from trees and units at every change of the trees.
type quotas struct {
	limits   map[string]*api.ResourceQuota // by namespace/name
	trees    map[string]*api.QuotaTree
	forests  map[string]*api.QuotaForest
	bindings map[string]*api.QuotaBinding

	manager *quota.Manager
	charged []*unit // in the order of their start
}

// everything is the manager's one forest: a unit is charged to every tree that
// it names, or to none.
const everything = "everything"

func newQuotas() quotas {
	q := quotas{
		limits: map[string]*api.ResourceQuota{}, trees: map[string]*api.QuotaTree{},
		forests: map[string]*api.QuotaForest{}, bindings: map[string]*api.QuotaBinding{},
	}
	q.rebuild()
	return q
}

// spec reads a tree as quotajson does.
func spec(t *api.QuotaTree) (quota.TreeSpec, *api.Status) {
	doc := *t
	doc.Status = api.QuotaTreeStatus{}
	s, err := quotajson.Tree(encode(&doc), quotajson.Natural)
	if err != nil {
		return s, api.Errorf(http.StatusUnprocessableEntity, "%v", err)
	}
	return s, nil
}

// rebuild makes the manager of what there is. What is kept has been accepted
// before, hence every error is a broken invariant.
func (q *quotas) rebuild() {
	q.manager = quota.NewManager(quota.Options{})
	must(q.manager.AddForest(everything))
	for _, name := range slices.Sorted(maps.Keys(q.trees)) {
		s, status := spec(q.trees[name])
		if status != nil {
			panic(status)
		}
		if _, err := q.manager.AddTree(s); err != nil {
			panic(err)
		}
		must(q.manager.AddTreeToForest(everything, name))
	}
	must(q.manager.SetMode(quota.Normal))
	for _, u := range q.charged {
		must(q.manager.AddConsumer(u.consumer))
		if _, err := q.manager.RestoreForest(everything, u.consumer.ID); err != nil && !errors.Is(err, quota.ErrUnknown) {
			panic(err)
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// put keeps an object under optimistic concurrency.
func put[T any](c *Cluster, kept map[string]*T, key string, v *T, meta func(*T) *api.ObjectMeta, create, replace bool) (*T, error) {
	old, given := kept[key], meta(v).ResourceVersion
	switch {
	case old != nil && create && !replace:
		return nil, api.Errorf(http.StatusConflict, "%q already exists", key)
	case old == nil && !create:
		return nil, api.Errorf(http.StatusNotFound, "%q not found", key)
	case old == nil && given != "":
		return nil, api.Errorf(http.StatusConflict, "%q is gone: the change was made from version %s", key, given)
	case old != nil && given != "" && given != meta(old).ResourceVersion:
		return nil, api.Errorf(http.StatusConflict, "%q has changed: the change was made from version %s, it has %s", key, given, meta(old).ResourceVersion)
	}
	made := clone(v)
	m := meta(made)
	m.UID, m.CreationTimestamp = "quota-"+strconv.Itoa(c.revision+1), c.stamp()
	if old != nil {
		m.UID, m.CreationTimestamp = meta(old).UID, meta(old).CreationTimestamp
	}
	m.ResourceVersion = strconv.Itoa(c.revision + 1)
	kept[key] = made
	c.changedQuota()
	return made, nil
}

// changedQuota ends a change of quota: what waits may start now.
func (c *Cluster) changedQuota() {
	c.quota.rebuild()
	c.schedule()
	c.touch()
}

func find[T any](kept map[string]*T, key string) (*T, error) {
	if v := kept[key]; v != nil {
		return clone(v), nil
	}
	return nil, api.Errorf(http.StatusNotFound, "%q not found", key)
}

func items[T any](kept map[string]*T, show func(*T) *T) []T {
	list := make([]T, 0, len(kept))
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		list = append(list, *show(clone(kept[key])))
	}
	return list
}

func resourceQuotaMeta(q *api.ResourceQuota) *api.ObjectMeta { return &q.Metadata }

// CreateResourceQuota implements rest.Quotas.
func (c *Cluster) CreateResourceQuota(_ context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	made, err := put(c, c.quota.limits, q.Metadata.Namespace+"/"+q.Metadata.Name, q, resourceQuotaMeta, true, false)
	return c.showLimit(made), err
}

// UpdateResourceQuota implements rest.Quotas.
func (c *Cluster) UpdateResourceQuota(_ context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	made, err := put(c, c.quota.limits, q.Metadata.Namespace+"/"+q.Metadata.Name, q, resourceQuotaMeta, false, true)
	return c.showLimit(made), err
}

// GetResourceQuota implements rest.Quotas.
func (c *Cluster) GetResourceQuota(_ context.Context, namespace, name string) (*api.ResourceQuota, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	got, err := find(c.quota.limits, namespace+"/"+name)
	return c.showLimit(got), err
}

// ListResourceQuotas implements rest.Quotas.
func (c *Cluster) ListResourceQuotas(_ context.Context, namespace string) (*api.ResourceQuotaList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := items(c.quota.limits, c.showLimit)
	if namespace != "" {
		all = slices.DeleteFunc(all, func(q api.ResourceQuota) bool { return q.Metadata.Namespace != namespace })
	}
	return &api.ResourceQuotaList{Metadata: c.listMeta(), Items: all}, nil
}

// DeleteResourceQuota implements rest.Quotas.
func (c *Cluster) DeleteResourceQuota(_ context.Context, namespace, name string) (*api.ResourceQuota, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	got, err := find(c.quota.limits, namespace+"/"+name)
	if err == nil {
		delete(c.quota.limits, namespace+"/"+name)
		c.changedQuota()
	}
	return c.showLimit(got), err
}

func (c *Cluster) listMeta() api.ListMeta {
	return api.ListMeta{ResourceVersion: strconv.Itoa(c.revision)}
}

// PutQuotaTree implements rest.Quotas.
func (c *Cluster) PutQuotaTree(_ context.Context, t *api.QuotaTree, create bool) (*api.QuotaTree, error) {
	if _, status := spec(t); status != nil {
		return nil, status
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	made, err := put(c, c.quota.trees, t.Metadata.Name, t, func(t *api.QuotaTree) *api.ObjectMeta { return &t.Metadata }, true, !create)
	return c.showTree(made), err
}

// GetQuotaTree implements rest.Quotas.
func (c *Cluster) GetQuotaTree(_ context.Context, name string) (*api.QuotaTree, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	got, err := find(c.quota.trees, name)
	return c.showTree(got), err
}

// ListQuotaTrees implements rest.Quotas.
func (c *Cluster) ListQuotaTrees(context.Context) (*api.QuotaTreeList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &api.QuotaTreeList{Metadata: c.listMeta(), Items: items(c.quota.trees, c.showTree)}, nil
}

// DeleteQuotaTree implements rest.Quotas.
func (c *Cluster) DeleteQuotaTree(_ context.Context, name string) (*api.QuotaTree, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	got, err := find(c.quota.trees, name)
	if err != nil {
		return nil, err
	}
	for _, u := range c.quota.charged {
		if c.quota.manager.IsAllocated(name, u.consumer.ID) {
			return nil, api.Errorf(http.StatusConflict, "tree %q: %s is charged to it", name, u.consumer.ID)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(c.quota.bindings)) {
		if _, bound := c.quota.bindings[namespace].Spec.Groups[name]; bound {
			return nil, api.Errorf(http.StatusConflict, "tree %q: namespace %q is bound to it", name, namespace)
		}
	}
	for _, forest := range slices.Sorted(maps.Keys(c.quota.forests)) {
		if slices.Contains(c.quota.forests[forest].Spec.Trees, name) {
			return nil, api.Errorf(http.StatusConflict, "tree %q is in forest %q", name, forest)
		}
	}
	got = c.showTree(got)
	delete(c.quota.trees, name)
	c.changedQuota()
	return got, nil
}

// PutQuotaForest implements rest.Quotas.
func (c *Cluster) PutQuotaForest(_ context.Context, f *api.QuotaForest, create bool) (*api.QuotaForest, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, tree := range f.Spec.Trees {
		if c.quota.trees[tree] == nil {
			return nil, api.Errorf(http.StatusUnprocessableEntity, "spec.trees: there is no tree %q", tree)
		}
		for _, name := range slices.Sorted(maps.Keys(c.quota.forests)) {
			if name != f.Metadata.Name && slices.Contains(c.quota.forests[name].Spec.Trees, tree) {
				return nil, api.Errorf(http.StatusConflict, "spec.trees: tree %q is in forest %q", tree, name)
			}
		}
	}
	made, err := put(c, c.quota.forests, f.Metadata.Name, f, func(f *api.QuotaForest) *api.ObjectMeta { return &f.Metadata }, true, !create)
	if err != nil {
		return nil, err
	}
	return clone(made), nil
}

// GetQuotaForest implements rest.Quotas.
func (c *Cluster) GetQuotaForest(_ context.Context, name string) (*api.QuotaForest, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return find(c.quota.forests, name)
}

// ListQuotaForests implements rest.Quotas.
func (c *Cluster) ListQuotaForests(context.Context) (*api.QuotaForestList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &api.QuotaForestList{Metadata: c.listMeta(), Items: items(c.quota.forests, clone)}, nil
}

// DeleteQuotaForest implements rest.Quotas.
func (c *Cluster) DeleteQuotaForest(_ context.Context, name string) (*api.QuotaForest, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	got, err := find(c.quota.forests, name)
	if err != nil {
		return nil, err
	}
	for _, namespace := range slices.Sorted(maps.Keys(c.quota.bindings)) {
		if c.quota.bindings[namespace].Spec.Forest == name {
			return nil, api.Errorf(http.StatusConflict, "forest %q: namespace %q is bound to it", name, namespace)
		}
	}
	delete(c.quota.forests, name)
	c.changedQuota()
	return got, nil
}

// PutQuotaBinding implements rest.Quotas.
func (c *Cluster) PutQuotaBinding(_ context.Context, b *api.QuotaBinding, create bool) (*api.QuotaBinding, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name := b.Spec.Forest; name != "" {
		f := c.quota.forests[name]
		if f == nil {
			return nil, api.Errorf(http.StatusUnprocessableEntity, "spec.forest: there is no forest %q", name)
		}
		for _, tree := range f.Spec.Trees {
			if b.Spec.Groups[tree] == "" {
				return nil, api.Errorf(http.StatusUnprocessableEntity, "spec.groups: no group on tree %q of forest %q", tree, name)
			}
		}
	}
	made, err := put(c, c.quota.bindings, b.Metadata.Name, b, func(b *api.QuotaBinding) *api.ObjectMeta { return &b.Metadata }, true, !create)
	if err != nil {
		return nil, err
	}
	return clone(made), nil
}

// GetQuotaBinding implements rest.Quotas.
func (c *Cluster) GetQuotaBinding(_ context.Context, namespace string) (*api.QuotaBinding, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return find(c.quota.bindings, namespace)
}

// ListQuotaBindings implements rest.Quotas.
func (c *Cluster) ListQuotaBindings(context.Context) (*api.QuotaBindingList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &api.QuotaBindingList{Metadata: c.listMeta(), Items: items(c.quota.bindings, clone)}, nil
}

// DeleteQuotaBinding implements rest.Quotas.
func (c *Cluster) DeleteQuotaBinding(_ context.Context, namespace string) (*api.QuotaBinding, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	got, err := find(c.quota.bindings, namespace)
	if err == nil {
		delete(c.quota.bindings, namespace)
		c.changedQuota()
	}
	return got, err
}

// consumerOrder is how a list of consumers is told: by their names.
func consumerOrder(a, b *unit) int { return cmp.Compare(a.consumer.ID, b.consumer.ID) }
