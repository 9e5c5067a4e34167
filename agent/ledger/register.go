package ledger

import (
	"slices"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// start takes up the incarnation of this process. Under the same one as
// before, reservations are resolved; under another, they wait for the
// registration.
func (d *decision) start(c Start) {
	if c.Incarnation != d.l.incarnation {
		d.emit(Started{c.Incarnation, d.now})
		d.reply.Incarnation, d.reply.Registered = c.Incarnation, 0
		return
	}
	if d.l.registered > 0 {
		d.resolve(d.l.sorted(func(g *grant) bool { return g.State == Reserved })...)
	}
}

// register is the step "register, read, apply": what the store lists for this
// node meets what the journal knows.
func (d *decision) register(c Registered) {
	d.l.scratch.CopyFrom(d.l.free)
	listed := make(map[resource.TxID]*Record, len(c.Records))
	for i := range c.Records {
		listed[c.Records[i].Tx] = &c.Records[i]
	}
	// What waits goes first, so that no event of this decision wakes it.
	for _, state := range []State{Waiting, Reserved, Held, Evicting, Stopping, Tombstone} {
		for _, tx := range d.l.sorted(func(g *grant) bool { return g.State == state }) {
			d.meet(d.l.grants[tx], listed)
		}
	}
	for _, tx := range sortedRecords(listed) {
		d.adopt(listed[tx])
	}
	d.emit(Enrolled{c.Revision})
	d.reply.Registered = c.Revision
}

func sortedRecords(listed map[resource.TxID]*Record) []resource.TxID {
	txs := make([]resource.TxID, 0, len(listed))
	for tx := range listed {
		txs = append(txs, tx)
	}
	slices.Sort(txs)
	return txs
}

// meet decides one local grant, and takes its record from listed unless the
// record is still to be adopted.
func (d *decision) meet(g *grant, listed map[resource.TxID]*Record) {
	r := listed[g.Tx]
	old := g.Incarnation != d.l.incarnation
	if g.Origin != OriginTxn {
		return
	}
	if r == nil {
		switch {
		case (g.State == Waiting || g.State == Reserved) && old:
			// Its vote can no longer pass a compare.
			d.leave(g, Dropped{g.Tx})
		case g.State != Waiting:
			d.resolve(g.Tx)
		}
		return
	}
	if g.State == Waiting || g.State == Reserved && !sameMembers(g.Members, d.l.reindexed(r.Members)) {
		// The record names what is protected; the local promise gives way.
		d.leave(g, Dropped{g.Tx})
		return
	}
	delete(listed, g.Tx)
	rebooted := g.Incarnation.BootID != d.l.incarnation.BootID
	switch r.State {
	case RecordCommitted:
		if g.State == Reserved || g.State == Held && r.Revision > g.Revision {
			d.emit(Committed{g.Tx, r.Revision})
		}
		if g.State >= Evicting {
			d.alarm("transaction %s is COMMITTED at revision %d and %s here", g.Tx, r.Revision, g.State)
		}
	case RecordEvicting, RecordReleasing:
		switch {
		case g.State == Tombstone:
		case rebooted || g.State == Reserved && r.State == RecordReleasing:
			d.leave(g, Buried{g.Tx})
		case r.State == RecordReleasing && g.State == Held:
			d.stop(g, r.Grace, "")
		case g.State == Reserved || g.State == Held:
			d.notice(g, "", r.Grace)
		}
	default:
		d.resolve(g.Tx)
	}
}

// leave ends a grant and frees its part of scratch for the records that are
// adopted after it.
func (d *decision) leave(g *grant, e Event) {
	d.end(g, e)
	if g.State == Waiting {
		give(d.l.host, d.l.scratch, g.blocked)
		return
	}
	if g.claimed != "" && !slices.Contains(d.ended, g.claimed) {
		return // a Waiting grant gets it
	}
	for i := range g.Members {
		give(d.l.host, d.l.scratch, g.part(i))
	}
}

func give(host *fit.Host, free *fit.Free, a resource.Assignment) {
	if err := host.Give(free, a); err != nil {
		panic("ledger: " + err.Error())
	}
}

// adopt takes in a record that nothing here answers to.
func (d *decision) adopt(r *Record) {
	state := Held
	switch r.State {
	case RecordCommitted:
	case RecordEvicting, RecordReleasing:
		rebooted := !r.Incarnation.IsZero() && r.Incarnation.BootID != d.l.incarnation.BootID
		if rebooted || len(r.Members) == 0 {
			d.emit(Buried{r.Tx})
			return
		}
		state = Stopping
		if r.State == RecordEvicting {
			state = Evicting
		}
	default:
		return
	}
	if problem := adoptable(r); problem != "" {
		d.alarm("transaction %s is %s at revision %d and cannot be adopted: %s", r.Tx, r.State, r.Revision, problem)
		return
	}
	add := Grant{
		Tx: r.Tx, Unit: r.Unit, Epoch: r.Epoch, State: state, Revision: r.Revision,
		Since: d.now, Deadline: d.now.Add(r.Grace), Grace: r.Grace,
	}
	var parts []resource.Assignment
	for _, m := range d.l.reindexed(r.Members) {
		part, _, err := d.l.take(d.l.scratch, m.Assignment)
		if err != nil {
			for _, p := range parts {
				give(d.l.host, d.l.scratch, p)
			}
			d.alarm("transaction %s is %s at revision %d and cannot be adopted: member %d: %v", r.Tx, r.State, r.Revision, m.Index, err)
			return
		}
		parts = append(parts, part)
		m.Assignment = m.Assignment.Clone()
		add.Members = append(add.Members, m)
	}
	d.emit(Granted{add})
}

// adoptable returns what keeps a record from becoming a grant, or "".
func adoptable(r *Record) string {
	switch {
	case r.Tx == "" || len(r.Tx) > MaxText || len(r.Unit) > MaxText:
		return "its identifiers are empty or too long"
	case len(r.Members) == 0 || len(r.Members) > MaxMembers:
		return "it names no member of this host, or too many"
	case r.Grace < 0:
		return "its grace is negative"
	}
	return ""
}

// sameMembers reports whether a record names what is promised here.
func sameMembers(a, b []Member) bool {
	return GrantHash("", a) == GrantHash("", b)
}
