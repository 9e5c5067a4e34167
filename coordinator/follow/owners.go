package follow

import (
	"maps"
	"strings"

	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// owners are the tenants of the namespaces with an object. The value is immutable:
// each request reads it without a lock, and a change replaces it.
type owners struct {
	of map[string]resource.TenantID
	// configured: the namespaces of the configuration have become objects.
	configured bool
}

// Owner returns the tenant of a namespace with an object, as far as this coordinator
// has followed the store. configured reports whether the configuration has no say
// in the others any more.
func (f *Follower) Owner(namespace string) (tenant resource.TenantID, found, configured bool) {
	o := f.owners.Load()
	if o == nil {
		return "", false, false
	}
	tenant, found = o.of[namespace]
	return tenant, found, o.configured
}

// noteOwner takes the owner in a key that has changed; kv is nil for a key that was
// deleted. f.mu is held.
func (f *Follower) noteOwner(key string, kv *record.KV) {
	configured := key == record.ConfiguredKey
	if !configured && !strings.HasPrefix(key, record.NamespacesPrefix) {
		return
	}
	next := owners{of: map[string]resource.TenantID{}}
	if now := f.owners.Load(); now != nil {
		next.of, next.configured = maps.Clone(now.of), now.configured
	}
	if configured {
		next.configured = kv != nil
	} else if name, err := record.ParseNamespaceKey(key); err == nil {
		delete(next.of, name)
		if kv != nil {
			next.of[name] = f.ownerIn(*kv, name)
		}
	}
	f.owners.Store(&next)
}

// ownerIn reads the owner of a namespace. An object that cannot be read belongs to
// no tenant.
func (f *Follower) ownerIn(kv record.KV, name string) resource.TenantID {
	n, err := edit.Namespaces.Read(kv)
	if err != nil {
		f.log.Error("namespace_unreadable", "key", kv.Key, "error", err)
		return ""
	}
	return edit.OwnerOf(&n.Object)
}
