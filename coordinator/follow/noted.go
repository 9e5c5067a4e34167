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
// nothing else. of points to the key's record, nil where it was not decoded yet; noteChange
// sets it where it decodes the record of a unit. f.mu is held.
func (f *Follower) noteChange(kv *record.KV, of *any) bool {
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
		u, known := (*of).(*record.Unit)
		if !known {
			read, err := record.Decode[record.Unit](kv.Key, kv.Value)
			if err != nil {
				return false // it is refused where it is shown
			}
			u = &read
			*of = u
		}
		if u.Made != nil {
			f.noted(record.Submission(u.Made, "allocations", u.Namespace, u.Name))
		}
	case strings.HasPrefix(kv.Key, record.JobsPrefix):
		if j, err := record.Decode[record.Job](kv.Key, kv.Value); err == nil && j.Made != nil {
			f.noted(record.Submission(j.Made, "jobs", j.Namespace, j.Name))
		}
	}
	return false
}

// noteRestored takes the last restoration of the store, or the zero value, and calls
// reborn for a new restoration. f.mu is held.
func (f *Follower) noteRestored(kv record.KV) {
	mark := ""
	if kv.ModRev != 0 {
		r, err := record.Decode[record.Restored](kv.Key, kv.Value)
		if err != nil {
			f.log.Error("restoration_unreadable", "key", kv.Key, "error", err)
			return
		}
		mark = r.Mark
	}
	fresh := mark != f.restored && f.revision != 0
	f.restored = mark
	if fresh && f.reborn != nil {
		f.reborn()
	}
}

// isOutdated reports whether a node has registered last before the store was restored.
// f.mu is held.
func (f *Follower) isOutdated(identity record.KV) bool {
	if f.restored == "" || identity.ModRev == 0 {
		return false
	}
	i, err := record.Decode[record.NodeIdentity](identity.Key, identity.Value)
	return err == nil && i.Restored != f.restored
}
