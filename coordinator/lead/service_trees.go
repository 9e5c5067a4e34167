package lead

import (
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
)

// reportShape logs what of a tree is not as it was meant.
func (l *Leader) reportShape(name string) {
	t := l.quotas.treeObjects[name]
	if len(t.shape.Dangling) > 0 {
		l.out.warn("tree_dangling", "tree", name, "nodes", t.shape.Dangling)
	}
	if len(t.detached) > 0 {
		l.out.warn("tree_detached", "tree", name, "units", len(t.detached))
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
	for _, a := range l.attempts {
		if slices.ContainsFunc(a.charges, func(c record.Charge) bool { return c.Tree == tree }) {
			charged++
			if first == "" || a.unit.path < first {
				first = a.unit.path
			}
		}
	}
	if charged > 0 {
		return api.Errorf(409, "quota tree %s is in use: %d units are charged to it, %s among them", tree, charged, first).Because(api.FailedPrecondition)
	}
	return nil
}

func (l *Leader) quotaTree(name string) (*quotaTree, *api.Status) {
	if t := l.quotas.treeObjects[name]; t != nil {
		return t, nil
	}
	return nil, NoQuotaTree(name)
}

// NoQuotaTree is the answer where no tree has the name.
func NoQuotaTree(name string) *api.Status { return api.Errorf(404, "quota tree %s not found", name) }

// quotaTreeObject shows a tree as it is in force.
func (l *Leader) quotaTreeObject(t *quotaTree) *api.QuotaTree {
	o := t.Object
	nodes, err := l.quotas.trees.Nodes(o.Metadata.Name)
	must(err)
	o.Status = TreeStatus(t.shape, nodes, t.detached)
	return &o
}

// ShowTree is a tree as the leader has it, with the nodes that decide. It is compared with
// what readers make of the keys.
func (l *Leader) ShowTree(name string) (*api.QuotaTree, *api.Status) {
	t, status := l.quotaTree(name)
	if status != nil {
		return nil, status
	}
	return l.quotaTreeObject(t), nil
}

// TreeStatus shows a tree; detached are the units whose group is no leaf.
func TreeStatus(shape quota.Shape, nodes []quota.NodeView, detached map[string]bool) api.QuotaTreeStatus {
	s := api.QuotaTreeStatus{
		Root: shape.Root, Dangling: slices.Clone(shape.Dangling), OtherRoots: slices.Clone(shape.OtherRoots),
		Orphans: slices.Clone(shape.Orphans), Cyclic: slices.Clone(shape.Cyclic), Detached: slices.Sorted(maps.Keys(detached)),
	}
	for _, n := range nodes {
		s.Nodes = append(s.Nodes, api.QuotaNodeStatus{
			Name: n.Name, Parent: n.Parent, Depth: n.Depth, Hard: n.Hard, Leaf: n.Leaf,
			Quota: shown.Quantities(n.Quota), Allocated: shown.Quantities(n.Allocated), Own: api.Amounts(n.Own),
			Borrowed: api.Amounts(n.Borrowed), Lent: api.Amounts(n.Lent), OverQuota: shown.Exceeded(n.Allocated, n.Quota), Consumers: n.Consumers,
		})
	}
	return s
}
