package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
)

// requested names what a submission's request id is to make; false without one.
func (s *submission) requested() (record.RequestDigest, record.Request, bool) {
	first, id := s.units[0].Record, s.RequestID
	r := record.Request{Object: first.Path().Key(), UID: string(first.UID), DocumentHash: s.Hash}
	if s.job != nil {
		r.Object, r.UID = record.JobKey(s.job.Record.Namespace, s.job.Record.Name), s.job.Record.UID
	}
	return record.DigestOfRequest(first.Tenant, id), r, id != ""
}

// repetition finds what an earlier request with the submission's id has made:
// the first unit of it. known is false where there was no such request.
func (l *Leader) repetition(s *submission) (u *work.Unit, known bool, status *api.Status) {
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
		if j := l.work.Jobs[s.job.Record.Namespace+"/"+s.job.Record.Name]; j != nil && record.DigestOf(j.Record.UID) == earlier.Object {
			return j.Units[0], true, nil
		}
	} else if u := l.work.Units[first.Path]; u != nil && record.DigestOf(string(u.Record.UID)) == earlier.Object {
		return u, true, nil
	}
	return nil, true, api.Errorf(409, "Idempotency-Key %q was used already, and what it made in its namespace has been deleted since", s.RequestID).Because(api.FailedPrecondition)
}
