package quota

import "fmt"

// Stand allocates a consumer on a node on which the consumer was counted before,
// whatever the quota, and moves nobody: the node must be the consumer's group or above
// it. Otherwise the consumer stands on its group, and without such a group on the root,
// as UpdateTree puts consumers back. False: the tree is empty, or its sums cannot hold
// the request. The errors are Allocate's.
func (m *Manager) Stand(tree, id, node string) (bool, error) {
	t, at, s, err := m.find(tree, id)
	if err != nil {
		return false, err
	}
	if n := t.seats[s].node; n != none {
		return false, fmt.Errorf("stand %s on %s: %w on tree %s, node %s", id, node, ErrAllocated, tree, t.nodes[n].name)
	}
	m.begin()
	group := m.consumers[at].demands[t.seats[s].demand].group
	t.seats[s].stay = stay{group: none, since: t.now}
	m.restand(t, standing{s, group, node})
	return t.seats[s].node != none, nil
}

// Leave takes a consumer off a tree on which it stands, and moves nobody. It reports
// whether the tree counted the consumer.
func (m *Manager) Leave(tree, id string) bool {
	t, _, s, err := m.find(tree, id)
	if err != nil || t.seats[s].node == none {
		return false
	}
	m.begin()
	n := t.seats[s].node
	t.take(s)
	t.leave(s)
	for ; n != none; n = t.nodes[n].parent {
		t.discharge(s, n)
	}
	return true
}

// NodeOf is the node of a tree on which a consumer is counted; false where the tree does
// not count the consumer.
func (m *Manager) NodeOf(tree, id string) (node string, counted bool) {
	t, known := m.trees[tree]
	at, registered := m.ids[id]
	if !known || !registered {
		return "", false
	}
	s := m.seatOf(t, at)
	if s == none || t.seats[s].node == none {
		return "", false
	}
	return t.nodes[t.seats[s].node].name, true
}

// TakeMoved returns the consumers that have been listed on a node since the last call of
// TakeMoved, those of one tree in the order of their first such change. A consumer that a
// rollback has put back is among them. A consumer of several trees may come several times.
func (m *Manager) TakeMoved() []string {
	var ids []string
	for _, t := range m.slots {
		if t == nil {
			continue
		}
		for _, s := range t.moved {
			c := &t.seats[s]
			c.moved = false
			if c.node != none {
				ids = append(ids, m.consumers[c.consumer].id)
			}
		}
		t.moved = t.moved[:0]
	}
	return ids
}

// noteMoved has TakeMoved return the seat's consumer.
func (t *tree) noteMoved(s int32) {
	if c := &t.seats[s]; !c.moved {
		c.moved = true
		t.moved = append(t.moved, s)
	}
}
