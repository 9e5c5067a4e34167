package objects

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/count"
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

// namespaceEntry is a namespace with an object, and its use.
type namespaceEntry struct {
	shown.Versioned[api.Namespace]
	used       count.Use
	configured int
}

func (e *namespaceEntry) base() any { return e.Copy() }

func (e *namespaceEntry) figures(object any, _ *View) {
	object.(*api.Namespace).Status = e.show().Object.Status
}

func (e *namespaceEntry) size() int { return 2 << 10 }

// show makes the shown value of a namespace.
func (e *namespaceEntry) show() shown.Versioned[api.Namespace] {
	s := e.Versioned
	used, hard := e.used.Shown(), count.LimitsOf(s.Object.Spec.Limits, e.configured).Shown()
	s.Object.Status = api.NamespaceStatus{Used: &used, Hard: &hard}
	return s
}

// cachedCounts are the uses of namespaces, as the keys have them.
type cachedCounts struct {
	used map[string]count.Use
	// configured is the greatest number of allocations of a namespace without a limit of
	// its own.
	configured int
}

// BoundAllocations sets the greatest number of allocations of a namespace without a
// limit of its own. It is called before the first Refresh.
func (c *Cache) BoundAllocations(most int) { c.counts.configured = most }

// countUnit adds a unit that was read to the use of its namespace.
func (c *Cache) countUnit(u *cachedUnit) {
	u.counted = count.OfUnit(&u.record, u.Document)
	if u.job != nil && u.record.N == 0 {
		u.counted = u.counted.Plus(count.OfJob(&u.job.record, u.job.doc))
	}
	c.addUse(u.record.Namespace, u.counted)
}

// discountUnit takes a unit out of the use of its namespace.
func (c *Cache) discountUnit(u *cachedUnit) {
	c.addUse(u.record.Namespace, count.Use{}.Minus(u.counted))
}

func (c *Cache) addUse(namespace string, more count.Use) {
	if more == (count.Use{}) {
		return
	}
	sum := c.counts.used[namespace].Plus(more)
	if sum == (count.Use{}) {
		delete(c.counts.used, namespace)
	} else {
		c.counts.used[namespace] = sum
	}
	if _, found := c.namespaces[namespace]; found {
		c.stale[Name{Namespaces, "", namespace}] = true
	}
}
