package lead

import (
	"maps"
	"slices"

	"github.com/musterd/muster/api"
)

// judgeForest refuses a forest of trees that do not exist or are in another
// one, or that would leave a namespace bound to it without a group.
func (l *Leader) judgeForest(f *api.QuotaForest) *api.Status {
	for i, tree := range f.Spec.Trees {
		if l.quotas.treeObjects[tree] == nil {
			return api.Errorf(422, "spec.trees[%d]: quota tree %s does not exist", i, tree)
		}
		for _, other := range slices.Sorted(maps.Keys(l.quotas.forests)) {
			if other != f.Metadata.Name && slices.Contains(l.quotas.forests[other].object.Spec.Trees, tree) {
				return api.Errorf(409, "spec.trees[%d]: quota tree %s is in forest %s already", i, tree, other).Because(api.FailedPrecondition)
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
				return api.Errorf(409, "quota forest %s: namespace %s is bound to it and has no group on tree %s", f.Metadata.Name, namespace, tree).Because(api.FailedPrecondition)
			}
		}
	}
	return nil
}

func (l *Leader) quotaForest(name string) (*kept[api.QuotaForest], *api.Status) {
	if k := l.quotas.forests[name]; k != nil {
		return k, nil
	}
	return nil, NoQuotaForest(name)
}

func NoQuotaForest(name string) *api.Status {
	return api.Errorf(404, "quota forest %s not found", name)
}
