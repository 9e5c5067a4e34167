package objects

import (
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/count"
	"github.com/musterd/muster/coordinator/events"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// Cache is the objects that clients are shown, and the keys of those that are
// out of date. Every object in it is made anew from its own keys when one of
// them has changed, and never from its earlier value: there is no history that
// could be followed wrongly. One goroutine at a time uses a Cache; the Views that
// it gives out are free of it.
type Cache struct {
	nodes   map[resource.NodeID]*cachedNode
	units   map[string]*cachedUnit        // by path
	jobs    map[string]*cachedJob         // by namespace/name
	members map[string]cachedMember       // likewise
	live    map[resource.TxID]*cachedUnit // the units that hold something
	quotas  cachedQuotas
	trees   cachedTrees
	// tenants and namespaces are the objects, by name.
	tenants    map[string]shown.Versioned[api.Tenant]
	namespaces map[string]shown.Versioned[api.Namespace]
	counts     cachedCounts
	resources  cachedResources
	queues     cachedQueues
	gangs      cachedGangs
	classes    cachedClasses
	// accessTokens by id, roleBindings by name.
	accessTokens map[string]*accessTokenEntry
	roleBindings map[string]shown.Versioned[api.RoleBinding]
	// addresses are the nodes by the addresses of their agents.
	addresses map[string]map[resource.NodeID]bool
	touched   map[string]bool // keys that have changed
	stale     map[Name]bool   // objects whose entries are out of date
	known     map[string]any  // pointers to the records of keys that have changed, where they were decoded

	tables  [kinds]*table
	queue   *order
	lines   *order      // the same by queue
	view    *View       // the newest one; nil when something has changed since
	history *History    // nil: nobody needs the changes
	events  *events.Log // nil: nobody needs the events
	source  string      // of the events: a coordinator
	shows   rendered    // for the events
}

// New returns a cache without any object.
func New() *Cache {
	c := &Cache{
		nodes: map[resource.NodeID]*cachedNode{}, units: map[string]*cachedUnit{}, jobs: map[string]*cachedJob{},
		members: map[string]cachedMember{}, live: map[resource.TxID]*cachedUnit{}, quotas: newCachedQuotas(), trees: newCachedTrees(),
		tenants: map[string]shown.Versioned[api.Tenant]{}, namespaces: map[string]shown.Versioned[api.Namespace]{},
		counts:    cachedCounts{used: map[string]count.Use{}},
		resources: newCachedResources(), queues: newCachedQueues(), classes: newCachedClasses(), gangs: cachedGangs{},
		accessTokens: map[string]*accessTokenEntry{}, roleBindings: map[string]shown.Versioned[api.RoleBinding]{},
		addresses: map[string]map[resource.NodeID]bool{},
		touched:   map[string]bool{}, stale: map[Name]bool{}, known: map[string]any{}, queue: newOrder(), lines: newLines(),
	}
	for k := range c.tables {
		c.tables[k] = new(table)
	}
	for _, e := range registry.BuiltIn() {
		c.tables[Resources].Set(Name{Resources, "", string(e.Name)}.position(), c.resources.entry(string(e.Name)))
	}
	c.setBuiltInClasses()
	c.tables[Queues].Set(Name{Queues, "", api.DefaultQueue}.position(), c.queues.entry(api.DefaultQueue))
	return c
}

// Know gives the cache a pointer to the record of a key that was touched, which nobody
// changes. Each other touch of the key forgets it.
func (c *Cache) Know(key string, of any) {
	if c.touched[key] {
		c.known[key] = of
	}
}

// Touch notes that a key has changed.
func (c *Cache) Touch(key string) {
	delete(c.known, key)
	for _, prefix := range []string{record.UnitsPrefix, record.JobsPrefix, record.OrderPrefix, record.TxPrefix, record.ReadyPrefix, record.NodesPrefix, record.BansPrefix, record.QuotaPrefix, record.TenantsPrefix, record.NamespacesPrefix, record.ResourcesPrefix, record.QueuesPrefix, record.PriorityClassesPrefix, record.AuthPrefix} {
		if strings.HasPrefix(key, prefix) {
			c.touched[key] = true
			return
		}
	}
}

// Refresh makes the objects that are out of date anew, from all keys as they
// are at a revision. While a history or events are kept, it is called for each
// revision.
func (c *Cache) Refresh(kvs map[string]record.KV, at resource.Revision, now time.Time) error {
	if len(c.touched) == 0 {
		return nil
	}
	stale := stale{map[resource.NodeID]bool{}, map[string]bool{}, map[string]bool{}}
	for key := range c.touched {
		if err := c.concerns(key, kvs, now, stale); err != nil {
			return err
		}
	}
	clear(c.touched)
	defer clear(c.known)
	for id := range stale.nodes {
		if err := c.remakeNode(id, kvs); err != nil {
			return err
		}
	}
	for key := range stale.jobs {
		if err := c.remakeJob(key, kvs, stale.units); err != nil {
			return err
		}
	}
	for path := range stale.units {
		if err := c.remakeUnit(path, kvs); err != nil {
			return err
		}
	}
	c.publish(at, now)
	return nil
}

// stale are objects that are to be made anew: nodes by id, jobs by key, units by
// path.
type stale struct {
	nodes       map[resource.NodeID]bool
	jobs, units map[string]bool
}

// concerns finds out which objects a key is a part of. A quota's key is one by
// itself.
func (c *Cache) concerns(key string, kvs map[string]record.KV, now time.Time, s stale) error {
	switch {
	case strings.HasPrefix(key, record.UnitsPrefix):
		path, err := record.ParseUnitKey(key)
		s.units[path.String()] = true
		return err
	case strings.HasPrefix(key, record.OrderPrefix):
		order, err := record.ParseOrderKey(key)
		s.units[order.Unit.String()] = true
		return err
	case strings.HasPrefix(key, record.JobsPrefix):
		s.jobs[key] = true
	case strings.HasPrefix(key, record.BansPrefix):
		id, err := record.ParseBanKey(key)
		if err != nil {
			return err
		}
		s.nodes[id] = true
	case strings.HasPrefix(key, record.NodesPrefix):
		node, err := record.ParseNodeKey(key)
		if node.Part != record.NodeTxPart && node.Part != record.NodeLeasePart {
			s.nodes[node.ID] = true
		}
		return err
	case strings.HasPrefix(key, record.TxPrefix):
		return c.concernsTx(key, kvs, s)
	case strings.HasPrefix(key, record.ReadyPrefix): // a unit that is new is made anew anyhow
		tx, err := record.ParseReadyKey(key)
		if u := c.live[tx]; u != nil {
			s.units[u.path] = true
		}
		return err
	case strings.HasPrefix(key, record.QuotaPrefix):
		return c.remakeQuota(key, kvs)
	case strings.HasPrefix(key, record.TenantsPrefix):
		return c.remakeTenant(key, kvs)
	case strings.HasPrefix(key, record.NamespacesPrefix):
		return c.remakeNamespace(key, kvs)
	case strings.HasPrefix(key, record.ResourcesPrefix):
		return c.remakeResource(key, kvs)
	case strings.HasPrefix(key, record.QueuesPrefix):
		return c.remakeQueue(key, kvs)
	case strings.HasPrefix(key, record.PriorityClassesPrefix):
		return c.remakeClass(key, kvs)
	case strings.HasPrefix(key, record.AuthPrefix):
		c.remakeCredential(key, kvs)
	}
	return nil
}

// concernsTx adds the unit that a record is about.
func (c *Cache) concernsTx(key string, kvs map[string]record.KV, s stale) error {
	tx, err := record.ParseTxKey(key)
	if err != nil {
		return err
	}
	if u := c.live[tx]; u != nil { // a record is about one unit for ever
		s.units[u.path] = true
		return nil
	}
	kv, found := kvs[key]
	if !found {
		return nil
	}
	rec, err := read[record.Tx](c, kv)
	if err == nil && !rec.State.Terminal() {
		s.units[rec.Unit.String()] = true
		c.known[key] = rec
	}
	return err
}

// read reads the record of a key, unless it was decoded before. Nobody changes it.
func read[R record.Type](c *Cache, kv record.KV) (*R, error) {
	if r, known := c.known[kv.Key].(*R); known {
		return r, nil
	}
	r, err := record.Decode[R](kv.Key, kv.Value)
	return &r, err
}
