package lead

import (
	"crypto/sha256"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file remembers request ids (Idempotency-Key). They stay for a day, so each
// is kept in a few bytes without pointers: what a request made is found by the
// name in the repeated document, and known by its UID.

// RequestKey stands for a tenant's request id.
type RequestKey [16]byte

func RequestKeyOf(tenant resource.TenantID, id string) RequestKey {
	return digest(string(tenant) + "/" + id)
}

// digest stands for a text where only equality counts.
func digest(s string) [16]byte {
	sum := sha256.Sum256([]byte(s))
	return [16]byte(sum[:16])
}

// Remembered is what a request id made.
type Remembered struct {
	hash   [16]byte // digest of the document's hash
	object [16]byte // digest of the object's UID
}

func newRequest(r record.Request) Remembered {
	return Remembered{hash: digest(r.DocumentHash), object: digest(r.UID)}
}

// requests are the request ids of a day. The zero value is empty.
//
// Invariant: each key of byKey is in added, with the time of its last remember.
type requests struct {
	byKey map[RequestKey]aged
	added []expiry // ascending by at
	head  int      // entries of added that have been dealt with
}

type aged struct {
	Remembered
	at int64 // seconds of Unix time
}

type expiry struct {
	key RequestKey
	at  int64
}

func (r *requests) get(k RequestKey) (Remembered, bool) {
	a, ok := r.byKey[k]
	return a.Remembered, ok
}

func (r *requests) remember(k RequestKey, made Remembered, now time.Time) {
	if r.byKey == nil {
		r.byKey = map[RequestKey]aged{}
	}
	at := now.Unix()
	r.byKey[k] = aged{made, at}
	r.added = append(r.added, expiry{k, at})
}

func (r *requests) forget(k RequestKey) { delete(r.byKey, k) }

// expire forgets what was remembered before a time.
func (r *requests) expire(before time.Time) {
	for r.head < len(r.added) && r.added[r.head].at < before.Unix() {
		e := r.added[r.head]
		if r.byKey[e.key].at == e.at {
			delete(r.byKey, e.key)
		}
		r.head++
	}
	if r.head > len(r.added)/2 {
		r.added = append([]expiry(nil), r.added[r.head:]...)
		r.head = 0
	}
}

// requested names what a submission's request id is to make; false without one.
func (s *submission) requested() (RequestKey, record.Request, bool) {
	first, id := s.units[0].record, s.RequestID
	r := record.Request{Object: first.Path().Key(), UID: string(first.UID), DocumentHash: s.Hash}
	if s.job != nil {
		r.Object, r.UID = record.JobKey(s.job.record.Namespace, s.job.record.Name), s.job.record.UID
	}
	return RequestKeyOf(first.Tenant, id), r, id != ""
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
	if earlier.hash != digest(rec.DocumentHash) {
		return nil, true, api.Errorf(409, "Idempotency-Key %q was used for another document", s.RequestID).Because(api.FailedPrecondition)
	}
	first := s.units[0]
	if s.job != nil {
		if j := l.jobs[s.job.record.Namespace+"/"+s.job.record.Name]; j != nil && digest(j.record.UID) == earlier.object {
			return j.units[0], true, nil
		}
	} else if u := l.units[first.path]; u != nil && digest(string(u.record.UID)) == earlier.object {
		return u, true, nil
	}
	return nil, true, api.Errorf(409, "Idempotency-Key %q was used already, and what it made in its namespace has been deleted since", s.RequestID).Because(api.FailedPrecondition)
}
