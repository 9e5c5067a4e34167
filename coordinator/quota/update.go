package quota

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/resource"
)

// UpdateTree rebuilds a tree from its cache and puts its consumers back, in
// the order in which they stood: on their node where it is still above their
// group, else on their group, else on the root; whatever the quota, and nobody
// is evicted. Consumers that cannot be put back are lost, on the whole forest.
func (m *Manager) UpdateTree(name string) (UpdateResult, error) {
	t, err := m.treeOf(name)
	if err != nil {
		return UpdateResult{}, err
	}
	return m.update([]*tree{t})[0], nil
}

// UpdateForest updates all trees of a forest, in ascending order.
func (m *Manager) UpdateForest(forest string) ([]UpdateResult, error) {
	f, err := m.forestOf(forest)
	if err != nil {
		return nil, err
	}
	return m.update(f.trees), nil
}

// UpdateAll updates all trees, in ascending order.
func (m *Manager) UpdateAll() []UpdateResult {
	trees := make([]*tree, 0, len(m.trees))
	for _, name := range m.TreeNames() {
		trees = append(trees, m.trees[name])
	}
	return m.update(trees)
}

// standing is where an allocated seat stood before an update, by names after
// renaming.
type standing struct {
	seat        int32
	group, node string
}

func (m *Manager) update(trees []*tree) []UpdateResult {
	m.beginRebuild()
	results := make([]UpdateResult, len(trees))
	before := make([][]standing, len(trees))
	var lost []victim
	for i, t := range trees {
		before[i] = t.standings()
		t.rebuild()
		for _, b := range before[i] {
			m.restand(t, b)
			if t.seats[b.seat].node == none {
				at := t.seats[b.seat].consumer
				lost = append(lost, victim{t.slot, b.seat, at})
				results[i].Lost = append(results[i].Lost, m.consumers[at].id)
			}
		}
	}
	m.begin() // what was put back is no change to take back
	for _, v := range lost {
		if f := m.slots[v.slot].forest; f != nil {
			m.releaseFrom(f, v.consumer)
		}
	}
	for i, t := range trees {
		m.compare(t, before[i], &results[i])
	}
	return results
}

// standings lists the allocated seats, in the order in which they took their
// places.
func (t *tree) standings() []standing {
	all := make([]standing, 0, t.allocated)
	for n := range t.nodes {
		for s := t.nodes[n].head; s != none; s = t.seats[s].next {
			all = append(all, standing{s, t.cache.renamedTo(t.seats[s].groupName), t.cache.renamedTo(t.nodes[n].name)})
		}
	}
	slices.SortFunc(all, func(a, b standing) int { return cmp.Compare(t.seats[a.seat].order, t.seats[b.seat].order) })
	return all
}

func (c *Cache) renamedTo(name string) string {
	if now, renamed := c.renamed[name]; renamed {
		return now
	}
	return name
}

// rebuild makes the live tree anew from the cache, with no seat on it.
func (t *tree) rebuild() {
	o := outlineOf(t.cache.nodes)
	resources := slices.Clone(t.cache.resources)
	if !slices.Equal(resources, t.resources) {
		t.vectors = make([]int64, len(t.seats)*2*len(resources))
	}
	t.resources, t.width, t.shape = resources, len(resources), o.shape
	t.nodes, t.index = make([]node, len(o.names)), make(map[string]int32, len(o.names))
	t.amounts = make([]int64, len(o.names)*amountKinds*t.width)
	t.bands, t.scratch = bandArena{}, make([]int64, t.width)
	for i, name := range o.names {
		spec := t.cache.nodes[name]
		t.index[name] = int32(i)
		t.nodes[i] = node{
			name: name, parent: o.parent[i], last: o.last[i], hard: spec.Hard, leaf: o.last[i] == int32(i),
			head: none, tail: none, classes: none, waiting: none, lastWaiting: none,
		}
		quota := t.amount(int32(i), quotaOf)
		for r, name := range resources {
			quota[r] = spec.Quota[name]
		}
	}
	for n := len(t.nodes) - 1; n > 0; n-- { // children come after their parents
		p := t.nodes[n].parent
		t.nodes[p].height = max(t.nodes[p].height, t.nodes[n].height+1)
	}
	t.limits = t.limitsOf(t.cache.nodes)
	for s := range t.seats {
		t.seats[s].node, t.seats[s].via = none, none
	}
	clear(t.cache.renamed)
	t.allocated, t.order = 0, 0
	t.build++
}

// restand puts a seat back after an update; it stays off where it cannot be.
func (m *Manager) restand(t *tree, b standing) {
	m.refresh(t, b.seat)
	if len(t.nodes) == 0 {
		return
	}
	if t.overflows(b.seat) {
		return
	}
	c := &t.seats[b.seat]
	c.group, c.groupName = none, b.group
	at, via := int32(0), none
	if g, known := t.index[b.group]; known {
		c.group, at = g, g
		if n, known := t.index[b.node]; known && t.nodes[g].leaf && t.below(g, n) {
			at, via = n, t.towards(n, g)
		}
	}
	t.seize(b.seat, at, via)
}

// compare completes what an update did, given where its seats stood.
func (m *Manager) compare(t *tree, before []standing, r *UpdateResult) {
	r.Tree, r.Shape = t.name, t.shape.clone()
	for _, b := range before {
		c := &t.seats[b.seat]
		id := m.consumers[c.consumer].id
		if c.node == none {
			continue // lost, here or on another tree of the forest
		}
		if to := t.nodes[c.node].name; to != b.node {
			r.Moved = append(r.Moved, Move{Consumer: id, Tree: t.name, From: b.node, To: to})
		}
		if c.group == none || !t.nodes[c.group].leaf {
			r.Detached = append(r.Detached, id)
		}
	}
	slices.Sort(r.Lost)
	slices.Sort(r.Detached)
	slices.SortFunc(r.Moved, func(a, b Move) int { return cmp.Compare(a.Consumer, b.Consumer) })
}

// overflows refuses a seat whose amounts the tree's sum cannot hold. No other
// sum of the tree is larger than the root's, and a seat that fits somewhere
// never makes it overflow: a quota is an int64 too.
func (t *tree) overflows(s int32) bool {
	held, use := t.amount(0, allocatedOf), t.amount(0, useOf)
	for i, want := range t.request(s) {
		if have := resource.Unlimited - max(held[i], use[i]); want > have {
			t.refuse(Overflow, 0, i, want, have)
			return true
		}
	}
	return false
}
