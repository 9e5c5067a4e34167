package ledger

import (
	"maps"
	"slices"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// start takes up the incarnation of this process. Under the same one as
// before, reservations are resolved; under another, they wait for the
// registration.
func (d *decision) start(c Start) {
	if c.Incarnation != d.l.incarnation {
		d.restart(c)
		return
	}
	if d.l.registered > 0 {
		d.resolve(d.l.sorted(func(g *entry) bool { return g.State == grant.Reserved })...)
	}
}

func (d *decision) restart(c Start) {
	d.emit(Started{Incarnation: c.Incarnation, At: d.now})
	d.reply.Incarnation, d.reply.Registered = c.Incarnation, 0
}

// register is the step "register, read, apply": the store's records of this
// node meet the journal's grants.
func (d *decision) register(c Registered) {
	if c.wentBack() { // model: mutant RESTORED_WITHOUT_QUARANTINE
		d.isolate(&c)
		return
	}
	listed := make(map[resource.TxID]*Record, len(c.Records))
	for i := range c.Records {
		listed[c.Records[i].Tx] = &c.Records[i]
	}
	if d.l.registered > 0 { // model: mutant ADOPT_STALE
		d.audit(listed)
	} else {
		d.join(listed)
	}
	if c.Marks != d.l.marks && c.Marks != (Marks{}) {
		d.emit(Marked(c.Marks))
	}
	d.emit(Enrolled{c.Revision, c.Store})
	d.reply.Registered = c.Revision
}

// audit is a registration of an incarnation that has registered before. It has
// answered since, so the records read may be old: a record on the list may have
// ended, and its tombstone may be forgotten. The journal knows everything that
// this incarnation has promised, so nothing is adopted; records that differ are
// read again, one by one.
func (d *decision) audit(listed map[resource.TxID]*Record) {
	for _, tx := range d.l.sorted(func(g *entry) bool { return g.Origin == OriginTxn }) {
		g, r := d.l.grants[tx], listed[tx]
		delete(listed, tx)
		switch {
		case r == nil && g.State == grant.Waiting:
		case r == nil || !d.follow(g, r):
			d.resolve(tx)
		}
	}
	d.resolve(slices.Sorted(maps.Keys(listed))...)
}

// follow takes a grant on to where its record is; it reports false if the record
// does not say where that is, or is older than the grant.
func (d *decision) follow(g *entry, r *Record) bool {
	switch r.State {
	case grant.RecordCommitted:
		switch {
		case g.State == grant.Reserved && sameMembers(g.Members, d.l.places.reindex(r.Members)), g.State == grant.Held && r.Revision > g.Revision:
			d.emit(Committed{g.Tx, r.Revision})
			return true
		}
		return g.State == grant.Held
	case grant.RecordEvicting:
		if g.State == grant.Reserved || g.State == grant.Held {
			d.notice(g, "", r.Grace, r.Revision)
		}
		return g.State != grant.Waiting
	case grant.RecordReleasing:
		if g.State == grant.Reserved || g.State == grant.Held {
			d.stop(g, r.Grace, "", r.Revision) // it may run though it is only Reserved: the COMMITTED was lost
		}
		return g.State != grant.Waiting
	}
	return false
}

// sameMembers reports whether a record names the assignments promised here;
// both have the indices of this host. The requests are not compared: a record
// has none.
func sameMembers(a, b []Holding) bool {
	return slices.EqualFunc(a, b, func(x, y Holding) bool {
		return x.Index == y.Index && x.Assignment.Equal(y.Assignment)
	})
}
