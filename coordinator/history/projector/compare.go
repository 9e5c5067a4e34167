package projector

import (
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// table is a table of the history as compare sees it.
type table interface {
	compare(want, has *history.Batch) []Difference
	pick(from, to *history.Batch, is map[string]bool)
	open(want, has, to *history.Batch)
	divide(from *history.Batch, to func() *history.Batch)
}

// columns are a table's rows: their keys, the compared fields, and which have no end.
type columns[R any] struct {
	kind   string
	rows   func(*history.Batch) *[]R
	key    func(R) string
	isOpen func(R) bool
	fields []field[R]
}

type field[R any] struct {
	name  string
	value func(R) string
}

func (c columns[R]) index(b *history.Batch) map[string]R {
	all := map[string]R{}
	for _, row := range *c.rows(b) {
		all[c.key(row)] = row
	}
	return all
}

func (c columns[R]) compare(want, has *history.Batch) (found []Difference) {
	in, wanted := c.index(has), c.index(want)
	for _, row := range *c.rows(want) {
		key := c.key(row)
		there, known := in[key]
		if !known {
			found = append(found, Difference{Kind: c.kind, Key: key, Store: "present"})
			continue
		}
		for _, f := range c.fields {
			if a, b := f.value(there), f.value(row); a != b {
				found = append(found, Difference{c.kind, key, f.name, a, b})
			}
		}
	}
	for _, row := range *c.rows(has) {
		if _, known := wanted[c.key(row)]; !known && c.isOpen(row) {
			found = append(found, Difference{Kind: c.kind, Key: c.key(row), History: "present"})
		}
	}
	return found
}

func (c columns[R]) pick(from, to *history.Batch, is map[string]bool) {
	for _, row := range *c.rows(from) {
		if is[c.kind+" "+c.key(row)] {
			*c.rows(to) = append(*c.rows(to), row)
		}
	}
}

func (c columns[R]) open(want, has, to *history.Batch) {
	wanted := c.index(want)
	for _, row := range *c.rows(has) {
		if _, known := wanted[c.key(row)]; !known && c.isOpen(row) {
			*c.rows(to) = append(*c.rows(to), row)
		}
	}
}

// divide puts each row into the batch that to returns for it.
func (c columns[R]) divide(from *history.Batch, to func() *history.Batch) {
	for _, row := range *c.rows(from) {
		rows := c.rows(to())
		*rows = append(*rows, row)
	}
}

func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// seconds is an instant in whole seconds: some records have no more.
func seconds(t time.Time) string { return instant(t.Truncate(time.Second)) }

// tables are those that the store can say something about.
var tables = []table{
	columns[history.Node]{
		"node", func(b *history.Batch) *[]history.Node { return &b.Nodes }, func(r history.Node) string { return string(r.ID) },
		func(r history.Node) bool { return r.Deleted.IsZero() },
		[]field[history.Node]{
			{"hostname", func(r history.Node) string { return r.Hostname }}, {"phase", func(r history.Node) string { return r.Phase }},
			{"cordoned", func(r history.Node) string { return fmt.Sprint(r.Cordoned) }}, {"deleted", func(r history.Node) string { return instant(r.Deleted) }},
			{"capacity", func(r history.Node) string { return amounts(r.Capacity) }}, {"allocatable", func(r history.Node) string { return amounts(r.Allocatable) }},
		},
	},
	columns[history.Job]{
		"job", func(b *history.Batch) *[]history.Job { return &b.Jobs }, func(r history.Job) string { return r.UID },
		func(r history.Job) bool { return r.Ended.IsZero() },
		[]field[history.Job]{
			{"name", func(r history.Job) string { return r.Namespace + "/" + r.Name }}, {"phase", func(r history.Job) string { return r.Phase }},
			{"tenant", func(r history.Job) string { return string(r.Tenant) }}, {"ended", func(r history.Job) string { return seconds(r.Ended) }},
		},
	},
	columns[history.Unit]{
		"allocation", func(b *history.Batch) *[]history.Unit { return &b.Units }, func(r history.Unit) string { return string(r.UID) },
		func(r history.Unit) bool { return r.Ended.IsZero() },
		[]field[history.Unit]{
			{"name", func(r history.Unit) string { return r.Namespace + "/" + r.Name }}, {"state", func(r history.Unit) string { return r.State }},
			{"tenant", func(r history.Unit) string { return string(r.Tenant) }}, {"priority", func(r history.Unit) string { return fmt.Sprint(r.Priority) }},
			{"queue", func(r history.Unit) string { return r.Queue }}, {"members", func(r history.Unit) string { return fmt.Sprint(r.Members) }},
			{"requests", func(r history.Unit) string { return amounts(r.Requests) }}, {"created", func(r history.Unit) string { return instant(r.Created) }},
			{"ended", func(r history.Unit) string { return seconds(r.Ended) }},
		},
	},
	columns[history.Grant]{
		"grant", func(b *history.Batch) *[]history.Grant { return &b.Grants }, func(r history.Grant) string { return string(r.Tx) },
		func(r history.Grant) bool { return r.Ended.IsZero() },
		[]field[history.Grant]{
			{"unit", func(r history.Grant) string { return string(r.Unit) }}, {"state", func(r history.Grant) string { return r.State }},
			{"committed", func(r history.Grant) string { return instant(r.Committed) }}, {"ending", func(r history.Grant) string { return instant(r.Ending) }},
			{"ended", func(r history.Grant) string { return instant(r.Ended) }}, {"ready", func(r history.Grant) string { return instant(r.Ready) }},
			{"signaled", func(r history.Grant) string { return instant(r.Signaled) }},
			{"members", membersOf},
		},
	},
	columns[history.Wait]{
		"wait", func(b *history.Batch) *[]history.Wait { return &b.Waits },
		func(r history.Wait) string { return string(r.Unit) + " since " + instant(r.Since) }, func(r history.Wait) bool { return r.Until.IsZero() },
		[]field[history.Wait]{
			{"code", func(r history.Wait) string { return r.Code }}, {"queue", func(r history.Wait) string { return r.Queue }},
			{"until", func(r history.Wait) string { return instant(r.Until) }},
		},
	},
	columns[history.Quota]{
		"quota", func(b *history.Batch) *[]history.Quota { return &b.Quotas },
		func(r history.Quota) string {
			return r.Namespace + "/" + r.Name + " " + string(r.Slot) + " from " + instant(r.From)
		},
		func(r history.Quota) bool { return r.To.IsZero() },
		[]field[history.Quota]{
			{"hard", func(r history.Quota) string { return fmt.Sprint(r.Hard) }}, {"soft", func(r history.Quota) string { return fmt.Sprint(r.Soft) }},
			{"to", func(r history.Quota) string { return instant(r.To) }},
		},
	},
	columns[history.Preemption]{
		"preemption", func(b *history.Batch) *[]history.Preemption { return &b.Preemptions }, func(r history.Preemption) string { return string(r.Tx) },
		history.Preemption.IsOpen,
		[]field[history.Preemption]{ // the outcome says more than the record of the eviction, once that has ended
			{"evicting", func(r history.Preemption) string { return fmt.Sprint(r.IsOpen()) }}, {"victim", func(r history.Preemption) string { return string(r.Victim) }},
			{"tenant", func(r history.Preemption) string { return string(r.VictimTenant) }}, {"by", func(r history.Preemption) string { return string(r.By) }},
			{"reason", func(r history.Preemption) string { return r.Reason }}, {"initiated", func(r history.Preemption) string { return instant(r.Initiated) }},
			{"evicted", func(r history.Preemption) string { return instant(r.Evicted) }}, {"nodes", func(r history.Preemption) string { return fmt.Sprint(r.Nodes) }},
			{"freed", func(r history.Preemption) string { return amounts(r.Freed) }},
		},
	},
	columns[history.Condition]{ // the newest of each type
		"condition", func(b *history.Batch) *[]history.Condition { return &b.Conditions }, func(r history.Condition) string { return string(r.Node) + " " + r.Type },
		func(r history.Condition) bool { return r.New != "False" },
		[]field[history.Condition]{{"status", func(r history.Condition) string { return r.New }}},
	},
	columns[history.Audit]{
		"audit", func(b *history.Batch) *[]history.Audit { return &b.Audit }, func(r history.Audit) string { return r.ID },
		func(history.Audit) bool { return false },
		[]field[history.Audit]{
			{"user", func(r history.Audit) string { return r.User }}, {"verb", func(r history.Audit) string { return r.Verb }}, {"kind", func(r history.Audit) string { return r.Kind }},
			{"name", func(r history.Audit) string { return r.Namespace + "/" + r.Name }}, {"at", func(r history.Audit) string { return instant(r.At) }},
		},
	},
}

// amounts are the amounts that are not 0, in the order of their names.
func amounts(v resource.Vector) string {
	text := ""
	for _, name := range v.Names() {
		if v[name] != 0 {
			text += fmt.Sprintf(" %s=%s", name, resource.FormatAmount(name, v[name]))
		}
	}
	return text
}

// membersOf are the members: their amounts, devices and ends.
func membersOf(g history.Grant) string {
	text := ""
	for _, m := range g.Members {
		text += fmt.Sprintf(" %d on %s:%s %v", m.Index, m.Node, amounts(m.Allocated), m.Devices)
		if !m.Ended.IsZero() {
			text += " until " + instant(m.Ended)
		}
		text += ";"
	}
	return text
}
