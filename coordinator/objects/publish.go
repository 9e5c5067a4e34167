package objects

import (
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/resource"
)

// publish makes the entries that are out of date anew, in the order of kind,
// namespace and name, which is the order of their events.
func (c *Cache) publish(at resource.Revision, now time.Time) {
	c.agreeResources()
	if len(c.stale) == 0 {
		return
	}
	names := slices.SortedFunc(maps.Keys(c.stale), Name.compare)
	happened := 0
	for i, n := range names {
		of := c.tables[n.Kind]
		e := c.entry(n)
		var before entry
		if e == nil {
			before, _ = of.Delete(n.position())
		} else {
			before, _ = of.Set(n.position(), e)
		}
		if c.history != nil && (before != nil || e != nil) {
			c.history.add(&Event{Name: n, ID: ID{at, i}, before: before, after: e})
		}
		if before != nil || e != nil {
			c.happened(n.Kind, before, e, at, now, &happened)
		}
	}
	clear(c.stale)
	c.view = nil
}

// entry makes the entry of an object, nil where there is no such object.
func (c *Cache) entry(n Name) entry {
	switch n.Kind {
	case Allocations:
		if m, found := c.members[n.Namespace+"/"+n.Name]; found && !m.unit.isHidden() {
			return c.memberEntry(m.unit, m.index)
		}
	case Jobs:
		if j := c.jobs[n.Namespace+"/"+n.Name]; j != nil && !j.isHidden() {
			return c.jobEntry(j)
		}
	case Nodes:
		if node := c.nodes[resource.NodeID(n.Name)]; node != nil && node.node != nil {
			return c.nodeEntry(node)
		}
	case ResourceQuotas:
		if q := c.quotas.of[n.Namespace][n.Name]; q != nil {
			return c.quotas.entry(q)
		}
	case QuotaForests:
		if f, found := c.quotas.forests[n.Name]; found {
			return &forestEntry{f}
		}
	case QuotaBindings:
		if b, found := c.quotas.bindings[n.Name]; found {
			return &bindingEntry{b}
		}
	case QuotaTrees:
		if t, found := c.trees.of[n.Name]; found {
			return &treeEntry{t}
		}
	case Tenants:
		if t, found := c.tenants[n.Name]; found {
			return &tenantEntry{t}
		}
	case Namespaces:
		if s, found := c.namespaces[n.Name]; found {
			return &namespaceEntry{s, c.counts.used[n.Name], c.counts.configured}
		}
	case Resources:
		return c.resources.entry(n.Name)
	case Queues:
		return c.queues.entry(n.Name)
	case PriorityClasses:
		return c.classes.entry(n.Name)
	case AccessTokens:
		if t := c.accessTokens[n.Name]; t != nil {
			return t
		}
	case RoleBindings:
		if b, found := c.roleBindings[n.Name]; found {
			return &roleBindingEntry{b}
		}
	}
	return nil
}

// View is all objects as they are now, for a reader at a time. It takes O(1);
// all views between two changes share their trees.
func (c *Cache) View(at resource.Revision, now time.Time) *View {
	if c.view == nil {
		c.view = &View{queue: c.queue.Copy(), lines: c.lines.Copy(), trees: c.trees.now()}
		for k, t := range c.tables {
			c.view.tables[k] = t.Copy()
		}
	}
	v := *c.view
	v.revision, v.now = at, now
	if c.events != nil {
		v.since = c.events.Since()
	}
	return &v
}
