package objects

import (
	"fmt"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/api/text"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// cachedQuotas are the limits of tenants, as the keys have them, and the
// charges of their namespaces. Trees are cachedTrees.
type cachedQuotas struct {
	limits *quota.Limits
	// reserved are the same limits with the charges of the units alone that have not
	// started.
	reserved *quota.Limits
	of       map[string]map[string]*cachedQuota // resource quotas by namespace and name
	forests  map[string]shown.Versioned[api.QuotaForest]
	bindings map[string]shown.Versioned[api.QuotaBinding] // by namespace
}

// cachedQuota is a resource quota with its limits.
type cachedQuota struct {
	shown.Versioned[api.ResourceQuota]
	hard, soft resource.Vector
}

func newCachedQuotas() cachedQuotas {
	return cachedQuotas{
		limits: quota.New(), reserved: quota.New(), of: map[string]map[string]*cachedQuota{},
		forests: map[string]shown.Versioned[api.QuotaForest]{}, bindings: map[string]shown.Versioned[api.QuotaBinding]{},
	}
}

// remakeQuota makes a quota from its key.
func (c *Cache) remakeQuota(key string, kvs map[string]record.KV) error {
	q := &c.quotas
	parsed, err := record.ParseQuotaKey(key)
	if err != nil {
		return err
	}
	kv, found := kvs[key]
	switch parsed.Kind {
	case record.QuotaResources:
		c.stale[Name{ResourceQuotas, parsed.Namespace, parsed.Name}] = true
		if !found {
			delete(q.of[parsed.Namespace], parsed.Name)
			if len(q.of[parsed.Namespace]) == 0 {
				delete(q.of, parsed.Namespace)
			}
			q.limits.RemoveLimit(parsed.Namespace, parsed.Name)
			q.reserved.RemoveLimit(parsed.Namespace, parsed.Name)
			return nil
		}
		v, err := readQuota(kv, api.DecodeResourceQuota, func(o *api.ResourceQuota) *api.ObjectMeta { return &o.Metadata })
		if err != nil {
			return err
		}
		q.set(v)
	case record.QuotaForests:
		c.stale[Name{QuotaForests, "", parsed.Name}] = true
		return remakeIn(q.forests, parsed.Name, kv, found, api.DecodeQuotaForest, func(o *api.QuotaForest) *api.ObjectMeta { return &o.Metadata })
	case record.QuotaNamespaces:
		c.stale[Name{QuotaBindings, "", parsed.Name}] = true
		return remakeIn(q.bindings, parsed.Name, kv, found, api.DecodeQuotaBinding, func(o *api.QuotaBinding) *api.ObjectMeta { return &o.Metadata })
	case record.QuotaTrees:
		return c.remakeTree(parsed.Name, kv, found)
	case record.QuotaSeats:
		c.view = nil // no object is out of date, the figures of the trees are
		return c.trees.remakeSeats(resource.TxID(parsed.Name), kv, found)
	case record.QuotaLimits, record.QuotaModes:
	}
	return nil
}

// remakeIn makes one object of a kind from its key, or takes it out.
func remakeIn[T any](
	all map[string]shown.Versioned[T], name string, kv record.KV, found bool,
	decode func([]byte) (*T, *api.Status), meta func(*T) *api.ObjectMeta,
) error {
	delete(all, name)
	if !found {
		return nil
	}
	v, err := readQuota(kv, decode, meta)
	if err == nil {
		all[name] = v
	}
	return err
}

// readQuota reads an object from its key.
func readQuota[T any](kv record.KV, decode func([]byte) (*T, *api.Status), meta func(*T) *api.ObjectMeta) (shown.Versioned[T], error) {
	rec, err := record.Decode[record.Quota](kv.Key, kv.Value)
	if err != nil {
		return shown.Versioned[T]{}, err
	}
	object, status := text.Stored(decode, rec.Document)
	if status != nil {
		return shown.Versioned[T]{}, fmt.Errorf("%s: document: %w", kv.Key, status)
	}
	*meta(object) = charges.MetadataOf(rec, *meta(object), kv.ModRev)
	return shown.Versioned[T]{Object: *object, Revision: kv.ModRev}, nil
}

// set takes a resource quota over.
func (q *cachedQuotas) set(v shown.Versioned[api.ResourceQuota]) {
	r := &cachedQuota{Versioned: v}
	r.hard, r.soft = v.Object.Spec.Limits()
	m := v.Object.Metadata
	if q.of[m.Namespace] == nil {
		q.of[m.Namespace] = map[string]*cachedQuota{}
	}
	q.of[m.Namespace][m.Name] = r
	limit := quota.Limit{Group: m.Namespace, Name: m.Name, Hard: r.hard, Soft: r.soft, PerUser: v.Object.Spec.UserLimits(), Scope: &r.Object.Spec}
	q.limits.SetLimit(limit)
	q.reserved.SetLimit(limit)
}

// entry makes the entry of a resource quota.
func (q *cachedQuotas) entry(r *cachedQuota) entry {
	used := q.limits.Used(r.Object.Metadata.Namespace, r.Object.Metadata.Name)
	shows := shown.ResourceQuota{
		Versioned: r.Versioned, Hard: r.hard, Soft: r.soft, Used: used, Reserved: q.reserved.Used(r.Object.Metadata.Namespace, r.Object.Metadata.Name), Utilization: shown.Utilization(used, r.hard),
		Users: q.limits.UsedByUsers(r.Object.Metadata.Namespace, r.Object.Metadata.Name),
	}
	return &quotaEntry{shows}
}
