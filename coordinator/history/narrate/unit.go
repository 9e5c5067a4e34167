package narrate

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// unit is a unit as its key has it. It never changes.
type unit struct {
	record   *record.Unit // without the document
	revision resource.Revision
	work     *work // nil where the document cannot be read
	user     string
	jobUID   string
	document []byte
}

// ready is the key beside a transaction.
type ready struct {
	millis   int64
	signaled int64
	revision resource.Revision
	created  resource.Revision // of the key's first write
}

// place is a unit's place in the order; the zero value: none.
type place struct {
	key      string
	queue    string
	priority int32
	uid      resource.UnitUID
	waiting  *record.Waiting
	revision resource.Revision
}

// takeUnit takes a unit's key.
func (n *Narrator) takeUnit(c *change, e record.Event) error {
	path, err := record.ParseUnitKey(e.KV.Key)
	if err != nil {
		return err
	}
	at := path.String()
	before := n.units[at]
	if _, noted := c.units[at]; !noted {
		c.units[at] = before
	}
	if before != nil {
		delete(n.paths, before.record.UID)
	}
	if e.Type == record.EventDelete {
		delete(n.units, at)
		return nil
	}
	rec, err := decode[record.Unit](e.KV)
	if err != nil {
		return err
	}
	u := &unit{record: rec, revision: e.KV.ModRev, document: rec.Document}
	rec.Document = nil
	n.units[at], n.paths[rec.UID] = u, at
	c.note(parsed(rec.Ended))
	if c.whole || e.KV.CreateRev == e.KV.ModRev { // a full read does not know which submissions the history has
		c.note(parsed(rec.Created))
		if rec.Kind == record.AllocUnit && rec.Made != nil {
			n.tellSubmission(e.KV, rec.Made, "allocations", rec.Namespace, rec.Name)
		}
	}
	return n.readWork(e.KV, u, before)
}

// readWork reads the document of a unit, or takes over that of the same unit before.
func (n *Narrator) readWork(kv record.KV, u, before *unit) error {
	if u.record.Kind == record.JobUnit {
		return nil // its job is read at the end of the revision
	}
	u.user = u.record.Made.User()
	if before != nil && before.work != nil && before.record.UID == u.record.UID && string(before.document) == string(u.document) {
		u.work = before.work
		return nil
	}
	doc, status := api.StoredAllocation(u.document)
	if status != nil {
		return inKey(kv, "document", status)
	}
	doc.Spec.CompleteBy(u.record.Admitted.Fill)
	w, err := workOf(&doc.Spec, u.record.NodeResources, doc.Spec.PriorityClass)
	if err != nil {
		return inKey(kv, "document", err)
	}
	u.work = w
	return nil
}

// join gives a unit the work of its job.
func (n *Narrator) join(u *unit) {
	if u.record.Kind != record.JobUnit || u.work != nil {
		return
	}
	j := n.jobs[record.JobKey(u.record.Namespace, u.record.Name)]
	if j == nil {
		return
	}
	u.jobUID, u.user = j.record.UID, j.record.Made.User()
	u.work = j.workOf(u.record)
}

// takeReady takes the key that says since when a transaction is held.
func (n *Narrator) takeReady(c *change, e record.Event) error {
	id, err := record.ParseReadyKey(e.KV.Key)
	if err != nil {
		return err
	}
	if e.Type == record.EventDelete {
		delete(n.ready, id)
		delete(n.freed, id)
		return nil
	}
	rec, err := decode[record.Ready](e.KV)
	if err != nil {
		return err
	}
	n.ready[id] = ready{rec.AtMillis, rec.SignaledMillis, e.KV.ModRev, e.KV.CreateRev}
	c.note(instant(rec.AtMillis))
	c.note(instant(rec.SignaledMillis))
	if !slices.Equal(n.freed[id], rec.Freed) || n.ready[id].isLate(n.txs[id]) {
		if c.behind == nil {
			c.behind = map[resource.TxID]bool{}
		}
		c.behind[id] = true
	}
	delete(n.freed, id)
	for _, f := range rec.Freed {
		if n.freed == nil {
			n.freed = map[resource.TxID][]record.FreedNode{}
		}
		n.freed[id] = rec.Freed
		c.note(instant(f.AtMillis))
	}
	n.touchTx(c, id)
	if t := n.txs[id]; t != nil {
		n.touchUnit(c, t.record.Unit.String())
	}
	return nil
}

// touchUnit notes that the row of a unit follows from a key that has changed.
func (n *Narrator) touchUnit(c *change, path string) {
	if _, noted := c.units[path]; !noted {
		c.units[path] = n.units[path]
	}
}

// takeOrder takes a unit's place in the order.
func (n *Narrator) takeOrder(c *change, e record.Event) error {
	key, err := record.ParseOrderKey(e.KV.Key)
	if err != nil {
		return err
	}
	at := key.Unit.String()
	if _, noted := c.waits[at]; !noted {
		c.waits[at] = n.places[at]
	}
	if e.Type == record.EventDelete {
		if n.places[at].key == e.KV.Key { // else the unit has another place already
			delete(n.places, at)
		}
		return nil
	}
	rec, err := decode[record.Order](e.KV)
	if err != nil {
		return err
	}
	n.places[at] = place{e.KV.Key, key.Queue, key.Priority, rec.UnitUID, rec.Waiting, e.KV.ModRev}
	if rec.Waiting != nil {
		c.note(instant(rec.Waiting.SinceMillis))
	}
	return nil
}

// tellUnit makes the row of a unit that has changed.
func (n *Narrator) tellUnit(c *change, path string) {
	before, after := c.units[path], n.units[path]
	if before != nil && (after == nil || after.record.UID != before.record.UID) {
		n.tellGone(c, path, before)
	}
	if after != nil {
		n.join(after)
		n.out.unit(n.unitRow(after))
	}
}

// unitRow is the row of a unit that the store has.
func (n *Narrator) unitRow(u *unit) history.Unit {
	r := u.record
	number := 0
	row := history.Unit{
		UID: r.UID, Namespace: r.Namespace, Name: r.Name, N: r.N, Tenant: r.Tenant, User: u.user, Queue: cmp.Or(r.Queue, api.DefaultQueue),
		Priority: r.Priority, Members: r.Members, State: r.Phase, Reason: r.Reason, Message: r.Message,
		Created: parsed(r.Created), Scheduled: parsed(r.Started), Ended: parsed(r.Ended), Retries: r.Retries, Revision: u.revision,
	}
	if r.Kind == record.JobUnit {
		row.JobUID, row.JobName = u.jobUID, r.Name
	}
	held := n.ready[r.TxID]
	if r.TxID == "" {
		held = ready{}
	}
	row.Started, row.Revision = first(instant(r.FirstReadyMillis), instant(held.millis)), max(row.Revision, held.revision)
	if t := n.txs[r.TxID]; t != nil && r.TxID != "" {
		number = t.record.Alternative
		row.Scheduled = committedAt(t.record)
	}
	if !row.Ended.IsZero() {
		row.Ended = n.preciseEnd(r.UID, row.Ended)
	}
	row.Requests, row.Limits = u.work.sum(number, r.Members)
	if w := u.work; w != nil {
		row.PriorityClass, row.PreemptionPolicy, row.QOSClass, row.GroupID = w.class, w.preemption, w.qos, w.group
		row.NodeSelector, row.Affinity, row.Tolerations, row.Topology = w.selector, w.affinity, w.tolerations, w.topology
		row.TTL, row.TimeLimited = w.ttl, w.limited
		if since := first(instant(r.ActiveSinceMillis), instant(held.millis)); w.ttl > 0 && !since.IsZero() {
			row.Expires = since.Add(w.ttl)
		}
	}
	return row
}

// preciseEnd is the end of the unit's last transaction, where that is within the second
// of the unit's own end, which the record has in whole seconds.
func (n *Narrator) preciseEnd(uid resource.UnitUID, at time.Time) time.Time {
	precise := at
	for id := range n.of[uid] {
		if end := endedAt(n.txs[id].record); end.Truncate(time.Second).Equal(at) {
			precise = latest(precise, end)
		}
	}
	return precise
}

// tellGone makes the last row of a unit whose key was deleted. A unit that had ended
// before has its row already.
func (n *Narrator) tellGone(c *change, path string, u *unit) {
	if api.Phase(u.record.Phase).Ended() {
		return
	}
	n.join(u)
	row := n.unitRow(u)
	row.State, row.Revision = string(api.Cancelled), c.revision
	row.Ended = n.endOf(c, path, u)
	if t := n.txs[u.record.TxID]; t != nil && u.record.TxID != "" {
		row.Reason = cmp.Or(t.record.Reason, row.Reason)
	}
	n.out.unit(row)
}

// endOf is the instant at which a unit ended whose key was deleted: that of its
// transaction, or of the change that deletes the key.
func (n *Narrator) endOf(c *change, path string, u *unit) time.Time {
	if t := n.txs[u.record.TxID]; t != nil && u.record.TxID != "" && t.record.Ended != "" {
		return endedAt(t.record)
	}
	var asked time.Time
	if u.record.Ending != nil {
		asked = instant(u.record.Ending.AskedMillis)
	}
	var waited time.Time
	if p := c.waits[path]; p.waiting != nil {
		waited = instant(p.waiting.SinceMillis)
	}
	return first(c.at, asked, latest(waited, parsed(u.record.Created)))
}

// tellWait makes the rows of a wait that has ended, begun or changed.
func (n *Narrator) tellWait(c *change, path string) {
	before, after := c.waits[path], n.places[path]
	if before.isWait() && !before.sameWait(after) {
		row, known := n.waitRow(c, path, before)
		if known {
			row.Until, row.Revision = n.endOfWait(c, path, before, after), c.revision
			n.out.wait(row)
		}
	}
	if after.isWait() {
		if row, known := n.waitRow(c, path, after); known {
			n.out.wait(row)
		}
	}
}

// isWait reports whether the reason of the wait is written. A unit that was not tried
// yet has none.
func (p place) isWait() bool { return p.waiting != nil && p.waiting.SinceMillis != 0 }

// sameWait reports whether the unit waits on for the same reason.
func (p place) sameWait(o place) bool {
	return o.isWait() && o.uid == p.uid && o.waiting.SinceMillis == p.waiting.SinceMillis
}

// endOfWait is the instant at which a wait ended: the begin of the next one, the commit,
// or the end of the unit.
func (n *Narrator) endOfWait(c *change, path string, before, after place) time.Time {
	since := instant(before.waiting.SinceMillis)
	if after.isWait() && after.uid == before.uid {
		return latest(since, instant(after.waiting.SinceMillis))
	}
	u := n.units[path]
	if u != nil && u.record.UID == before.uid {
		if t := n.txs[u.record.TxID]; t != nil && u.record.TxID != "" {
			return latest(since, committedAt(t.record))
		}
		return latest(since, parsed(u.record.Ended))
	}
	if was := c.units[path]; was != nil && was.record.UID == before.uid {
		return latest(since, n.endOf(c, path, was))
	}
	return latest(since, c.at)
}

// waitRow is the row of a wait; known is false where the store has no such unit.
func (n *Narrator) waitRow(c *change, path string, p place) (row history.Wait, known bool) {
	u := n.units[path]
	if u == nil || u.record.UID != p.uid {
		if u = c.units[path]; u == nil || u.record.UID != p.uid {
			return row, false
		}
	}
	w := p.waiting
	return history.Wait{
		Unit: p.uid, Namespace: u.record.Namespace, Tenant: u.record.Tenant, Queue: cmp.Or(p.queue, api.DefaultQueue), Priority: p.priority, Since: instant(w.SinceMillis),
		Code: w.Code, Message: w.Message, Attempts: w.Refusals, NextTry: instant(w.NextMillis), Revision: p.revision,
	}, true
}

// scaled is the sum of all members; nil for nothing.
func scaled(v resource.Vector, members int) resource.Vector {
	if len(v) == 0 {
		return nil
	}
	return v.Scaled(int64(members))
}
