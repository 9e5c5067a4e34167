package charges

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// Tree is a quota tree, and the units that belong to no group of it.
type Tree struct {
	edit.Kept[api.QuotaTree]
	spec  quota.TreeSpec
	shape quota.Shape
	// former are former names of nodes, each with its name of today.
	former map[string]string
	nodes  map[string]bool // those that the root reaches: true for a leaf
	// detached are the units, by path, that are charged to a group which the
	// tree does not have as a leaf.
	detached map[string]bool
}

// SetTree takes over a tree, new or changed, and returns the units that have to
// be charged to it anew: those that it lost, and those that it did not have a
// Group for before.
func (q *Book) SetTree(object api.QuotaTree, rev resource.Revision, spec quota.TreeSpec, former map[string]string) (again []string, err error) {
	name := object.Metadata.Name
	t := &Tree{Kept: edit.Kept[api.QuotaTree]{Object: object, Rev: rev}, spec: spec, former: former, nodes: map[string]bool{}, detached: map[string]bool{}}
	before := q.treeObjects[name]
	if before == nil {
		t.shape, err = q.trees.AddTree(spec)
		if err != nil {
			return nil, err
		}
		if err := q.trees.AddTreeToForest(Forest, name); err != nil {
			return nil, err
		}
	} else {
		result, err := q.updateTree(name, spec)
		if err != nil {
			return nil, err
		}
		t.shape = result.Shape
		for _, id := range result.Detached {
			t.detached[id] = true
		}
		again = append(slices.Sorted(maps.Keys(before.detached)), result.Lost...)
	}
	for name := range spec.Nodes {
		t.nodes[name] = true
	}
	for _, name := range t.shape.Dangling {
		delete(t.nodes, name)
	}
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		if parent := spec.Nodes[name].Parent; parent != "" {
			t.nodes[parent] = false
		}
	}
	q.treeObjects[name] = t
	delete(q.closed, name)
	q.generation++
	return again, nil
}

// updateTree replaces a tree's specification; its consumers move to the new tree.
func (q *Book) updateTree(name string, spec quota.TreeSpec) (quota.UpdateResult, error) {
	cache, err := q.trees.Cache(name)
	if err != nil {
		return quota.UpdateResult{}, err
	}
	for _, node := range cache.NodeNames() {
		if _, stays := spec.Nodes[node]; !stays {
			if err := cache.DeleteNode(node); err != nil {
				return quota.UpdateResult{}, err
			}
		}
	}
	for _, node := range slices.Sorted(maps.Keys(spec.Nodes)) {
		if err := cache.SetNode(node, spec.Nodes[node]); err != nil {
			return quota.UpdateResult{}, err
		}
	}
	if err := cache.SetResources(spec.Resources); err != nil {
		return quota.UpdateResult{}, err
	}
	return q.trees.UpdateTree(name)
}

// DeleteTree removes a tree to which nobody is charged.
func (q *Book) DeleteTree(name string) {
	mustHold(q.trees.DeleteTree(name))
	delete(q.treeObjects, name)
	delete(q.closed, name)
	q.generation++
}

// Group is the name of today of a node of the tree.
func (t *Tree) group(name string) string {
	if now, renamed := t.former[name]; renamed {
		return now
	}
	return name
}

// Group is the name of today of a node of a tree.
func (q *Book) Group(tree, name string) string {
	if t := q.treeObjects[tree]; t != nil {
		return t.group(name)
	}
	return name
}

// RenameNode renames a node in the specification that the next update of the tree
// takes over: its consumers follow.
func (q *Book) RenameNode(tree, from, to string) error {
	cache, err := q.trees.Cache(tree)
	if err != nil {
		return fmt.Errorf("rename %s: %w", from, err)
	}
	return cache.RenameNode(from, to)
}

// Faults are the nodes that the root does not reach, and the number of units whose group
// is no leaf of the tree.
func (t *Tree) Faults() (dangling []string, detached int) {
	return t.shape.Dangling, len(t.detached)
}

// Counts are the resources that the tree counts.
func (t *Tree) Counts() []resource.Name { return t.spec.Resources }

// Has implements edit.Tree.
func (t *Tree) Has(node string) bool {
	_, named := t.spec.Nodes[node]
	return named
}

// Leaf implements edit.Tree.
func (t *Tree) Leaf(node string) bool { return t.nodes[node] }

// ShowTree shows a tree as it is in force.
func (q *Book) ShowTree(t *Tree) *api.QuotaTree {
	o := t.Object
	nodes, err := q.trees.Nodes(o.Metadata.Name)
	mustHold(err)
	o.Status = TreeStatus(t.shape, nodes, t.detached)
	return &o
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

// NoQuotaTree is the answer where no tree has the name.
func NoQuotaTree(name string) *api.Status { return api.Errorf(404, "quota tree %s not found", name) }
