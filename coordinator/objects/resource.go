package objects

import (
	"iter"
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// cachedResources are the names of resources: those that are built in, those that
// nodes declare, and those that operators wrote.
type cachedResources struct {
	written map[string]shown.Versioned[api.Resource]
	// nodes counts the nodes that declare an amount, by name.
	nodes map[resource.Name]int
	// declared are the names with a domain that nodes declare, by node; agreement is the
	// outcome as the entries show it, unless unsettled.
	declared  map[resource.NodeID]registry.Declaration
	agreement registry.Agreement
	unsettled bool
}

func newCachedResources() cachedResources {
	return cachedResources{written: map[string]shown.Versioned[api.Resource]{}, nodes: map[resource.Name]int{}, declared: map[resource.NodeID]registry.Declaration{}}
}

// remakeResource makes a resource from its key.
func (c *Cache) remakeResource(key string, kvs map[string]record.KV) error {
	name, err := edit.Resources.NameIn(key)
	if err != nil {
		return err
	}
	c.stale[Name{Resources, "", name}] = true
	c.resources.unsettled = true
	return remakeObject(c.resources.written, edit.Resources, name, key, kvs)
}

// declare notes that a node declares other resources without a domain than before. A name that comes or
// goes makes an event; the number of nodes makes none.
func (c *Cache) declare(before, after resource.Vector) {
	was, is := registry.DeclaredBy(before), registry.DeclaredBy(after)
	maps.DeleteFunc(was, func(name resource.Name, _ bool) bool { return resource.IsExtended(name) })
	maps.DeleteFunc(is, func(name resource.Name, _ bool) bool { return resource.IsExtended(name) })
	for name := range was {
		if !is[name] {
			c.count(name, -1)
		}
	}
	for name := range is {
		if !was[name] {
			c.count(name, 1)
		}
	}
}

// declareCounts notes that a node may declare other names with a domain than before.
func (c *Cache) declareCounts(id resource.NodeID) {
	var d registry.Declaration
	if n := c.nodes[id]; n != nil && n.node != nil {
		d = shown.DeclarationOf(id, n.node.Spec)
	}
	before := c.resources.declared[id]
	if before.Since == d.Since && slices.Equal(before.Declared, d.Declared) {
		return
	}
	c.resources.unsettled = true
	if len(d.Declared) == 0 {
		delete(c.resources.declared, id)
		return
	}
	c.resources.declared[id] = d
}

// agreeResources settles which resource each declared name is. A name that comes, goes or
// is described anew makes an event; the number of nodes makes none.
func (c *Cache) agreeResources() {
	r := &c.resources
	if !r.unsettled {
		return
	}
	r.unsettled = false
	created := map[resource.Name]registry.Entry{}
	for name, w := range r.written {
		created[resource.Name(name)] = edit.GivenEntry(&w.Object)
	}
	before := r.agreement
	r.agreement = registry.Agree(slices.Collect(maps.Values(r.declared)), created)
	for name, e := range r.agreement.Entries {
		was, known := before.Entries[name]
		c.count(name, e.Nodes-was.Nodes)
		if was.Nodes = e.Nodes; !known || was != e {
			c.stale[Name{Resources, "", string(name)}] = true
		}
	}
	for name, was := range before.Entries {
		if _, known := r.agreement.Entries[name]; !known {
			c.count(name, -was.Nodes)
		}
	}
}

func (c *Cache) count(name resource.Name, by int) {
	if by == 0 {
		return
	}
	n := Name{Resources, "", string(name)}
	was := c.resources.nodes[name]
	if now := was + by; now > 0 {
		c.resources.nodes[name] = now
	} else {
		delete(c.resources.nodes, name)
	}
	if was == 0 || was+by == 0 || c.stale[n] {
		c.stale[n] = true
		return
	}
	c.tables[Resources].Set(n.position(), c.resources.entry(string(name)))
	c.view = nil
}

// entry makes the entry of a resource, nil where nothing has the name.
func (r *cachedResources) entry(name string) entry {
	w, written := r.written[name]
	nodes := r.nodes[resource.Name(name)]
	e, declared := r.agreement.Entries[resource.Name(name)]
	if !declared {
		e = registry.Describe(resource.Name(name))
	}
	if !written && nodes == 0 && !e.BuiltIn {
		return nil
	}
	var object *api.Resource
	if written {
		object, e = &w.Object, edit.ResourceEntryOver(e, &w.Object)
	}
	return &resourceEntry{shown.Versioned[api.Resource]{Object: shown.Resource(e, object, nodes > 0), Revision: w.Revision}, nodes}
}

// resourceEntry is a resource. Its figure is the number of nodes.
type resourceEntry struct {
	shown.Versioned[api.Resource]
	nodes int
}

func (e *resourceEntry) base() any                   { return e.Copy() }
func (e *resourceEntry) figures(object any, v *View) { object.(*api.Resource).Status.Nodes = e.nodes }
func (e *resourceEntry) size() int                   { return 2 << 10 }

func (e *resourceEntry) show() shown.Versioned[api.Resource] {
	v := e.Versioned
	v.Object.Status.Nodes = e.nodes
	return v
}

// Resource returns a resource.
func (v *View) Resource(name string) (shown.Versioned[api.Resource], bool) {
	e, found := at[*resourceEntry](v, Name{Resources, "", name})
	if !found {
		return shown.Versioned[api.Resource]{}, false
	}
	return e.show(), true
}

// Resources are all of them by name.
func (v *View) Resources() iter.Seq[shown.Versioned[api.Resource]] {
	return each(v, Resources, "", func(e *resourceEntry) shown.Versioned[api.Resource] { return e.show() })
}
