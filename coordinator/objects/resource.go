package objects

import (
	"iter"

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
}

func newCachedResources() cachedResources {
	return cachedResources{written: map[string]shown.Versioned[api.Resource]{}, nodes: map[resource.Name]int{}}
}

// remakeResource makes a resource from its key.
func (c *Cache) remakeResource(key string, kvs map[string]record.KV) error {
	name, err := edit.Resources.NameIn(key)
	if err != nil {
		return err
	}
	c.stale[Name{Resources, "", name}] = true
	return remakeObject(c.resources.written, edit.Resources, name, key, kvs)
}

// declare notes that a node declares other resources than before. A name that comes or
// goes makes an event; the number of nodes makes none.
func (c *Cache) declare(before, after resource.Vector) {
	was, is := registry.Declared(before), registry.Declared(after)
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

func (c *Cache) count(name resource.Name, by int) {
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
	e := registry.Describe(resource.Name(name))
	if !written && nodes == 0 && !e.BuiltIn {
		return nil
	}
	var object *api.Resource
	if written {
		object, e = &w.Object, edit.ResourceEntry(&w.Object)
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
