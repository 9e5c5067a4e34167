package warehouse

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// Read returns the rows of nodes, jobs, units, grants, waits, quotas and preemptions that
// the history has under the keys of a batch, and all of them without an end; the audit
// under its keys; the newest conditions of its nodes; and the slices of the transactions
// of its slices, from the earliest of those on. Reverted rows are left out, and so is an
// amount of 0 in a capacity or a request. All rows are those of one moment.
func (w *Warehouse) Read(ctx context.Context, of history.Batch) (history.Batch, error) {
	jobIDs, unitIDs, txIDs, nodeIDs := []string{}, []string{}, []string{}, []string{}
	waits, limits := map[string]bool{}, map[string]bool{}
	waitUnits, quotaNames := []string{}, []string{}
	for _, n := range of.Nodes {
		nodeIDs = append(nodeIDs, string(n.ID))
	}
	for _, j := range of.Jobs {
		jobIDs = append(jobIDs, j.UID)
	}
	for _, u := range of.Units {
		unitIDs = append(unitIDs, string(u.UID))
	}
	for _, g := range of.Grants {
		txIDs = append(txIDs, string(g.Tx))
	}
	for _, x := range of.Waits {
		waits[waitKey(x)] = true
		waitUnits = append(waitUnits, string(x.Unit))
	}
	for _, q := range of.Quotas {
		limits[quotaKey(q)] = true
		quotaNames = append(quotaNames, q.Name)
	}
	evictions, entries := []string{}, []string{}
	for _, p := range of.Preemptions {
		evictions = append(evictions, string(p.Tx))
	}
	for _, a := range of.Audit {
		entries = append(entries, a.ID)
	}
	b, err := w.read(ctx, selection{
		nodes: w.keyed("node_id", "deleted_at", nodeIDs), jobs: w.keyed("job_id", "completed_at", jobIDs), units: w.keyed("allocation_id", "completed_at", unitIDs),
		preemptions: w.among("preemption_id", evictions, " OR c.outcome = '"+history.OutcomeEvicting+"'"), audit: w.among("audit_id", entries, ""),
		conditions: w.newest(nodeIDs), slices: w.sliced(of.Slices),
		grants: w.keyed("tx_id", "ended_at", txIDs), waits: w.keyed("allocation_id", "until_at", waitUnits), quotas: w.keyed("quota_name", "to_at", quotaNames),
	})
	if err != nil {
		return history.Batch{}, err
	}
	b.Waits = filter(b.Waits, func(x history.Wait) bool { return x.Until.IsZero() || waits[waitKey(x)] })
	b.Quotas = filter(b.Quotas, func(q history.Quota) bool { return q.To.IsZero() || limits[quotaKey(q)] })
	return b, nil
}

// All returns all rows that count, slices and samples apart. It takes as much memory as
// the history has.
func (w *Warehouse) All(ctx context.Context) (history.Batch, error) {
	return w.read(ctx, selection{every, every, every, every, every, every, every, every, every, every, true})
}

// condition chooses rows.
type condition struct {
	where string
	args  []any
}

var every = condition{where: "1 = 1"}

// keyed chooses the rows with one of the keys, and those without an end.
func (w *Warehouse) keyed(key, end string, keys []string) condition {
	return w.among(key, keys, fmt.Sprintf(" OR c.%s IS NULL", end))
}

// among chooses the rows with one of the keys, and those of another condition.
func (w *Warehouse) among(key string, keys []string, or string) condition {
	if w.dialect == Postgres {
		return condition{fmt.Sprintf("c.%s = ANY(?)%s", key, or), []any{keys}}
	}
	raw, _ := json.Marshal(keys) // texts alone
	return condition{fmt.Sprintf("c.%s IN (SELECT value FROM json_each(?))%s", key, or), []any{string(raw)}}
}

// newest chooses the newest condition of each type of some nodes.
func (w *Warehouse) newest(nodes []string) condition {
	c := w.among("node_id", nodes, "")
	c.where += ` AND NOT EXISTS (SELECT 1 FROM node_condition_changes x
		WHERE x.reverted = 0 AND x.node_id = c.node_id AND x.condition_type = c.condition_type AND x.resource_version > c.resource_version)`
	return c
}

// sliced chooses the slices of the transactions of some slices, from the earliest of
// those on.
func (w *Warehouse) sliced(of []history.Slice) condition {
	ids := map[string]bool{}
	for _, s := range of {
		ids[string(s.Tx)] = true
	}
	c := w.among("tx_id", slices.Sorted(maps.Keys(ids)), "")
	if c.where += " AND c.from_at >= ?"; len(of) == 0 {
		c.where = "1 = 0"
		c.args = nil
		return c
	}
	c.args = append(c.args, w.dialect.instant(bounded(history.EarliestSlice(of))))
	return c
}

type selection struct {
	nodes, jobs, units, grants, waits, quotas condition
	preemptions, audit, conditions, slices    condition
	gaps                                      bool // all of them
}

// read reads in one transaction that sees one moment.
func (w *Warehouse) read(ctx context.Context, s selection) (b history.Batch, err error) {
	options := &sql.TxOptions{ReadOnly: true}
	if w.dialect == Postgres {
		options.Isolation = sql.LevelRepeatableRead
	}
	tx, err := w.db.BeginTx(ctx, options)
	if err != nil {
		return b, fmt.Errorf("read the history: %w", err)
	}
	defer func() { err = errors.Join(err, ignoreDone(tx.Rollback())) }()
	r := reader{w, ctx, tx, nil}
	b.Nodes = r.nodes(s.nodes)
	b.Jobs = each(&r, jobs, s.jobs, r.job)
	b.Units = r.units(s.units)
	b.Grants = r.grants(s.grants)
	b.Waits = each(&r, queueHistory, s.waits, r.wait)
	b.Quotas = each(&r, quotas, s.quotas, r.quota)
	b.Preemptions = r.preemptions(s.preemptions)
	b.Conditions = each(&r, conditionChanges, s.conditions, r.condition)
	b.Audit = each(&r, auditLog, s.audit, r.audit)
	b.Slices = each(&r, usageSlices, s.slices, r.slice)
	if s.gaps {
		b.Gaps = each(&r, gaps, every, r.gap)
	}
	if r.err != nil {
		return history.Batch{}, fmt.Errorf("read the history: %w", r.err)
	}
	return b, nil
}

// reader reads tables until the first error.
type reader struct {
	w   *Warehouse
	ctx context.Context //nolint:containedctx // of one read
	q   queryer
	err error
}

func (r *reader) scan(t *table, c condition) []stored {
	if r.err != nil {
		return nil
	}
	list, err := r.w.scan(r.ctx, r.q, t, c.where, c.args...)
	r.err = err
	return list
}

// children reads the rows of the parents that a condition chooses.
func (r *reader) children(t *table, c condition) map[string][]stored {
	key := t.columns[0].name
	of := condition{fmt.Sprintf("c.%s IN (SELECT c.%[1]s FROM %s c WHERE c.reverted = 0 AND (%s))", key, t.parent.name, c.where), c.args}
	byParent := map[string][]stored{}
	for _, row := range r.scan(t, of) {
		byParent[row.text(key)] = append(byParent[row.text(key)], row)
	}
	return byParent
}

func each[R any](r *reader, t *table, c condition, of func(stored) R) (list []R) {
	for _, row := range r.scan(t, c) {
		list = append(list, of(row))
	}
	return list
}

func filter[R any](list []R, keep func(R) bool) (kept []R) {
	for _, x := range list {
		if keep(x) {
			kept = append(kept, x)
		}
	}
	return kept
}

// put sets the amount of a column in a vector that it makes where needed.
func (r *reader) put(v *resource.Vector, row stored, slotColumn, column string, zero bool) {
	name := resource.Name(row.text(slotColumn))
	base, known, err := r.w.amount(row, column, name.Scale())
	r.err = errors.Join(r.err, err)
	if !known || base == 0 && !zero {
		return
	}
	if *v == nil {
		*v = resource.Vector{}
	}
	(*v)[name] = base
}
