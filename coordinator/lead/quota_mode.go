package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file keeps the mode of the quota trees (spec/quota-manager.txt): in
// Maintenance new work is charged to its own group, whatever the quota of the tree.
// A change of the mode moves and ends no unit.

// PatchQuotaMode changes the mode for a caller. Its result is the mode.
type PatchQuotaMode struct {
	Patch api.QuotaModePatch
	By    string
}

func (r PatchQuotaMode) serve(l *Leader, c *desk.Call) { l.changeQuotas(c, r.judge) }

// judge writes the mode, also where the mode stays: the record then names the new
// reason and its author.
func (r PatchQuotaMode) judge(l *Leader) (w edit.Write, status *api.Status) {
	now, rev := l.quotas.ModeRecord()
	if status := r.Patch.Metadata.Check("the mode of quota trees", l.quotas.ShowMode().Metadata); status != nil {
		return w, status
	}
	next := record.QuotaMode{
		UID: now.UID, Maintenance: r.Patch.Mode == api.ModeMaintenance,
		Reason: r.Patch.Reason, By: r.By, Since: l.post.Stamp(),
	}
	if rev == 0 {
		next.UID = l.post.UID("quotamode")
	}
	w = edit.Write{Op: record.Put(record.QuotaModeKey, record.MustEncode(next)), Rev: rev, UID: next.UID}
	w.WakesNobody = !next.Maintenance // trees have less room than before, or as much
	w.Landed = func(rev resource.Revision) {
		l.quotas.SetMode(next, rev)
		l.post.Info("quota_mode", "mode", r.Patch.Mode, "by", r.By, "reason", r.Patch.Reason)
		if !next.Maintenance {
			l.reportOverQuota()
		}
	}
	w.Result = func() any { return l.quotas.ShowMode() }
	return w, nil
}
