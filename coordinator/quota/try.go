package quota

import "fmt"

// try is the try that the last call was: its undo takes back the records of one
// call, as Rollback takes back those of all calls since a checkpoint.
type try struct {
	tree     *tree
	forest   *forest
	consumer int32
}

// TryAllocate is Allocate with the possibility to undo it, until any other
// call that allocates, releases, updates, or adds or removes what the trees
// are about; a refused one counts too. In Maintenance mode it is an error.
func (m *Manager) TryAllocate(tree, id string) (Result, error) {
	if m.mode != Normal {
		return Result{}, fmt.Errorf("try %s: %w: %s", id, ErrMode, m.mode)
	}
	r, err := m.Allocate(tree, id)
	if err == nil {
		m.try = try{tree: m.trees[tree], consumer: m.ids[id]}
	}
	return r, err
}

// UndoAllocate takes the last try back: the consumer is not allocated and all
// others stand where they stood, in the same order. After a refused try it
// changes nothing. It is an error if the last call was not this try, a second
// undo included.
func (m *Manager) UndoAllocate(tree, id string) error {
	t, err := m.treeOf(tree)
	if err != nil {
		return err
	}
	return m.undo(try{tree: t}, id)
}

// TryAllocateForest is TryAllocate for a forest.
func (m *Manager) TryAllocateForest(forest, id string) (Result, error) {
	if m.mode != Normal {
		return Result{}, fmt.Errorf("try %s: %w: %s", id, ErrMode, m.mode)
	}
	return m.AdmitForest(forest, id)
}

// AdmitForest is TryAllocateForest in both modes: in Maintenance the consumer is
// counted on its groups, and the undo takes that back as well.
func (m *Manager) AdmitForest(forest, id string) (Result, error) {
	r, err := m.AllocateForest(forest, id)
	if err == nil {
		m.try = try{forest: m.forests[forest], consumer: m.ids[id]}
	}
	return r, err
}

// UndoAllocateForest is UndoAllocate for a forest.
func (m *Manager) UndoAllocateForest(forest, id string) error {
	f, err := m.forestOf(forest)
	if err != nil {
		return err
	}
	return m.undo(try{forest: f}, id)
}

func (m *Manager) undo(want try, id string) error {
	at, err := m.consumerOf(id)
	if err != nil {
		return err
	}
	want.consumer = at
	if m.try != want {
		return fmt.Errorf("undo %s: %w: the last call was no try of it", id, ErrNoTry)
	}
	m.takeBack(m.log.call)
	return nil
}
