package rig

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/quota/quotajson"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// group is where a record is charged.
type group struct{ tree, name string }

// tree is what the audit knows of a quota tree. The node at which a unit is
// counted is nobody's record, but at the root everything is counted, and what
// belongs below a hard node never leaves it. A quota that was lowered ends
// nothing and lets pass what was under way, so the audit holds a node to the
// most that it ever had, as long as its place was the same.
type tree struct {
	name    string
	spec    quota.TreeSpec
	highest map[string]resource.Vector // by node
	// excused are nodes that were not always hard, or whose subtree changed.
	excused map[string]bool
}

// followQuota is called with mu held.
func (a *audit) followQuota(e record.Event) {
	key, err := record.ParseQuotaKey(e.KV.Key)
	if err != nil {
		a.t.Error(err)
		return
	}
	if key.Kind != record.QuotaTrees {
		return
	}
	if e.Type == record.EventDelete {
		for tx, r := range a.records {
			if r.State.Charged() && slices.ContainsFunc(r.Charges, func(c record.Charge) bool { return c.Tree == key.Name }) {
				a.t.Errorf("revision %d deletes tree %s, to which %s is charged", e.KV.ModRev, key.Name, tx)
			}
		}
		delete(a.trees, e.KV.Key)
		return
	}
	rec, err := record.Decode[record.Quota](e.KV.Key, e.KV.Value)
	if err != nil {
		a.t.Error(err)
		return
	}
	spec, err := quotajson.Tree(rec.Document, quotajson.Natural)
	if err != nil {
		a.t.Errorf("%s: %v", e.KV.Key, err)
		return
	}
	t := a.trees[e.KV.Key]
	if t == nil {
		t = &tree{name: key.Name, spec: spec, highest: map[string]resource.Vector{}, excused: map[string]bool{}}
		a.trees[e.KV.Key] = t
	}
	t.change(spec)
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
func (t *tree) check(used map[group]resource.Vector) []string {
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
	var problems []string
	for _, node := range slices.Sorted(maps.Keys(sums)) {
		if t.excused[node] {
			continue
		}
		for _, name := range t.resources() {
			if sum, most := sums[node][name], t.highest[node][name]; sum > most {
				problems = append(problems, fmt.Sprintf("the groups below node %s of tree %s are charged %d of %s, it has %d", node, t.name, sum, name, most))
			}
		}
	}
	return problems
}
