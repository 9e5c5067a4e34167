package lead

import (
	"cmp"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file remembers request ids (Idempotency-Key). They stay for a day, so each
// is kept in a few bytes without pointers: what a request made is found by the
// name in the repeated document, and known by its UID.

// mostRequestIDs bounds the request ids of one tenant in a day: 11 in a second around the
// clock, in 150 MB of a coordinator's heap and as much of the store.
const mostRequestIDs = 1_000_000

// requests are the request ids of a day. The zero value is empty.
//
// Invariant: each key of byKey is in added, with the time of its last remember.
// Invariant: ofTenant counts the keys of byKey by their tenant, and has no zeros.
type requests struct {
	byKey    map[record.RequestDigest]aged
	ofTenant map[record.TenantDigest]int
	most     int      // of one tenant; 0 = mostRequestIDs
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

func (r *requests) get(k record.RequestDigest) (record.Remembered, bool) {
	a, ok := r.byKey[k]
	return a.Remembered, ok
}

func (r *requests) remember(k record.RequestDigest, made record.Remembered, now time.Time) {
	if r.byKey == nil {
		r.byKey, r.ofTenant = map[record.RequestDigest]aged{}, map[record.TenantDigest]int{}
	}
	if _, known := r.byKey[k]; !known {
		r.ofTenant[k.Tenant()]++
	}
	at := now.Unix()
	r.byKey[k] = aged{made, at}
	r.added = append(r.added, expiry{k, at})
}

func (r *requests) forget(k record.RequestDigest) {
	if _, known := r.byKey[k]; !known {
		return
	}
	delete(r.byKey, k)
	if r.ofTenant[k.Tenant()]--; r.ofTenant[k.Tenant()] == 0 {
		delete(r.ofTenant, k.Tenant())
	}
}

// refuses is the refusal of a tenant's further request id, nil where there is room for
// the id.
func (r *requests) refuses(k record.RequestDigest, tenant resource.TenantID) *api.Status {
	most := cmp.Or(r.most, mostRequestIDs)
	if has := r.ofTenant[k.Tenant()]; has >= most {
		return api.Errorf(429, "tenant %s has used %d Idempotency-Keys within a day and may use %d: submit without the key, or wait until the oldest are a day old", tenant, has, most).Because(api.TooManyObjects)
	}
	return nil
}

// expire forgets what was remembered before a time.
func (r *requests) expire(before time.Time) {
	for r.head < len(r.added) && r.added[r.head].at < before.Unix() {
		e := r.added[r.head]
		if r.byKey[e.key].at == e.at {
			r.forget(e.key)
		}
		r.head++
	}
	if r.head > len(r.added)/2 {
		r.added = append([]expiry(nil), r.added[r.head:]...)
		r.head = 0
	}
}

// requested names what a submission's request id is to make; false without one.
func (s *submission) requested() (record.RequestDigest, record.Request, bool) {
	first, id := s.units[0].record, s.RequestID
	r := record.Request{Object: first.Path().Key(), UID: string(first.UID), DocumentHash: s.Hash}
	if s.job != nil {
		r.Object, r.UID = record.JobKey(s.job.record.Namespace, s.job.record.Name), s.job.record.UID
	}
	return record.DigestOfRequest(first.Tenant, id), r, id != ""
}

// repetition finds what an earlier request with the submission's id has made:
// the first unit of it. known is false where there was no such request.
func (l *Leader) repetition(s *submission) (u *unit, known bool, status *api.Status) {
	key, rec, ok := s.requested()
	if !ok {
		return nil, false, nil
	}
	earlier, ok := l.requests.get(key)
	if !ok {
		return nil, false, nil
	}
	if earlier.Document != record.DigestOf(rec.DocumentHash) {
		return nil, true, api.Errorf(409, "Idempotency-Key %q was used for another document", s.RequestID).Because(api.FailedPrecondition)
	}
	first := s.units[0]
	if s.job != nil {
		if j := l.jobs[s.job.record.Namespace+"/"+s.job.record.Name]; j != nil && record.DigestOf(j.record.UID) == earlier.Object {
			return j.units[0], true, nil
		}
	} else if u := l.units[first.path]; u != nil && record.DigestOf(string(u.record.UID)) == earlier.Object {
		return u, true, nil
	}
	return nil, true, api.Errorf(409, "Idempotency-Key %q was used already, and what it made in its namespace has been deleted since", s.RequestID).Because(api.FailedPrecondition)
}
