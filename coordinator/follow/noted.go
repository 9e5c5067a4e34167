package follow

import (
	"strings"

	"github.com/musterd/muster/coordinator/record"
)

// This file finds the changes of persons among the keys: entries of the audit, and the
// callers in the records of new work.

// isApart reports whether a key is kept apart from the keys that objects are made of:
// there are very many of these.
func isApart(key string) bool {
	return strings.HasPrefix(key, record.RequestsPrefix) || strings.HasPrefix(key, record.AuditPrefix)
}

// noteChange tells of the change that a key notes, and reports whether the key is
// nothing else. f.mu is held.
func (f *Follower) noteChange(kv *record.KV) bool {
	switch {
	case strings.HasPrefix(kv.Key, record.AuditPrefix):
		a, err := record.Decode[record.Audit](kv.Key, kv.Value)
		if err != nil {
			f.log.Error("audit_entry_unreadable", "key", kv.Key, "error", err)
		} else if f.noted != nil {
			f.noted(a)
		}
		return true
	case f.noted == nil:
	case kv.CreateRev != kv.ModRev && !f.loading: // the submission was noted before
	case strings.HasPrefix(kv.Key, record.UnitsPrefix):
		if u, err := record.Decode[record.Unit](kv.Key, kv.Value); err == nil && u.Made != nil {
			f.noted(record.Submission(u.Made, "allocations", u.Namespace, u.Name))
		}
	case strings.HasPrefix(kv.Key, record.JobsPrefix):
		if j, err := record.Decode[record.Job](kv.Key, kv.Value); err == nil && j.Made != nil {
			f.noted(record.Submission(j.Made, "jobs", j.Namespace, j.Name))
		}
	}
	return false
}
