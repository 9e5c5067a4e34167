package desk

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// A request id (Idempotency-Key) is kept for a day, in a few bytes without pointers: the name
// in the repeated document finds the object that the request made, and the UID proves the
// identity of the object.

// MostRequestIDs bounds the request ids of a tenant in a day: 11 in a second around the
// clock, in 150 MB of a coordinator's heap and as much of the store.
const MostRequestIDs = 1_000_000

// Memory are the request ids of a day.
//
// Invariant: each key of byKey is in added, with the time of its last Remember.
// Invariant: ofTenant counts the keys of byKey by their tenant, each above zero.
type Memory struct {
	byKey    map[record.RequestDigest]aged
	ofTenant map[record.TenantDigest]int
	most     int      // of a tenant
	added    []expiry // ascending by at
	head     int      // entries of added that have been dealt with
}

type aged struct {
	record.Remembered
	at int64 // seconds of Unix time
}

type expiry struct {
	key record.RequestDigest
	at  int64
}

// NewMemory is an empty memory. A tenant has at most so many request ids.
func NewMemory(most int) Memory {
	return Memory{byKey: map[record.RequestDigest]aged{}, ofTenant: map[record.TenantDigest]int{}, most: most}
}

// Get finds the object of a request.
func (r *Memory) Get(k record.RequestDigest) (record.Remembered, bool) {
	a, ok := r.byKey[k]
	return a.Remembered, ok
}

// Remember keeps the object of a request, for a day from now.
func (r *Memory) Remember(k record.RequestDigest, made record.Remembered, now time.Time) {
	if _, known := r.byKey[k]; !known {
		r.ofTenant[k.Tenant()]++
	}
	at := now.Unix()
	r.byKey[k] = aged{made, at}
	r.added = append(r.added, expiry{k, at})
}

// Forget removes a request that has made no object.
func (r *Memory) Forget(k record.RequestDigest) {
	if _, known := r.byKey[k]; !known {
		return
	}
	delete(r.byKey, k)
	if r.ofTenant[k.Tenant()]--; r.ofTenant[k.Tenant()] == 0 {
		delete(r.ofTenant, k.Tenant())
	}
}

// Refuses is the refusal of a tenant's further request id, nil where there is room for
// the id.
func (r *Memory) Refuses(k record.RequestDigest, tenant resource.TenantID) *api.Status {
	if has := r.ofTenant[k.Tenant()]; has >= r.most {
		return api.Errorf(429, "tenant %s has used %d Idempotency-Keys within a day and may use %d: submit without the key, or wait until the oldest are a day old", tenant, has, r.most).Because(api.TooManyObjects)
	}
	return nil
}

// Expire forgets the requests from before a time.
func (r *Memory) Expire(before time.Time) {
	for r.head < len(r.added) && r.added[r.head].at < before.Unix() {
		e := r.added[r.head]
		if r.byKey[e.key].at == e.at {
			r.Forget(e.key)
		}
		r.head++
	}
	if r.head > len(r.added)/2 {
		r.added = append([]expiry(nil), r.added[r.head:]...)
		r.head = 0
	}
}
