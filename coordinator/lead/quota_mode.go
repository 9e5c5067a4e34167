package lead

import (
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file keeps the mode of the quota trees (spec/quota-manager.txt): in
// Maintenance new work is charged to its own group, whatever the quota of the tree.
// A change of the mode moves and ends no unit.

// quotaMode is the mode as the store has it. Without a record the mode is Normal and
// rev is 0.
type quotaMode struct {
	record record.QuotaMode
	rev    resource.Revision
}

// PatchQuotaMode changes the mode for a caller. Its result is the mode.
type PatchQuotaMode struct {
	Patch api.QuotaModePatch
	By    string
}

func (r PatchQuotaMode) serve(l *Leader, c *call) { l.changeQuotas(c, r.judge) }

// judge writes the mode, also where the mode stays: the record then names the new
// reason and its author.
func (r PatchQuotaMode) judge(l *Leader) (w edit.Write, status *api.Status) {
	now := l.quotas.mode
	before := now.object()
	if status := r.Patch.Metadata.Check("the mode of quota trees", before.Metadata); status != nil {
		return w, status
	}
	next := record.QuotaMode{
		UID: now.record.UID, Maintenance: r.Patch.Mode == api.ModeMaintenance,
		Reason: r.Patch.Reason, By: r.By, Since: l.stamp(),
	}
	if now.rev == 0 {
		next.UID = l.uid("quotamode")
	}
	w = edit.Write{Op: record.Put(record.QuotaModeKey, record.MustEncode(next)), Rev: now.rev, UID: next.UID}
	w.WakesNobody = !next.Maintenance // trees have less room than before, or as much
	w.Landed = func(rev resource.Revision) {
		l.quotas.mode = quotaMode{next, rev}
		must(l.quotas.applyMode())
		l.out.info("quota_mode", "mode", r.Patch.Mode, "by", r.By, "reason", r.Patch.Reason)
		if !next.Maintenance {
			l.reportOverQuota()
		}
	}
	w.Result = func() any { return l.quotas.mode.object() }
	return w, nil
}

func (m quotaMode) object() *api.QuotaMode {
	o := QuotaModeOf(m.record, m.rev)
	return &o
}

// loadQuotaMode takes the mode of the store. The trees follow once all transactions
// are charged (applyMode).
func (v *view) loadQuotaMode(kv record.KV) error {
	rec, err := record.Decode[record.QuotaMode](kv.Key, kv.Value)
	if err == nil {
		v.quotas.mode = quotaMode{rec, kv.ModRev}
	}
	return err
}

// applyMode gives the trees the mode of the record.
func (q *quotas) applyMode() error {
	mode := quota.Normal
	if q.mode.record.Maintenance {
		mode = quota.Maintenance
	}
	return q.trees.SetMode(mode)
}

// chargeAgain charges a committed unit to a tree that has no room for the unit: in
// Maintenance to its group, as an arrival is, else where the group may borrow.
func (q *quotas) chargeAgain(tree, path string) (quota.Result, error) {
	if q.mode.record.Maintenance {
		return q.trees.Allocate(tree, path)
	}
	return q.trees.Restore(tree, path)
}

// QuotaModeOf shows the mode of a record; the zero record at revision 0 is that of a
// cluster whose mode was never changed.
func QuotaModeOf(rec record.QuotaMode, rev resource.Revision) api.QuotaMode {
	m := api.QuotaMode{APIVersion: api.APIVersion, Kind: api.KindQuotaMode, Mode: api.ModeNormal, Reason: rec.Reason, By: rec.By, Since: rec.Since}
	if rec.Maintenance {
		m.Mode = api.ModeMaintenance
	}
	m.Metadata = api.ObjectMeta{UID: rec.UID, ResourceVersion: strconv.FormatInt(int64(rev), 10)}
	return m
}

// GetQuotaMode asks for the mode.
type GetQuotaMode struct{}

func (GetQuotaMode) serve(l *Leader, c *call) {
	c.answer(l.quotas.mode.object(), nil)
}
