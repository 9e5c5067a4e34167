package invariant

import (
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// This file is I2 for quota trees.

// tree is what the checker knows of a quota tree. The node at which a unit is
// counted is nobody's record, but at the root everything is counted, and what
// belongs below a hard node never leaves it. A quota that was lowered ends
// nothing and lets pass what was under way, so that a node is held to the most
// that it ever had, as long as its place was the same.
type tree struct {
	name    string
	spec    quota.TreeSpec
	highest map[string]resource.Vector // by node
	// excused are nodes that were not always hard, or whose subtree changed.
	excused map[string]bool
}

// apply notes a time in which trees limit nothing. Units that were admitted in that
// time may commit after its end, and their charges stay until they end, so that no
// node is held to a limit from then on.
func (m Mode) apply(c *Checker) { c.unlimited = c.unlimited || m.Maintenance }

func (t Tree) apply(c *Checker) {
	if t.New == nil {
		if tx, charged := c.isCharged(t.Name); charged {
			c.report(of(I2Trees, t.Name, string(tx)), "tree %s is deleted, and %s is charged to it", t.Name, tx)
		}
		delete(c.trees, t.Name)
		return
	}
	known := c.trees[t.Name]
	if known == nil {
		known = &tree{name: t.Name, spec: *t.New, highest: map[string]resource.Vector{}, excused: map[string]bool{}}
		c.trees[t.Name] = known
	}
	known.change(*t.New)
}

// change takes over a specification.
func (t *tree) change(to quota.TreeSpec) {
	if !maps.EqualFunc(t.spec.Nodes, to.Nodes, func(a, b quota.NodeSpec) bool { return a.Parent == b.Parent }) {
		for name := range to.Nodes {
			t.excused[name] = true
		}
	}
	t.spec = to
	for name, n := range to.Nodes {
		t.excused[name] = t.excused[name] || !n.Hard && n.Parent != ""
		if t.highest[name] == nil {
			t.highest[name] = resource.Vector{}
		}
		for r, amount := range n.Quota {
			t.highest[name][r] = max(t.highest[name][r], amount)
		}
	}
}

// resources are what the tree counts.
func (t *tree) resources() []resource.Name {
	if len(t.spec.Resources) > 0 {
		return t.spec.Resources
	}
	return []resource.Name{resource.CPU, resource.Memory, resource.GPU}
}

// check compares what is charged to groups with the quotas.
func (t *tree) check(c *Checker, used map[group]resource.Vector) {
	sums := map[string]resource.Vector{}
	for at, request := range used {
		if at.tree != t.name {
			continue
		}
		for node := at.name; ; node = t.spec.Nodes[node].Parent {
			if _, known := t.spec.Nodes[node]; !known {
				break
			}
			if sums[node] == nil {
				sums[node] = resource.Vector{}
			}
			sums[node].Add(request)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(sums)) {
		if t.excused[node] || c.unlimited {
			continue
		}
		for _, name := range t.resources() {
			if sum, most := sums[node][name], t.highest[node][name]; sum > most {
				v := of(I2Trees, t.name, node, string(name))
				v.Have, v.Bound = sum, most
				c.report(v, "the groups below node %s of tree %s are charged %d of %s, it has %d", node, t.name, sum, name, most)
			}
		}
	}
}
