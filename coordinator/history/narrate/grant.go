package narrate

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// tx is a transaction as its record has it.
type tx struct {
	record   *record.Tx
	revision resource.Revision
}

// takeTx takes a transaction's record. One that was aborted has never held anything,
// and makes no row.
func (n *Narrator) takeTx(c *change, e record.Event) error {
	id, err := record.ParseTxKey(e.KV.Key)
	if err != nil {
		return err
	}
	if e.Type == record.EventDelete {
		if t := n.txs[id]; t != nil {
			delete(n.of[t.record.UnitUID], id)
			if len(n.of[t.record.UnitUID]) == 0 {
				delete(n.of, t.record.UnitUID)
			}
		}
		delete(n.txs, id)
		delete(n.ended, id)
		return nil
	}
	rec, err := decode[record.Tx](e.KV)
	if err != nil {
		return err
	}
	if rec.State == grant.RecordAborted {
		return nil
	}
	n.touchTx(c, id)
	n.txs[id] = &tx{rec, e.KV.ModRev}
	if n.of[rec.UnitUID] == nil {
		n.of[rec.UnitUID] = map[resource.TxID]bool{}
	}
	n.of[rec.UnitUID][id] = true
	switch rec.State {
	case grant.RecordCommitted:
		c.note(committedAt(rec))
		for _, m := range rec.LostMembers {
			c.note(instant(m.AtMillis))
		}
	case grant.RecordEvicting, grant.RecordReleasing:
		c.note(instant(rec.EndingMillis))
	default:
		c.note(endedAt(rec))
	}
	return nil
}

// touchTx notes that the row of a transaction follows from a key that has changed.
func (n *Narrator) touchTx(c *change, id resource.TxID) {
	if _, noted := c.txs[id]; !noted {
		c.txs[id] = n.txs[id]
	}
}

// Live returns the grants that have not ended, ascending by transaction.
func (n *Narrator) Live() []history.Grant {
	var live []history.Grant
	c := &change{}
	for _, id := range slices.Sorted(maps.Keys(n.txs)) {
		if t := n.txs[id]; !t.record.State.Terminal() {
			live = append(live, n.grantRow(c, id, t, n.unitOf(c, t)))
		}
	}
	return live
}

// isLate reports whether the key of readiness was made behind the end of a transaction.
func (r ready) isLate(t *tx) bool {
	return t != nil && t.record.State.Terminal() && r.created > t.revision
}

// tellTx makes the rows of a transaction that has changed. A record that had ended before
// makes a row again only for the instants of freed nodes and for a late key: the commit of the
// next holder may write both behind the end.
func (n *Narrator) tellTx(c *change, id resource.TxID) {
	before, t := c.txs[id], n.txs[id]
	if t == nil {
		return
	}
	u := n.unitOf(c, t)
	if before != nil && before.record.State.Terminal() {
		if u = cmp.Or(u, n.ended[id]); c.behind[id] && u != nil {
			n.out.grants.put(id, n.grantRow(c, id, t, u))
		}
		return
	}
	if _, held := n.ready[id]; t.record.State.Terminal() && (len(t.record.Members) > 1 || !held) {
		if n.ended == nil {
			n.ended = map[resource.TxID]*unit{}
		}
		n.ended[id] = u
	}
	n.out.grants.put(id, n.grantRow(c, id, t, u))
	switch {
	case t.record.Evicted:
		n.out.preemption(n.preemptionRow(c, id, t, u))
	case before != nil && before.record.Evicted: // its owner has ended it since
		row := n.preemptionRow(c, id, before, u)
		row.Outcome, row.Evicted, row.Revision = released, first(instant(t.record.EndingMillis), endedAt(t.record)), c.revision
		n.out.preemption(row)
	}
	if t.record.State == grant.RecordCommitted && before == nil && !c.whole {
		n.tellRescheduled(c, id, t, u)
	}
}

// unitOf is the unit of a transaction, also of one that was deleted in this revision; nil
// where the store has none.
func (n *Narrator) unitOf(c *change, t *tx) *unit {
	path := t.record.Unit.String()
	for _, u := range []*unit{n.units[path], c.units[path]} {
		if u != nil && u.record.UID == t.record.UnitUID {
			n.join(u)
			return u
		}
	}
	return nil
}

func (n *Narrator) grantRow(c *change, id resource.TxID, t *tx, u *unit) history.Grant {
	r := t.record
	row := history.Grant{
		Tx: id, Unit: r.UnitUID, Namespace: r.Unit.Namespace, Tenant: r.Tenant, State: r.State.String(), Committed: committedAt(r),
		Ending: instant(r.EndingMillis), Ended: endedAt(r), Evicted: r.Evicted, By: r.By, Reason: r.Reason, Revision: t.revision,
	}
	held := n.ready[id]
	row.Ready, row.Signaled = instant(held.millis), instant(held.signaled)
	row.Exits = exitsOf(id, t, u)
	formOf := func(member int) (f form) {
		if u != nil {
			f = u.work.formOf(r.Alternative, member)
		}
		return f
	}
	if u == nil || u.work == nil {
		n.notePartial(id)
	}
	parts := false // the members have ended in parts
	for _, m := range r.Members {
		member := n.memberRow(m, formOf(m.Member))
		member.Ended = endOn(n.freed[id], m.Node, row.Ended)
		parts = parts || !member.Ended.IsZero()
		row.Members = append(row.Members, member)
	}
	if !r.State.Terminal() || parts || held.isLate(t) { // the key of readiness may be behind the end
		row.Revision = max(row.Revision, held.revision)
	}
	for _, m := range r.LostMembers {
		lost := n.memberRow(m.Placement, formOf(m.Member))
		lost.Ended = instant(m.AtMillis)
		row.Members = append(row.Members, lost)
	}
	slices.SortFunc(row.Members, func(a, b history.Member) int { return a.Index - b.Index })
	return row
}

// notePartial notes a grant of a unit without a known request.
func (n *Narrator) notePartial(id resource.TxID) {
	if n.partial == nil {
		n.partial = map[resource.TxID]bool{}
	}
	n.partial[id] = true
}

// IsPartial reports whether the request of a grant's unit was not known for a row of the
// grant: Requested is Allocated then, without whole cores and amounts of the cluster.
func (n *Narrator) IsPartial(tx resource.TxID) bool { return n.partial[tx] }

// endOn is the instant at which a node freed the members before the transaction's end; the
// zero value for a node without such an instant.
func endOn(freed []record.FreedNode, node resource.NodeID, ended time.Time) time.Time {
	for _, f := range freed {
		if at := instant(f.AtMillis); f.Node == node && (ended.IsZero() || at.Before(ended)) {
			return at
		}
	}
	return time.Time{}
}

// exitsOf are the ends of the members' work, nil where there was none.
func exitsOf(id resource.TxID, t *tx, u *unit) json.RawMessage {
	var exits []record.Exit
	if t.record.Outcome != nil {
		exits = t.record.Outcome.Exits
	}
	if len(exits) == 0 && u != nil && u.record.LastTx == id {
		exits = u.record.Exits
	}
	exits = slices.DeleteFunc(slices.Clone(exits), func(e record.Exit) bool { return e.Tx != "" && e.Tx != id }) // those are of other grants
	return jsonOf(exits, len(exits) > 0)
}

func (n *Narrator) memberRow(m record.Placement, f form) history.Member {
	row := history.Member{Index: m.Member, Node: m.Node, Requested: f.request, Limits: f.limits, Allocated: m.Assignment.Vector()}
	row.Allocated.Add(f.cluster)
	if cores := f.request[resource.Cores]; cores > 0 { // the placement lists their threads
		row.Allocated[resource.Cores] = cores
	}
	if row.Requested == nil {
		row.Requested = row.Allocated.Clone()
	}
	models := resource.Vector{}
	for _, g := range m.Assignment.GPUs {
		row.Devices = append(row.Devices, g.UUID)
		if row.GPUModel = n.modelOf(m.Node, g.Index); row.GPUModel != "" {
			models.Add(resource.Vector{resource.GPUOf(row.GPUModel): int64(g.Milli)})
		}
	}
	if len(models) > 0 { // as quotas are charged (ADR 91)
		row.Requested = row.Requested.Clone()
		row.Requested.Add(models)
		row.Allocated.Add(models)
	}
	for _, g := range m.Assignment.MIG {
		row.Devices = append(row.Devices, g.UUID)
		row.GPUModel = n.modelOf(m.Node, g.GPU)
	}
	slices.Sort(row.Devices)
	return row
}

// Outcomes of a preemption: the victim has notice; it waits again; it runs again; it has
// ended; its owner has ended it during the notice.
const (
	evicting    = history.OutcomeEvicting
	evicted     = "Evicted"
	rescheduled = "Rescheduled"
	ended       = "Ended"
	released    = "Released"
)

// Values of InitiatedBy beside the names of persons: another unit, or a rule, which the
// reason names.
const (
	byPreemptor = "preemptor"
	byRule      = "rule"
)

// preemptionRow is the row of a transaction that ends by an eviction. The eviction has
// the outcome Ended where the unit does not wait again.
func (n *Narrator) preemptionRow(c *change, id resource.TxID, t *tx, u *unit) history.Preemption {
	r := t.record
	row := history.Preemption{
		Tx: id, Victim: r.UnitUID, VictimTenant: r.Tenant, By: r.By, Reason: r.Reason, Grace: time.Duration(r.GraceSeconds) * time.Second,
		Initiated: first(instant(r.EndingMillis), committedAt(r)), Outcome: evicting, Freed: resource.Vector{}, Revision: t.revision,
	}
	nodes := map[resource.NodeID]bool{}
	for _, m := range r.Members {
		nodes[m.Node] = true
		row.Freed.Add(m.Assignment.Vector())
	}
	row.Nodes = slices.Sorted(maps.Keys(nodes))
	if u != nil {
		row.VictimPriority = u.record.Priority
	}
	person, _ := r.Asker()
	row.InitiatedBy = cmp.Or(person, byRule)
	if r.By != "" {
		row.InitiatedBy = byPreemptor
		n.namePreemptor(c, &row)
	}
	if r.State == grant.RecordReleased {
		row.Outcome, row.Evicted = ended, endedAt(r)
		if u != nil && n.units[r.Unit.String()] == u && u.record.Phase == "Pending" {
			row.Outcome = evicted
		}
	}
	return row
}

// namePreemptor adds the unit that takes the place of the victim.
func (n *Narrator) namePreemptor(c *change, row *history.Preemption) {
	uid, _, _, err := row.By.Attempt()
	if err != nil {
		return // a record that somebody has written by hand
	}
	row.Preemptor = uid
	path := n.paths[uid]
	for _, u := range []*unit{n.units[path], c.units[path]} {
		if u != nil && u.record.UID == uid {
			row.PreemptorTenant, row.PreemptorPriority = u.record.Tenant, u.record.Priority
			return
		}
	}
}

// tellRescheduled makes the last row of the eviction that the unit of a new transaction
// has come back from, as long as the store has the record of the eviction.
func (n *Narrator) tellRescheduled(c *change, id resource.TxID, t *tx, u *unit) {
	var last resource.TxID
	for other := range n.of[t.record.UnitUID] {
		v := n.txs[other]
		if other != id && v.record.Evicted && v.record.State == grant.RecordReleased && (last == "" || v.revision > n.txs[last].revision) {
			last = other
		}
	}
	if last == "" {
		return
	}
	row := n.preemptionRow(c, last, n.txs[last], u)
	row.Outcome, row.Rescheduled, row.Revision = rescheduled, committedAt(t.record), c.revision
	n.out.preemption(row)
}

// committedAt is the instant of the commit, in whole seconds in a record of an older
// version.
func committedAt(r *record.Tx) time.Time {
	return first(instant(r.CommittedMillis), parsed(r.Committed))
}

// endedAt is the same of the end.
func endedAt(r *record.Tx) time.Time { return first(instant(r.EndedMillis), parsed(r.Ended)) }
