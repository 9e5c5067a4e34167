package mem

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

func (r *Rows) clone() Rows {
	return Rows{
		Nodes: maps.Clone(r.Nodes), Jobs: maps.Clone(r.Jobs), Units: maps.Clone(r.Units), Grants: maps.Clone(r.Grants), Waits: maps.Clone(r.Waits),
		Quotas: maps.Clone(r.Quotas), Preemptions: maps.Clone(r.Preemptions), Conditions: maps.Clone(r.Conditions), Audit: maps.Clone(r.Audit),
		Slices: maps.Clone(r.Slices), Slots: maps.Clone(r.Slots), Gaps: slices.Clone(r.Gaps),
	}
}

func revertIn[R any](rows map[string]Kept[R], to resource.Revision, revision func(R) resource.Revision) {
	for key, kept := range rows {
		if revision(kept.Row) > to {
			kept.Reverted = true
			rows[key] = kept
		}
	}
}

func (r *Rows) revert(to resource.Revision) {
	revertIn(r.Nodes, to, func(x history.Node) resource.Revision { return x.Revision })
	revertIn(r.Jobs, to, func(x history.Job) resource.Revision { return x.Revision })
	revertIn(r.Units, to, func(x history.Unit) resource.Revision { return x.Revision })
	revertIn(r.Grants, to, func(x history.Grant) resource.Revision { return x.Revision })
	revertIn(r.Waits, to, func(x history.Wait) resource.Revision { return x.Revision })
	revertIn(r.Quotas, to, func(x history.Quota) resource.Revision { return x.Revision })
	revertIn(r.Preemptions, to, func(x history.Preemption) resource.Revision { return x.Revision })
	revertIn(r.Conditions, to, func(x history.Condition) resource.Revision { return x.Revision })
	revertIn(r.Audit, to, func(x history.Audit) resource.Revision { return x.Revision })
	revertIn(r.Slots, to, func(x history.Slot) resource.Revision { return x.Revision })
}

// pick returns the rows that are not reverted, and that are wanted or have no end, in the
// order of their keys.
func pick[R any](rows map[string]Kept[R], wanted map[string]bool, open func(R) bool) (list []R) {
	for _, key := range slices.SortedFunc(maps.Keys(rows), cmp.Compare) {
		if kept := rows[key]; !kept.Reverted && (wanted[key] || open(kept.Row)) {
			list = append(list, kept.Row)
		}
	}
	return list
}

// keysOf are the keys of some rows.
func keysOf[R any](rows []R, key func(R) string) map[string]bool {
	keys := make(map[string]bool, len(rows))
	for _, row := range rows {
		keys[key(row)] = true
	}
	return keys
}

func (r *Rows) read(of history.Batch) (b history.Batch) {
	b.Nodes = pick(r.Nodes, keysOf(of.Nodes, func(x history.Node) string { return string(x.ID) }), func(x history.Node) bool { return x.Deleted.IsZero() })
	b.Jobs = pick(r.Jobs, keysOf(of.Jobs, func(x history.Job) string { return x.UID }), func(x history.Job) bool { return x.Ended.IsZero() })
	b.Units = pick(r.Units, keysOf(of.Units, func(x history.Unit) string { return string(x.UID) }), func(x history.Unit) bool { return x.Ended.IsZero() })
	b.Grants = pick(r.Grants, keysOf(of.Grants, func(x history.Grant) string { return string(x.Tx) }), func(x history.Grant) bool { return x.Ended.IsZero() })
	b.Waits = pick(r.Waits, keysOf(of.Waits, waitKey), func(x history.Wait) bool { return x.Until.IsZero() })
	b.Preemptions = pick(r.Preemptions, keysOf(of.Preemptions, func(x history.Preemption) string { return string(x.Tx) }), history.Preemption.IsOpen)
	b.Audit = pick(r.Audit, keysOf(of.Audit, func(x history.Audit) string { return x.ID }), func(history.Audit) bool { return false })
	b.Conditions, b.Slices = r.readConditions(of), r.readSlices(of)
	b.Quotas = pick(r.Quotas, keysOf(of.Quotas, quotaKey), func(x history.Quota) bool { return x.To.IsZero() })
	return b
}

// readConditions are the newest rows of each type of the nodes of a batch.
func (r *Rows) readConditions(of history.Batch) (list []history.Condition) {
	nodes := keysOf(of.Nodes, func(x history.Node) string { return string(x.ID) })
	all := pick(r.Conditions, nil, func(x history.Condition) bool { return nodes[string(x.Node)] })
	return history.NewestConditions(all)
}

// readSlices are the slices of the transactions of a batch's slices, from the earliest of
// those on.
func (r *Rows) readSlices(of history.Batch) (list []history.Slice) {
	txs := keysOf(of.Slices, func(x history.Slice) string { return string(x.Tx) })
	from := history.EarliestSlice(of.Slices)
	for _, key := range slices.Sorted(maps.Keys(r.Slices)) {
		if s := r.Slices[key]; txs[string(s.Tx)] && !s.From.Before(from) {
			list = append(list, s)
		}
	}
	return list
}
