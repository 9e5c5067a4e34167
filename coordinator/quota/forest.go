package quota

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// forest is trees that are allocated together.
type forest struct {
	name  string
	trees []*tree // ascending by name
}

// AddForest adds an empty forest. It is an error if there is one of the name.
func (m *Manager) AddForest(name string) error {
	if name == "" {
		return fmt.Errorf("%w: name: a forest has one", ErrInvalid)
	}
	if m.forests[name] != nil {
		return fmt.Errorf("forest %s: %w", name, ErrExists)
	}
	m.forests[name] = &forest{name: name}
	return nil
}

// DeleteForest removes a forest; its trees stay. It is an error if it is
// unknown, or if a consumer is allocated on one of its trees.
func (m *Manager) DeleteForest(name string) error {
	f, err := m.forestOf(name)
	if err != nil {
		return err
	}
	for _, t := range f.trees {
		if t.allocated > 0 {
			return fmt.Errorf("forest %s: %w: %d consumers are allocated on tree %s", name, ErrInUse, t.allocated, t.name)
		}
	}
	m.beginRebuild()
	for _, t := range f.trees {
		t.forest = nil
	}
	delete(m.forests, name)
	return nil
}

// AddTreeToForest adds a tree to a forest. A tree is in one forest at most.
func (m *Manager) AddTreeToForest(forestName, treeName string) error {
	f, err := m.forestOf(forestName)
	if err != nil {
		return err
	}
	t, err := m.treeOf(treeName)
	if err != nil {
		return err
	}
	if t.forest != nil {
		return fmt.Errorf("tree %s: %w in forest %s", treeName, ErrExists, t.forest.name)
	}
	m.beginRebuild()
	t.forest = f
	f.trees = append(f.trees, t)
	slices.SortFunc(f.trees, func(a, b *tree) int { return cmp.Compare(a.name, b.name) })
	return nil
}

// DeleteTreeFromForest takes a tree out of its forest. It is an error if it is
// not in it, or if consumers are allocated on it.
func (m *Manager) DeleteTreeFromForest(forest, tree string) error {
	f, err := m.forestOf(forest)
	if err != nil {
		return err
	}
	t, err := m.treeOf(tree)
	if err != nil {
		return err
	}
	if t.forest != f {
		return fmt.Errorf("tree %s in forest %s: %w", tree, forest, ErrUnknown)
	}
	if t.allocated > 0 {
		return fmt.Errorf("tree %s: %w: %d consumers are allocated", tree, ErrInUse, t.allocated)
	}
	m.beginRebuild()
	f.remove(t)
	return nil
}

func (f *forest) remove(t *tree) {
	f.trees = slices.DeleteFunc(f.trees, func(o *tree) bool { return o == t })
	t.forest = nil
}

// ForestNames returns the forests, ascending.
func (m *Manager) ForestNames() []string { return slices.Sorted(maps.Keys(m.forests)) }

// ForestTreeNames returns the trees of a forest, ascending; none if it is
// unknown.
func (m *Manager) ForestTreeNames(forest string) []string {
	f := m.forests[forest]
	if f == nil {
		return nil
	}
	names := make([]string, len(f.trees))
	for i, t := range f.trees {
		names[i] = t.name
	}
	return names
}

func (m *Manager) forestOf(name string) (*forest, error) {
	if f := m.forests[name]; f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("forest %s: %w", name, ErrUnknown)
}

// AllocateForest allocates a consumer on the trees of the forest that it asks
// something of: on all of them or on none. Trees where it is allocated already
// are left as they are. They are taken in ascending order of their names, and
// a victim of one has left all others before the next is tried. It is an error
// if the forest or the consumer is unknown, if the consumer asks nothing of
// it, or is allocated on all these trees already.
func (m *Manager) AllocateForest(forest, id string) (Result, error) {
	f, at, err := m.findForest(forest, id)
	if err != nil {
		return Result{}, err
	}
	if _, missing := m.held(f, at); missing == 0 {
		return Result{}, fmt.Errorf("allocate %s: %w on forest %s", id, ErrAllocated, forest)
	}
	m.begin()
	return m.allocateForest(f, at), nil
}

func (m *Manager) allocateForest(f *forest, at int32) (r Result) {
	for _, t := range f.trees {
		s := m.seatOf(t, at)
		if s == none || t.seats[s].node != none {
			continue
		}
		if !m.allocate(t, s) {
			m.rollback(m.log.call)
			r.Refusal = t.why
			return r
		}
	}
	m.tell(&r, at, f, nil)
	return r
}

// DeallocateForest takes a consumer off all trees of a forest. It reports
// whether it was allocated on one.
func (m *Manager) DeallocateForest(forest, id string) bool {
	f, at, err := m.findForest(forest, id)
	if err != nil {
		return false
	}
	if held, _ := m.held(f, at); held == 0 {
		return false
	}
	m.begin()
	m.releaseFrom(f, at)
	return true
}

// releaseFrom releases what a consumer holds on the trees of a forest.
func (m *Manager) releaseFrom(f *forest, at int32) {
	for _, t := range f.trees {
		if s := m.seatOf(t, at); s != none && t.seats[s].node != none {
			t.release(s)
		}
	}
}

// IsAllocatedForest reports whether a consumer is allocated on all trees of a
// forest that it asks something of, and asks something of one.
func (m *Manager) IsAllocatedForest(forest, id string) bool {
	f, at, err := m.findForest(forest, id)
	if err != nil {
		return false
	}
	_, missing := m.held(f, at)
	return missing == 0
}

// held counts the trees of the forest on which a consumer is allocated, and
// those on which it asks for something and is not.
func (m *Manager) held(f *forest, at int32) (held, missing int) {
	for _, t := range f.trees {
		s := m.seatOf(t, at)
		switch {
		case s == none:
		case t.seats[s].node == none:
			missing++
		default:
			held++
		}
	}
	return held, missing
}

// findForest finds a forest and a consumer that asks something of it.
func (m *Manager) findForest(forest, id string) (*forest, int32, error) {
	f, err := m.forestOf(forest)
	if err != nil {
		return nil, none, err
	}
	at, err := m.consumerOf(id)
	if err != nil {
		return nil, none, err
	}
	if held, missing := m.held(f, at); held+missing == 0 {
		return nil, none, fmt.Errorf("consumer %s: %w demand of any tree of forest %s", id, ErrUnknown, forest)
	}
	return f, at, nil
}
