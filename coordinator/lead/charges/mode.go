package charges

import (
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// quotaMode is the mode as the store has it. Without a record the mode is Normal and
// rev is 0.
type quotaMode struct {
	record record.QuotaMode
	rev    resource.Revision
}

// ModeRecord is the mode of the trees as the store has it; the zero record at revision 0
// is Normal.
func (q *Book) ModeRecord() (record.QuotaMode, resource.Revision) { return q.mode.record, q.mode.rev }

// SetMode takes over the mode that the store has at rev, and gives it to the trees.
func (q *Book) SetMode(rec record.QuotaMode, rev resource.Revision) {
	q.mode = quotaMode{rec, rev}
	mustHold(q.ApplyMode())
}

// ShowMode shows the mode.
func (q *Book) ShowMode() *api.QuotaMode {
	o := QuotaModeOf(q.mode.record, q.mode.rev)
	return &o
}

// loadMode takes the mode of the store. The trees follow once all transactions
// are charged (ApplyMode).
func (q *Book) loadMode(kv record.KV) error {
	rec, err := record.Decode[record.QuotaMode](kv.Key, kv.Value)
	if err == nil {
		q.mode = quotaMode{rec, kv.ModRev}
	}
	return err
}

// ApplyMode gives the trees the mode of the record.
func (q *Book) ApplyMode() error {
	mode := quota.Normal
	if q.mode.record.Maintenance {
		mode = quota.Maintenance
	}
	return q.trees.SetMode(mode)
}

// chargeAgain charges a committed unit to a tree that has no room for the unit: in
// Maintenance to its group, as an arrival is, else where the group may borrow.
func (q *Book) chargeAgain(tree, path string) (quota.Result, error) {
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
