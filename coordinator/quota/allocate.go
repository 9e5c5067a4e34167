package quota

import "fmt"

// Allocate allocates a consumer on one tree. In Maintenance mode it is counted
// on its group whatever the quota. A victim loses what it holds on every tree
// of the forest. It is an error if the tree or the consumer is unknown, if the
// consumer asks nothing of the tree, or is allocated there already.
func (m *Manager) Allocate(tree, id string) (r Result, err error) {
	t, at, s, err := m.find(tree, id)
	if err != nil {
		return r, err
	}
	if n := t.seats[s].node; n != none {
		return r, fmt.Errorf("allocate %s: %w on tree %s, node %s", id, ErrAllocated, tree, t.nodes[n].name)
	}
	m.begin()
	if !m.allocate(t, s) {
		r.Refusal = t.why
		return r, nil
	}
	m.tell(&r, at, nil, t)
	return r, nil
}

// allocate allocates one seat and takes its victims off the other trees of the
// forest. It changes nothing where it refuses, and says why in t.why.
func (m *Manager) allocate(t *tree, s int32) bool {
	if t.seats[s].home == none {
		return m.unknownGroup(t, s)
	}
	if m.mode != Normal {
		return t.force(s)
	}
	before := len(m.log.victims)
	if !t.admit(s) {
		return false
	}
	m.evictElsewhere(t, before)
	return true
}

// unknownGroup refuses a seat whose group is not in the tree.
func (m *Manager) unknownGroup(t *tree, s int32) bool {
	c := &t.seats[s]
	t.why = Refusal{Code: UnknownGroup, Tree: t.name, Node: m.consumers[c.consumer].demands[c.demand].group}
	return false
}

// evictElsewhere releases what the victims from before on hold on the other
// trees of t's forest.
func (m *Manager) evictElsewhere(t *tree, before int) {
	if t.forest == nil || len(m.log.victims) == before {
		return
	}
	for _, other := range t.forest.trees {
		if other == t {
			continue
		}
		for i := before; i < len(m.log.victims); i++ {
			v := m.log.victims[i]
			if s := m.seatOf(other, v.consumer); s != none && other.seats[s].node != none {
				other.release(s)
			}
		}
	}
}

// Deallocate takes a consumer off one tree and lets sharers slide down. It
// reports whether it was allocated there.
func (m *Manager) Deallocate(tree, id string) bool {
	t, _, s, err := m.find(tree, id)
	if err != nil || t.seats[s].node == none {
		return false
	}
	m.begin()
	t.release(s)
	return true
}

// IsAllocated reports whether a consumer is allocated on a tree.
func (m *Manager) IsAllocated(tree, id string) bool {
	t, _, s, err := m.find(tree, id)
	return err == nil && t.seats[s].node != none
}

// find finds a consumer's seat on a tree.
func (m *Manager) find(tree, id string) (*tree, int32, int32, error) {
	t, err := m.treeOf(tree)
	if err != nil {
		return nil, none, none, err
	}
	at, err := m.consumerOf(id)
	if err != nil {
		return nil, none, none, err
	}
	s := m.seatOf(t, at)
	if s == none {
		return nil, none, none, fmt.Errorf("consumer %s: %w demand of tree %s", id, ErrUnknown, tree)
	}
	return t, at, s, nil
}

// force counts the seat on its group, whatever the quota.
func (t *tree) force(s int32) bool {
	if t.overflows(s) {
		return false
	}
	t.settleIn(s)
	t.seize(s, t.seats[s].home, none)
	return true
}

// seize lists the seat on node n, coming from its child via, and counts it
// there and above.
func (t *tree) seize(s, n, via int32) {
	if g := t.seats[s].group; g == none || !t.nodes[g].leaf {
		via = none
	}
	t.put(s, n, via)
	for ; n != none; n = t.nodes[n].parent {
		t.charge(s, n)
	}
	t.enter(s)
}

// tell fills in the result of a success: on tree t, or on those of forest f.
func (m *Manager) tell(r *Result, at int32, f *forest, t *tree) {
	m.placed, m.preempted = m.placed[:0], m.preempted[:0]
	if t != nil {
		m.place(t, at)
	} else {
		for _, t := range f.trees {
			m.place(t, at)
		}
	}
	for _, v := range m.log.victims[m.log.callVictims:] {
		m.preempted = append(m.preempted, m.consumers[v.consumer].id)
	}
	r.OK, r.Placed, r.Preempted = true, m.placed, m.preempted
}

func (m *Manager) place(t *tree, at int32) {
	if s := m.seatOf(t, at); s != none && t.seats[s].node != none {
		m.placed = append(m.placed, Placement{t.name, t.nodes[t.seats[s].node].name})
	}
}
