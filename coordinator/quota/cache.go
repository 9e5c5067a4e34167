package quota

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/resource"
)

// Cache is the specification of a tree that its next update takes over.
// Changes to it do not touch the live tree.
type Cache struct {
	name      string
	resources []resource.Name
	nodes     map[string]NodeSpec
	// renamed maps a name of the live tree to its name here.
	renamed map[string]string
}

func newCache(s TreeSpec) Cache {
	c := Cache{name: s.Name, resources: sortedResources(s.Resources), nodes: make(map[string]NodeSpec, len(s.Nodes)), renamed: map[string]string{}}
	for name, n := range s.Nodes {
		c.nodes[name] = n.Clone()
	}
	return c
}

// Spec returns a copy of the specification.
func (c *Cache) Spec() TreeSpec {
	s := TreeSpec{Name: c.name, Resources: slices.Clone(c.resources), Nodes: make(map[string]NodeSpec, len(c.nodes))}
	for name, n := range c.nodes {
		s.Nodes[name] = n.Clone()
	}
	return s
}

// Node returns a copy of a node's specification.
func (c *Cache) Node(name string) (NodeSpec, bool) {
	n, known := c.nodes[name]
	return n.Clone(), known
}

// NodeNames returns the nodes, ascending, those that hang nowhere included.
func (c *Cache) NodeNames() []string { return slices.Sorted(maps.Keys(c.nodes)) }

// SetNode adds a node or replaces its specification.
func (c *Cache) SetNode(name string, s NodeSpec) error {
	if name == "" {
		return fmt.Errorf("%w: tree %s: nodes: an empty name", ErrInvalid, c.name)
	}
	if err := s.validate("nodes." + name); err != nil {
		return fmt.Errorf("tree %s: %w", c.name, err)
	}
	c.nodes[name] = s.Clone()
	return nil
}

// DeleteNode removes a node; its children stay and hang nowhere.
func (c *Cache) DeleteNode(name string) error {
	if _, known := c.nodes[name]; !known {
		return fmt.Errorf("tree %s: node %s: %w", c.name, name, ErrUnknown)
	}
	delete(c.nodes, name)
	return nil
}

// RenameNode renames a node; its children and, at the update, its consumers
// follow. A new name that is in use is an error.
func (c *Cache) RenameNode(old, renamed string) error {
	s, known := c.nodes[old]
	switch _, clash := c.nodes[renamed]; {
	case !known:
		return fmt.Errorf("tree %s: node %s: %w", c.name, old, ErrUnknown)
	case renamed == "":
		return fmt.Errorf("%w: tree %s: nodes: an empty name", ErrInvalid, c.name)
	case old == renamed:
		return nil
	case clash:
		return fmt.Errorf("tree %s: rename %s: node %s %w", c.name, old, renamed, ErrExists)
	}
	delete(c.nodes, old)
	c.nodes[renamed] = s
	for name, child := range c.nodes {
		if child.Parent == old {
			child.Parent = renamed
			c.nodes[name] = child
		}
	}
	c.recordRename(old, renamed)
	return nil
}

// recordRename keeps renamed from live names to names here, chains shortened.
func (c *Cache) recordRename(old, renamed string) {
	for live, now := range c.renamed {
		if now == old {
			c.renamed[live] = renamed
			return
		}
	}
	if _, moved := c.renamed[old]; !moved {
		c.renamed[old] = renamed
	}
}

// Resources returns what the tree will count, ascending.
func (c *Cache) Resources() []resource.Name { return slices.Clone(c.resources) }

// SetResources replaces what the tree counts; empty means the default. Live
// consumers keep their requests: what becomes counted is what they asked for.
func (c *Cache) SetResources(names []resource.Name) error {
	if slices.Contains(names, "") {
		return fmt.Errorf("%w: tree %s: resources: an empty name", ErrInvalid, c.name)
	}
	c.resources = sortedResources(names)
	return nil
}
