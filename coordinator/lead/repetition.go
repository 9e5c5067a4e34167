package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

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
	earlier, ok := l.requests.Get(key)
	if !ok {
		return nil, false, nil
	}
	if earlier.Document != record.DigestOf(rec.DocumentHash) {
		return nil, true, api.Errorf(409, "Idempotency-Key %q was used for another document", s.RequestID).Because(api.FailedPrecondition)
	}
	first := s.units[0]
	if s.job != nil {
		if j := l.work.jobs[s.job.record.Namespace+"/"+s.job.record.Name]; j != nil && record.DigestOf(j.record.UID) == earlier.Object {
			return j.units[0], true, nil
		}
	} else if u := l.work.units[first.path]; u != nil && record.DigestOf(string(u.record.UID)) == earlier.Object {
		return u, true, nil
	}
	return nil, true, api.Errorf(409, "Idempotency-Key %q was used already, and what it made in its namespace has been deleted since", s.RequestID).Because(api.FailedPrecondition)
}
