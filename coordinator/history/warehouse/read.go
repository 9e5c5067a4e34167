package warehouse

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// Read returns the rows of nodes, jobs, units, grants, waits and quotas that the
// history has under the keys of a batch, and all of them without an end. Reverted rows
// are left out, and so is an amount of 0 in a capacity or a request. All rows are those
// of one moment.
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
	b, err := w.read(ctx, selection{
		nodes: w.keyed("node_id", "deleted_at", nodeIDs), jobs: w.keyed("job_id", "completed_at", jobIDs), units: w.keyed("allocation_id", "completed_at", unitIDs),
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
	return w.read(ctx, selection{every, every, every, every, every, every, true})
}

// condition chooses rows.
type condition struct {
	where string
	args  []any
}

var every = condition{where: "1 = 1"}

// keyed chooses the rows with one of the keys, and those without an end.
func (w *Warehouse) keyed(key, end string, keys []string) condition {
	if w.dialect == Postgres {
		return condition{fmt.Sprintf("c.%s = ANY(?) OR c.%s IS NULL", key, end), []any{keys}}
	}
	raw, _ := json.Marshal(keys) // texts alone
	return condition{fmt.Sprintf("c.%s IN (SELECT value FROM json_each(?)) OR c.%s IS NULL", key, end), []any{string(raw)}}
}

type selection struct {
	nodes, jobs, units, grants, waits, quotas condition
	rest                                      bool // all rows of the other tables too
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
	if s.rest {
		b.Preemptions = r.preemptions(every)
		b.Conditions = each(&r, conditionChanges, every, r.condition)
		b.Audit = each(&r, auditLog, every, r.audit)
		b.Gaps = each(&r, gaps, every, r.gap)
		b.Slices = each(&r, usageSlices, every, r.slice)
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
