package objects

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
)

// remakeTenant makes a tenant from its key.
func (c *Cache) remakeTenant(key string, kvs map[string]record.KV) error {
	name, err := record.ParseTenantKey(key)
	if err != nil {
		return err
	}
	c.stale[Name{Tenants, "", name}] = true
	return remakeObject(c.tenants, edit.Tenants, name, key, kvs)
}

// remakeNamespace makes a namespace from its key.
func (c *Cache) remakeNamespace(key string, kvs map[string]record.KV) error {
	name, err := record.ParseNamespaceKey(key)
	if err != nil {
		return err
	}
	c.stale[Name{Namespaces, "", name}] = true
	return remakeObject(c.namespaces, edit.Namespaces, name, key, kvs)
}

// remakeObject makes one object of a kind from its key, or takes the object out.
func remakeObject[T any](all map[string]shown.Versioned[T], kind edit.Kind[T], name, key string, kvs map[string]record.KV) error {
	delete(all, name)
	kv, found := kvs[key]
	if !found {
		return nil
	}
	object, err := kind.Read(kv)
	if err == nil {
		all[name] = shown.Versioned[T]{Object: object.Object, Revision: kv.ModRev}
	}
	return err
}

// tenantEntry is a tenant.
type tenantEntry struct {
	shown.Versioned[api.Tenant]
}

func (e *tenantEntry) base() any          { return e.Copy() }
func (e *tenantEntry) figures(any, *View) {}
func (e *tenantEntry) size() int          { return 2 << 10 }

// namespaceEntry is a namespace with an object.
type namespaceEntry struct {
	shown.Versioned[api.Namespace]
}

func (e *namespaceEntry) base() any          { return e.Copy() }
func (e *namespaceEntry) figures(any, *View) {}
func (e *namespaceEntry) size() int          { return 2 << 10 }
