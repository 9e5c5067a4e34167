package lead

import (
	"maps"
	"slices"

	"github.com/musterd/muster/api"
)

// judgeBinding refuses a binding to what does not exist, or to a part of a
// forest. A group that is no leaf of its tree is taken, for trees change, and
// reported: until it is one, units are refused or wait and say so.
func (l *Leader) judgeBinding(b *api.QuotaBinding) *api.Status {
	for _, tree := range slices.Sorted(maps.Keys(b.Spec.Groups)) {
		group := b.Spec.Groups[tree]
		t := l.quotas.treeObjects[tree]
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

func (l *Leader) quotaBinding(namespace string) (*kept[api.QuotaBinding], *api.Status) {
	if k := l.quotas.bindings[namespace]; k != nil {
		return k, nil
	}
	return nil, NoQuotaBinding(namespace)
}

func NoQuotaBinding(namespace string) *api.Status {
	return api.Errorf(404, "quota binding of namespace %s not found", namespace)
}
