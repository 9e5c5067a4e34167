package quota

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/resource"
)

// NodeView is a node of a live tree as it is, for explanations and pictures.
// Vectors name every resource of the tree, in base units.
type NodeView struct {
	Name, Parent string // Parent is empty for the root
	Depth        int    // 0 for the root
	Children     []string
	Hard, Leaf   bool
	Quota        resource.Vector
	// Allocated is what consumers listed here and below hold.
	Allocated resource.Vector
	// Own is what the consumers listed here hold.
	Own resource.Vector
	// Use is what consumers of the groups here and below hold, wherever they
	// are listed.
	Use resource.Vector
	// Borrowed is Use - Allocated: held by these groups on nodes above.
	Borrowed resource.Vector
	// Lent is what the groups here and below could have of the node's quota
	// only by claiming it back, because others use it further up.
	Lent resource.Vector
	// Consumers are those listed here, oldest first: the order in which they
	// give way.
	Consumers []string
}

// ConsumerView is a registered consumer and where it stands.
type ConsumerView struct {
	ID, Owner  string
	Placements []PlacementView // as in its specification
}

// PlacementView is a consumer on one tree.
type PlacementView struct {
	Demand
	// Allocated says that the fields below mean something.
	Allocated bool
	// Group is the demand's group, followed through renames; GroupGone says
	// that the tree has no such leaf any more.
	Group     string
	GroupGone bool
	// Node is the allocation node, Position its place in the node's list from
	// 0, the oldest.
	Node     string
	Position int
	// BorrowsFrom are the children of Node, other than the one towards its
	// own group, that leave quota unused of what it uses. Empty for an owner.
	BorrowsFrom []string
	// ReclaimableBy are the leaf groups below Node with unused quota of what it
	// uses: an arrival there may push it up or evict it. Empty for an owner.
	ReclaimableBy []string
}

// Nodes returns the nodes of a tree, parents before children, children in
// ascending order.
func (m *Manager) Nodes(tree string) ([]NodeView, error) {
	t, err := m.treeOf(tree)
	if err != nil {
		return nil, err
	}
	views := make([]NodeView, len(t.nodes))
	room := make([][]int64, len(t.nodes)) // the least of the nodes above
	for i := range t.nodes {
		views[i], room[i] = m.viewOf(t, int32(i), room)
		if p := t.nodes[i].parent; p != none {
			views[p].Children = append(views[p].Children, t.nodes[i].name)
			views[i].Depth = views[p].Depth + 1
		}
	}
	return views, nil
}

// Node returns one node of a tree.
func (m *Manager) Node(tree, name string) (NodeView, error) {
	views, err := m.Nodes(tree)
	if err != nil {
		return NodeView{}, err
	}
	for _, v := range views {
		if v.Name == name {
			return v, nil
		}
	}
	return NodeView{}, fmt.Errorf("tree %s: node %s: %w", tree, name, ErrUnknown)
}

// viewOf describes node n, given the least room of the nodes above every node
// before it; it returns n's least room, its own included.
func (m *Manager) viewOf(t *tree, n int32, room [][]int64) (NodeView, []int64) {
	at := &t.nodes[n]
	v := NodeView{
		Name: at.name, Hard: at.hard, Leaf: at.leaf,
		Quota: t.vector(t.amount(n, quotaOf)), Allocated: t.vector(t.amount(n, allocatedOf)),
		Own: t.vector(t.amount(n, ownOf)), Use: t.vector(t.amount(n, useOf)),
		Borrowed: resource.Vector{}, Lent: resource.Vector{}, Consumers: make([]string, 0, at.count),
	}
	for s := at.head; s != none; s = t.seats[s].next {
		v.Consumers = append(v.Consumers, m.consumers[t.seats[s].consumer].id)
	}
	least := make([]int64, t.width)
	for i, name := range t.resources {
		unused := v.Quota[name] - v.Allocated[name]
		least[i] = unused
		v.Borrowed[name] = v.Use[name] - v.Allocated[name]
		v.Lent[name] = 0
		if at.parent != none {
			above := room[at.parent][i]
			least[i] = min(unused, above)
			v.Lent[name] = max(0, unused-max(0, above))
		}
	}
	if at.parent != none {
		v.Parent = t.nodes[at.parent].name
	}
	return v, least
}

// vector names the amounts of a vector.
func (t *tree) vector(amounts []int64) resource.Vector {
	v := make(resource.Vector, t.width)
	for i, name := range t.resources {
		v[name] = amounts[i]
	}
	return v
}

// Consumer returns a registered consumer.
func (m *Manager) Consumer(id string) (ConsumerView, error) {
	at, err := m.consumerOf(id)
	if err != nil {
		return ConsumerView{}, err
	}
	c := &m.consumers[at]
	v := ConsumerView{ID: c.id, Owner: c.owner}
	for i := range c.demands {
		d := &c.demands[i]
		seat := PlacementView{Demand: d.spec()}
		if t := m.treeAt(d.slot); t != nil && t.seats[d.seat].node != none {
			t.describe(d.seat, &seat)
		}
		v.Placements = append(v.Placements, seat)
	}
	return v, nil
}

// Rank is how firmly a tree counts a consumer: the height of the node on which it is
// counted, and its priority. The height of a group is 0, that of another node one more
// than the greatest of its children: the greater the height, the farther the consumer
// borrows. False where the tree does not count it.
func (m *Manager) Rank(tree, id string) (height, priority int, charged bool) {
	t, known := m.trees[tree]
	if !known {
		return 0, 0, false
	}
	at, known := m.ids[id]
	if !known {
		return 0, 0, false
	}
	s := m.seatOf(t, at)
	if s == none || t.seats[s].node == none {
		return 0, 0, false
	}
	return int(t.nodes[t.seats[s].node].height), t.seats[s].priority, true
}

// Height is the greatest height at which a tree counts a consumer, as Rank has it; 0 where
// none does.
func (m *Manager) Height(id string) int {
	at, known := m.ids[id]
	if !known {
		return 0
	}
	height := int32(0)
	for _, d := range m.consumers[at].demands {
		if t := m.treeAt(d.slot); t != nil && d.seat != none && t.seats[d.seat].node != none {
			height = max(height, t.nodes[t.seats[d.seat].node].height)
		}
	}
	return int(height)
}

// describe fills in where an allocated seat stands.
func (t *tree) describe(s int32, v *PlacementView) {
	c := &t.seats[s]
	v.Allocated, v.Group, v.Node = true, c.groupName, t.nodes[c.node].name
	v.GroupGone = c.group == none || !t.nodes[c.group].leaf
	for p := c.prev; p != none; p = t.seats[p].prev {
		v.Position++
	}
	if c.group == c.node {
		return
	}
	for n := c.node + 1; n <= t.nodes[c.node].last; n++ {
		if !t.unusedOf(n, t.request(s)) {
			continue
		}
		if t.nodes[n].parent == c.node && n != c.via {
			v.BorrowsFrom = append(v.BorrowsFrom, t.nodes[n].name)
		}
		if t.nodes[n].leaf {
			v.ReclaimableBy = append(v.ReclaimableBy, t.nodes[n].name)
		}
	}
	slices.Sort(v.BorrowsFrom)
	slices.Sort(v.ReclaimableBy)
}

// unusedOf reports whether node n leaves quota unused of what is requested.
func (t *tree) unusedOf(n int32, request []int64) bool {
	for i, want := range request {
		if want > 0 && t.amount(n, allocatedOf)[i] < t.amount(n, quotaOf)[i] {
			return true
		}
	}
	return false
}
