package objects

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
)

// cachedClasses are the priority classes that operators wrote, by name.
type cachedClasses map[string]shown.Versioned[api.PriorityClass]

func newCachedClasses() cachedClasses { return cachedClasses{} }

// setBuiltInClasses shows the classes that are there without an object.
func (c *Cache) setBuiltInClasses() {
	for _, b := range api.NamedPriorities() {
		c.tables[PriorityClasses].Set(Name{PriorityClasses, "", b.Name}.position(), c.classes.entry(b.Name))
	}
}

// remakeClass makes a priority class from its key.
func (c *Cache) remakeClass(key string, kvs map[string]record.KV) error {
	name, err := edit.Classes.NameIn(key)
	if err != nil {
		return err
	}
	c.stale[Name{PriorityClasses, "", name}] = true
	return remakeObject(c.classes, edit.Classes, name, key, kvs)
}

// entry makes the entry of a class, nil where there is none of the name.
func (all cachedClasses) entry(name string) entry {
	w, written := all[name]
	value, builtIn := api.BuiltInPriority(name)
	if !written && !builtIn {
		return nil
	}
	if !written {
		w.Object.Metadata.Name, w.Object.Spec.Value = name, value
	}
	w.Object.APIVersion, w.Object.Kind = api.APIVersion, api.KindPriorityClass
	return &classEntry{w}
}

// classEntry is a priority class.
type classEntry struct {
	shown.Versioned[api.PriorityClass]
}

func (e *classEntry) base() any                                { return e.Copy() }
func (e *classEntry) figures(any, *View)                       {}
func (e *classEntry) size() int                                { return 2 << 10 }
func (e *classEntry) show() shown.Versioned[api.PriorityClass] { return e.Versioned }
