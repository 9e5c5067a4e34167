package lead

import (
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/record"
)

// reportShape logs what of a tree is not as it was meant.
func (l *Leader) reportShape(name string) {
	dangling, detached := l.quotas.Tree(name).Faults()
	if len(dangling) > 0 {
		l.post.Warn("tree_dangling", "tree", name, "nodes", dangling)
	}
	if detached > 0 {
		l.post.Warn("tree_detached", "tree", name, "units", detached)
	}
}

// unused refuses to delete a tree that something names.
func (l *Leader) unused(tree string) *api.Status {
	for _, name := range l.objects.Forests.Names() {
		if slices.Contains(l.objects.Forests.Get(name).Object.Spec.Trees, tree) {
			return api.Errorf(409, "quota tree %s is in use: forest %s has it", tree, name).Because(api.FailedPrecondition)
		}
	}
	for _, namespace := range l.objects.Bindings.Names() {
		if group, bound := l.objects.Bindings.Get(namespace).Object.Spec.Groups[tree]; bound {
			return api.Errorf(409, "quota tree %s is in use: namespace %s is bound to its group %s", tree, namespace, group).Because(api.FailedPrecondition)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(l.rules.Namespaces)) {
		if group, bound := l.rules.Namespaces[namespace].Groups[tree]; bound {
			return api.Errorf(409, "quota tree %s is in use: namespace %s is bound to its group %s by the coordinators' configuration", tree, namespace, group).Because(api.FailedPrecondition)
		}
	}
	charged, first := 0, ""
	for _, a := range l.work.Attempts {
		if slices.ContainsFunc(a.Charges, func(c record.Charge) bool { return c.Tree == tree }) {
			charged++
			if first == "" || a.Unit.Path < first {
				first = a.Unit.Path
			}
		}
	}
	if charged > 0 {
		return api.Errorf(409, "quota tree %s is in use: %d units are charged to it, %s among them", tree, charged, first).Because(api.FailedPrecondition)
	}
	return nil
}

func (l *Leader) quotaTree(name string) (*charges.Tree, *api.Status) {
	if t := l.quotas.Tree(name); t != nil {
		return t, nil
	}
	return nil, charges.NoQuotaTree(name)
}

// ShowTree is a tree as the leader has it, with the nodes that decide. It is compared with
// what readers make of the keys.
func (l *Leader) ShowTree(name string) (*api.QuotaTree, *api.Status) {
	t, status := l.quotaTree(name)
	if status != nil {
		return nil, status
	}
	return l.quotas.ShowTree(t), nil
}
