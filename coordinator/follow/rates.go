package follow

import (
	"maps"
	"strings"

	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// rates are the requests in a minute of the tenants that have a limit of their own.
// The value is immutable: each request reads it without a lock, and a change replaces
// it.
type rates map[resource.TenantID]int

// RequestsPerMinute returns the tenant's own limit of requests, as far as this
// coordinator has followed the store; 0 for a tenant without one.
func (f *Follower) RequestsPerMinute(tenant resource.TenantID) int {
	if r := f.rates.Load(); r != nil {
		return (*r)[tenant]
	}
	return 0
}

// Live is the number of coordinators that are live, as far as this coordinator has
// followed the store: those whose candidacy has not expired.
func (f *Follower) Live() int { return int(f.live.Load()) }

// noteRate takes the limit in a key that has changed; kv is nil for a key that was
// deleted. f.mu is held.
func (f *Follower) noteRate(key string, kv *record.KV) {
	if !strings.HasPrefix(key, record.TenantsPrefix) {
		return
	}
	name, err := record.ParseTenantKey(key)
	if err != nil {
		return
	}
	n := 0
	if kv != nil {
		n = f.rateIn(*kv)
	}
	if n == f.RequestsPerMinute(resource.TenantID(name)) {
		return
	}
	next := rates{}
	if now := f.rates.Load(); now != nil {
		next = maps.Clone(*now)
	}
	if next[resource.TenantID(name)] = n; n == 0 {
		delete(next, resource.TenantID(name))
	}
	f.rates.Store(&next)
}

// rateIn reads the limit of a tenant. An object that cannot be read has none.
func (f *Follower) rateIn(kv record.KV) int {
	t, err := edit.Tenants.Read(kv)
	if err != nil {
		f.log.Error("tenant_unreadable", "key", kv.Key, "error", err)
		return 0
	}
	return t.Object.Spec.RequestsPerMinute
}
