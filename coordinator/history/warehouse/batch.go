package warehouse

import (
	"context"
	"fmt"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// batch is a history.Batch as rows, with one row for each key.
type batch struct {
	single   []*rows // of tables without children
	cuts     []history.Cut
	empty    []history.Slice // their rows go
	families []family
}

// family are rows of a parent table and, made once it is known which of them are
// stored, those of its children.
type family struct {
	parents  *rows
	children func(written map[string]bool) []*rows
}

// convert makes rows of a batch.
func convert(b history.Batch) batch {
	out := batch{cuts: b.Cuts}
	single := func(t *table) *rows {
		r := &rows{table: t}
		out.single = append(out.single, r)
		return r
	}
	out.families = append(out.families, nodeFamily(b), unitFamily(b), grantFamily(b), preemptionFamily(b))
	r := single(conditionChanges)
	for _, c := range latestOf(b.Conditions, func(c history.Condition) string { return fmt.Sprint(c.Node, "\x00", c.Type, "\x00", c.Revision) }, noRevision) {
		conditionRow(r, c)
	}
	r = single(jobs)
	for _, j := range latestOf(b.Jobs, func(j history.Job) string { return j.UID }, func(j history.Job) resource.Revision { return j.Revision }) {
		jobRow(r, j)
	}
	r = single(queueHistory)
	for _, x := range latestOf(b.Waits, waitKey, func(x history.Wait) resource.Revision { return x.Revision }) {
		waitRow(r, x)
	}
	r = single(quotas)
	for _, q := range latestOf(b.Quotas, quotaKey, func(q history.Quota) resource.Revision { return q.Revision }) {
		quotaRow(r, q)
	}
	r = single(auditLog)
	for _, a := range latestOf(b.Audit, func(a history.Audit) string { return a.ID }, func(a history.Audit) resource.Revision { return a.Revision }) {
		auditRow(r, a)
	}
	slices, dirty := single(usageSlices), single(usageDirty)
	marked := map[string]bool{}
	for _, s := range lastOf(b.Slices, sliceKey) {
		if sliceRow(slices, s, b.Upto); !s.To.After(s.From) {
			out.empty = append(out.empty, s)
		}
		key := fmt.Sprint(bounded(s.From).Unix()/3600, "\x00", s.Tenant, "\x00", s.Namespace, "\x00", s.Slot, "\x00", s.GPUModel)
		if !marked[key] {
			marked[key] = true
			dirtyRow(dirty, s)
		}
	}
	r = single(gaps)
	for _, g := range b.Gaps {
		gapRow(r, g)
	}
	return out
}

func nodeFamily(b history.Batch) family {
	kept := latestOf(b.Nodes, func(n history.Node) resource.NodeID { return n.ID }, func(n history.Node) resource.Revision { return n.Revision })
	parents := &rows{table: nodes}
	for _, n := range kept {
		nodeRow(parents, n, b.At)
	}
	return family{parents, func(written map[string]bool) []*rows {
		capacity := &rows{table: nodeCapacity}
		for _, n := range kept {
			if written[string(n.ID)] {
				nodeCapacityRows(capacity, n)
			}
		}
		return []*rows{capacity}
	}}
}

func unitFamily(b history.Batch) family {
	kept := latestOf(b.Units, func(u history.Unit) resource.UnitUID { return u.UID }, func(u history.Unit) resource.Revision { return u.Revision })
	keepFirst(kept, b.Units)
	parents := &rows{table: allocations}
	for _, u := range kept {
		unitRow(parents, u, b.At)
	}
	return family{parents, func(written map[string]bool) []*rows {
		requests := &rows{table: allocationRequests}
		for _, u := range kept {
			if written[string(u.UID)] {
				requestRows(requests, u)
			}
		}
		return []*rows{requests}
	}}
}

// keepFirst gives each unit the first commit and start of all its rows in the batch.
func keepFirst(kept, all []history.Unit) {
	if len(kept) == len(all) {
		return
	}
	place := make(map[resource.UnitUID]int, len(kept))
	for i, u := range kept {
		place[u.UID] = i
	}
	for _, u := range all {
		k := &kept[place[u.UID]]
		k.Scheduled, k.Started = first(k.Scheduled, u.Scheduled), first(k.Started, u.Started)
	}
}

func grantFamily(b history.Batch) family {
	kept := latestOf(b.Grants, func(g history.Grant) resource.TxID { return g.Tx }, func(g history.Grant) resource.Revision { return g.Revision })
	parents := &rows{table: grants}
	for _, g := range kept {
		grantRow(parents, g)
	}
	return family{parents, func(written map[string]bool) []*rows {
		members, resources := &rows{table: grantMembers}, &rows{table: grantResources}
		for _, g := range kept {
			if written[string(g.Tx)] {
				memberRows(members, resources, g)
			}
		}
		return []*rows{members, resources}
	}}
}

func preemptionFamily(b history.Batch) family {
	kept := latestOf(b.Preemptions, func(p history.Preemption) resource.TxID { return p.Tx }, func(p history.Preemption) resource.Revision { return p.Revision })
	parents := &rows{table: preemptions}
	for _, p := range kept {
		preemptionRow(parents, p)
	}
	return family{parents, func(written map[string]bool) []*rows {
		onNodes, freed := &rows{table: preemptionNodes}, &rows{table: preemptionFreed}
		for _, p := range kept {
			if written[string(p.Tx)] {
				preemptionDetailRows(onNodes, freed, p)
			}
		}
		return []*rows{onNodes, freed}
	}}
}

// write writes all rows.
func (b batch) write(ctx context.Context, t *transaction) error {
	for _, f := range b.families {
		stored, err := t.putParents(ctx, f.parents)
		if err != nil {
			return err
		}
		for _, children := range f.children(stored.written) {
			if err := t.replaceChildren(ctx, children, stored); err != nil {
				return err
			}
		}
	}
	if err := t.cut(ctx, b.cuts); err != nil {
		return fmt.Errorf("cut slices: %w", err)
	}
	for _, r := range b.single {
		if err := t.put(ctx, r); err != nil {
			return err
		}
	}
	return t.remove(ctx, b.empty)
}

// monthly are the rows of the tables that are kept by month.
func (b batch) monthly() (of []*rows) {
	for _, r := range b.single {
		if r.month != "" {
			of = append(of, r)
		}
	}
	return of
}

func waitKey(w history.Wait) string { return fmt.Sprint(w.Unit, "\x00", bounded(w.Since).UnixMilli()) }

func quotaKey(q history.Quota) string {
	return fmt.Sprint(q.Namespace, "\x00", q.Name, "\x00", q.Slot, "\x00", bounded(q.From).UnixMilli())
}

func sliceKey(s history.Slice) string {
	return fmt.Sprint(s.Tx, "\x00", s.Member, "\x00", s.Slot, "\x00", bounded(s.From).UnixMilli())
}

func noRevision[R any](R) resource.Revision { return 0 }

func builtInNames() (names []resource.Name) {
	for _, e := range registry.BuiltIn() {
		names = append(names, e.Name)
	}
	return names
}
