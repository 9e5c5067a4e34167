package narrate

import (
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// rowsOf are rows of one table, each key once, in the order of their first mention.
type rowsOf[K comparable, R any] struct {
	at   map[K]int
	rows []R
}

func newRows[K comparable, R any]() rowsOf[K, R] { return rowsOf[K, R]{at: map[K]int{}} }

// put takes a row, in the place of an earlier one of the same key.
func (r *rowsOf[K, R]) put(key K, row R) {
	if i, known := r.at[key]; known {
		r.rows[i] = row
		return
	}
	r.at[key] = len(r.rows)
	r.rows = append(r.rows, row)
}

type waitKey struct {
	unit  resource.UnitUID
	since int64
}

type quotaKey struct {
	namespace, name string
	slot            resource.Name
	from            int64
}

type conditionKey struct {
	node resource.NodeID
	kind string
	at   resource.Revision
}

// batch collects rows.
type batch struct {
	After, Upto resource.Revision

	nodes       rowsOf[resource.NodeID, history.Node]
	jobs        rowsOf[string, history.Job]
	units       rowsOf[resource.UnitUID, history.Unit]
	grants      rowsOf[resource.TxID, history.Grant]
	waits       rowsOf[waitKey, history.Wait]
	quotas      rowsOf[quotaKey, history.Quota]
	preemptions rowsOf[resource.TxID, history.Preemption]
	conditions  rowsOf[conditionKey, history.Condition]
	audit       rowsOf[string, history.Audit]
	slots       rowsOf[resource.Name, history.Slot]
}

func newBatch() batch {
	return batch{
		nodes: newRows[resource.NodeID, history.Node](), jobs: newRows[string, history.Job](), units: newRows[resource.UnitUID, history.Unit](),
		grants: newRows[resource.TxID, history.Grant](), waits: newRows[waitKey, history.Wait](), quotas: newRows[quotaKey, history.Quota](),
		preemptions: newRows[resource.TxID, history.Preemption](), conditions: newRows[conditionKey, history.Condition](),
		audit: newRows[string, history.Audit](), slots: newRows[resource.Name, history.Slot](),
	}
}

func (b *batch) rows() int {
	return len(b.nodes.rows) + len(b.jobs.rows) + len(b.units.rows) + len(b.grants.rows) + len(b.waits.rows) + len(b.quotas.rows) +
		len(b.preemptions.rows) + len(b.conditions.rows) + len(b.audit.rows) + len(b.slots.rows)
}

func (b *batch) batch() history.Batch {
	return history.Batch{
		After: b.After, Upto: b.Upto, Nodes: b.nodes.rows, Jobs: b.jobs.rows, Units: b.units.rows, Grants: b.grants.rows, Waits: b.waits.rows,
		Quotas: b.quotas.rows, Preemptions: b.preemptions.rows, Conditions: b.conditions.rows, Audit: b.audit.rows, Slots: b.slots.rows,
	}
}

func (b *batch) wait(w history.Wait) { b.waits.put(waitKey{w.Unit, w.Since.UnixMilli()}, w) }

func (b *batch) quota(q history.Quota) {
	b.quotas.put(quotaKey{q.Namespace, q.Name, q.Slot, q.From.UnixMilli()}, q)
}

func (b *batch) preemption(p history.Preemption) { b.preemptions.put(p.Tx, p) }

func (b *batch) condition(c history.Condition) {
	b.conditions.put(conditionKey{c.Node, c.Type, c.Revision}, c)
}

// unit takes the row of a unit. The first commit and the first start stay.
func (b *batch) unit(u history.Unit) {
	if i, known := b.units.at[u.UID]; known {
		before := &b.units.rows[i]
		u.Scheduled, u.Started = earliest(before.Scheduled, u.Scheduled), earliest(before.Started, u.Started)
	}
	b.units.put(u.UID, u)
}

// earliest is the earlier of two times that are known.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
