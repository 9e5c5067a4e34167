package objects

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/quota"
)

// standing is the units on the nodes of the trees that count them, as of the moment of
// the last reader. The next reader adds the units that came since then, and takes off
// those that left: a use of the trees costs as much as has changed.
//
// Invariant: units are on the nodes of trees in the order of compareArrival, as if all of
// them had been put on empty trees. Readers of a moment before the last one break that
// order, and so do units whose earlier nodes count again; for them the trees are built
// anew. One reader at a time has a standing: see shared.
type standing struct {
	of     map[string]*cachedTree // the objects behind trees; nil: there is nothing yet
	trees  *quota.Manager
	on     map[string]*treeStanding
	units  []counted // ascending by transaction
	newest counted   // the unit that came last, also if it has left
	// crowded: the sums of a tree could not hold some unit, which may fit once others
	// have left.
	crowded bool
}

// shared is the standing that no reader has at the moment. A reader takes it and gives it
// back; another reader meanwhile builds one of its own.
type shared struct{ atomic.Pointer[standing] }

// at is the status of each tree at the moment of a use.
func (p *shared) at(u *treeUse) (map[string]api.QuotaTreeStatus, error) {
	s := p.Swap(nil)
	if s == nil {
		s = &standing{}
	}
	status, err := s.at(u)
	if err == nil {
		p.Store(s)
	}
	return status, err
}

// at brings the trees to the moment of a use, and returns the status of each tree.
func (s *standing) at(u *treeUse) (map[string]api.QuotaTreeStatus, error) {
	units := u.units()
	if s.of == nil || !maps.Equal(s.of, u.of) || !s.canFollow(units) {
		if err := s.build(u.of); err != nil {
			return nil, err
		}
	}
	if err := s.follow(units); err != nil {
		return nil, fmt.Errorf("count the units of the records: %w", err)
	}
	return s.statuses()
}

// build makes trees without units.
func (s *standing) build(of map[string]*cachedTree) error {
	s.of, s.units, s.newest, s.crowded = nil, nil, counted{}, false
	s.trees, s.on = quota.NewManager(quota.Options{}), make(map[string]*treeStanding, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		t, err := newTreeStanding(s.trees, of[name])
		if err != nil {
			return err
		}
		s.on[name] = t
	}
	s.of = of
	return nil
}

// changes calls gone for each unit that is here and not in a later list, and come for
// each unit of that list that is not here. A unit that has moved is in both.
func (s *standing) changes(later []counted, gone, come func(counted)) {
	before := s.units
	for _, c := range later {
		for len(before) > 0 && before[0].tx < c.tx {
			gone(before[0])
			before = before[1:]
		}
		if len(before) > 0 && before[0].tx == c.tx {
			same := before[0] == c
			if !same {
				gone(before[0])
			}
			if before = before[1:]; same {
				continue
			}
		}
		come(c)
	}
	for _, c := range before {
		gone(c)
	}
}

// canFollow reports whether all units that come are newer than those that are here, and
// no unit here waits for others to leave.
func (s *standing) canFollow(later []counted) bool {
	follows := true
	s.changes(later, func(counted) { follows = follows && !s.crowded }, func(c counted) {
		follows = follows && (s.newest.charged == nil || compareArrival(s.newest, c) < 0)
	})
	return follows
}

// follow takes off the units that have left and puts on those that came.
func (s *standing) follow(later []counted) error {
	var gone, come []counted
	s.changes(later, func(c counted) { gone = append(gone, c) }, func(c counted) { come = append(come, c) })
	slices.SortFunc(come, compareArrival)
	for _, c := range gone {
		if err := s.leave(c); err != nil {
			return err
		}
	}
	for _, c := range come {
		if err := s.stand(c); err != nil {
			return err
		}
		s.newest = c
	}
	s.units = later
	return nil
}

// leave takes a unit off its nodes.
func (s *standing) leave(c counted) error {
	for i := range c.charges {
		t := s.on[c.charges[i].Tree]
		if t == nil {
			continue
		}
		delete(t.detached, c.path)
		s.trees.Leave(t.spec.Name, c.path)
	}
	if !s.trees.HasConsumer(c.path) { // none of its trees is there
		return nil
	}
	return s.trees.RemoveConsumer(c.path)
}

// stand puts a unit on its nodes. A unit of a group that the tree lacks is on the root, and a
// unit that the tree cannot count is named among the detached.
func (s *standing) stand(c counted) error {
	consumer := quota.ConsumerSpec{ID: c.path}
	var on []*treeStanding
	var nodes []string
	for i := range c.charges {
		charge := &c.charges[i]
		t := s.on[charge.Tree]
		if t == nil { // of a namespace, or of a tree that has gone
			continue
		}
		group := t.name(charge.Group)
		leaf, known := t.leaves[group]
		if !leaf {
			t.detached[c.path] = true
		}
		if !known {
			group = t.shape.Root
		}
		if group == "" { // the tree is empty
			continue
		}
		node := group
		if seat := c.seat(charge); seat != "" {
			node = t.name(seat)
		}
		consumer.Demands = append(consumer.Demands, quota.Demand{Tree: charge.Tree, Group: group, Request: charge.Request})
		on, nodes = append(on, t), append(nodes, node)
	}
	if len(on) == 0 {
		return nil
	}
	if err := s.trees.AddConsumer(consumer); err != nil {
		return err
	}
	for i, t := range on {
		counted, err := s.trees.Stand(consumer.Demands[i].Tree, c.path, nodes[i])
		if err != nil {
			return err
		}
		if !counted {
			t.detached[c.path], s.crowded = true, true
		}
	}
	return nil
}

// statuses are the trees with their units.
func (s *standing) statuses() (map[string]api.QuotaTreeStatus, error) {
	shown := make(map[string]api.QuotaTreeStatus, len(s.on))
	for name, t := range s.on {
		nodes, err := s.trees.Nodes(name)
		if err != nil {
			return nil, err
		}
		shown[name] = charges.TreeStatus(t.shape, nodes, t.detached)
	}
	return shown, nil
}

// treeStanding is a tree with units on it.
type treeStanding struct {
	*cachedTree
	shape    quota.Shape
	leaves   map[string]bool // the nodes: true for a leaf
	detached map[string]bool // by path
}

func newTreeStanding(trees *quota.Manager, t *cachedTree) (*treeStanding, error) {
	shape, err := trees.AddTree(t.spec)
	if err != nil {
		return nil, err
	}
	nodes, err := trees.Nodes(t.spec.Name)
	if err != nil {
		return nil, err
	}
	s := &treeStanding{t, shape, make(map[string]bool, len(nodes)), map[string]bool{}}
	for _, n := range nodes {
		s.leaves[n.Name] = n.Leaf
	}
	return s, nil
}

// name is the name of today of a node.
func (t *treeStanding) name(of string) string { return cmp.Or(t.former[of], of) }
