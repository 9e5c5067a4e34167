package quota

import (
	"maps"
	"slices"
)

// Snapshot is the content of a Manager at one moment. It is immutable: any
// goroutine may make forks of it, while the Manager goes on.
type Snapshot struct{ m *Manager }

// Snapshot returns the content of the Manager, which has no open checkpoint. It
// copies a few flat lists; its cost grows with the consumers, at some nanoseconds
// for each.
func (m *Manager) Snapshot() *Snapshot {
	if len(m.log.marks) > 0 {
		panic("quota: a snapshot is taken while a checkpoint is open")
	}
	return &Snapshot{m.clone()}
}

// Fork returns a Manager with the content of the snapshot, which its caller owns.
// It behaves as the Manager would, from that moment on.
func (p *Snapshot) Fork() *Manager {
	m := p.m.clone()
	m.ids = make(map[string]int32, len(m.consumers))
	for at := range m.consumers {
		if id := m.consumers[at].id; id != "" {
			m.ids[id] = int32(at)
		}
	}
	return m
}

// clone copies everything but the journal of past calls and the index of
// consumers, which a fork makes anew.
func (m *Manager) clone() *Manager {
	c := &Manager{
		opts: m.opts, mode: m.mode, now: m.now, trees: make(map[string]*tree, len(m.trees)), slots: make([]*tree, len(m.slots)),
		forests: make(map[string]*forest, len(m.forests)), consumers: slices.Clone(m.consumers), freeConsumers: slices.Clone(m.freeConsumers),
	}
	for i, t := range m.slots {
		if t != nil {
			c.slots[i] = t.clone(&c.opts, &c.log)
			c.trees[t.name] = c.slots[i]
		}
	}
	for name, f := range m.forests {
		made := &forest{name: name}
		for _, t := range f.trees {
			made.trees = append(made.trees, c.slots[t.slot])
			c.slots[t.slot].forest = made
		}
		c.forests[name] = made
	}
	return c
}

// clone copies a tree for another Manager. What a rebuild replaces as a whole is
// shared: the shape and the index of nodes by name.
func (t *tree) clone(o *Options, log *journal) *tree {
	c := *t
	c.opts, c.log, c.forest = o, log, nil
	c.cache.nodes, c.cache.renamed = maps.Clone(t.cache.nodes), maps.Clone(t.cache.renamed)
	c.nodes, c.amounts = slices.Clone(t.nodes), slices.Clone(t.amounts)
	c.seats, c.freeSeats, c.vectors = slices.Clone(t.seats), slices.Clone(t.freeSeats), slices.Clone(t.vectors)
	c.bands = bandArena{
		class: slices.Clone(t.bands.class), band: slices.Clone(t.bands.band), sums: slices.Clone(t.bands.sums),
		freeClass: slices.Clone(t.bands.freeClass), freeBand: slices.Clone(t.bands.freeBand),
	}
	c.moved, c.path, c.scratch = slices.Clone(t.moved), nil, make([]int64, t.width)
	if t.limits != nil {
		c.limits = t.limits.clone()
	}
	return &c
}

// clone copies the limits of a tree. The limits themselves are shared.
func (l *limits) clone() *limits {
	c := *l
	c.kept, c.owners = slices.Clone(l.kept), make(map[ownerOn][]int64, len(l.owners))
	for key, use := range l.owners {
		c.owners[key] = slices.Clone(use)
	}
	return &c
}

// Unused returns a Manager of the same trees, forests and options to which nobody
// is charged. Trees are as their caches specify them.
func (m *Manager) Unused() (*Manager, error) {
	c := NewManager(m.opts)
	c.mode = m.mode
	for _, name := range m.TreeNames() {
		if _, err := c.AddTree(m.trees[name].cache.Spec()); err != nil {
			return nil, err
		}
	}
	for _, name := range m.ForestNames() {
		if err := c.AddForest(name); err != nil {
			return nil, err
		}
		for _, tree := range m.ForestTreeNames(name) {
			if err := c.AddTreeToForest(name, tree); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}
