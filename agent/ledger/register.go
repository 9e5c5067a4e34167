package ledger

import (
	"slices"

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
	d.l.scratch.copyFrom(&d.l.own)
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
		if old && g.State.Holds() {
			d.yielding = append(d.yielding, g)
		}
		switch {
		case (g.State == Waiting || g.State == Reserved) && old:
			// Its vote can no longer pass a compare.
			d.leave(g, Dropped{g.Tx})
		case g.State != Waiting:
			d.resolve(g.Tx)
		}
		return
	}
	if g.State == Waiting || g.State == Reserved && !sameMembers(g.Members, d.l.places.reindex(r.Members)) {
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
		if old && g.State.Holds() {
			d.yielding = append(d.yielding, g)
		}
		d.resolve(g.Tx)
	}
}

// leave ends a grant and frees its part of scratch for the records that are
// adopted after it.
func (d *decision) leave(g *grant, e Event) {
	d.end(g, e)
	if g.State == Waiting {
		d.l.scratch.give(&g.blocked)
		return
	}
	if g.claimed != "" && !slices.Contains(d.ended, g.claimed) {
		return // a Waiting grant gets it
	}
	for _, m := range g.Members {
		d.l.scratch.give(&m.Assignment)
	}
}

// adopt takes in a record that nothing here answers to.
func (d *decision) adopt(r *Record) {
	state := Held
	switch r.State {
	case RecordCommitted:
	case RecordEvicting, RecordReleasing:
		// model: mutant BURY_WHAT_RUNS
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
	var gone []*grant
	for _, m := range d.l.places.reindex(r.Members) {
		if err := d.claim(&m.Assignment, &gone); err != nil {
			d.unclaim(add.Members, gone)
			d.alarm("transaction %s is %s at revision %d and cannot be adopted: member %d: %v", r.Tx, r.State, r.Revision, m.Index, err)
			return
		}
		m.Assignment = m.Assignment.Clone()
		add.Members = append(add.Members, m)
	}
	for _, g := range gone {
		d.alarm("transaction %s is %s here without a live record: it gives way to %s, which is %s with its devices at revision %d", g.Tx, g.State, r.Tx, r.State, r.Revision)
		d.end(g, Buried{g.Tx})
	}
	d.emit(Granted{add})
}

// claim takes an assignment of a record for its adoption. Where that fails,
// grants of earlier incarnations without a live record give way: the store
// says that this host promised the assignment to the record, so they had ended
// and a damaged journal has forgotten it. Those that must go are added to gone.
func (d *decision) claim(a *resource.Assignment, gone *[]*grant) error {
	err := d.l.scratch.take(a)
	for _, g := range d.yielding { // model: mutant REVIVED_STAYS
		if err == nil {
			break
		}
		if slices.Contains(d.ended, g.Tx) || slices.Contains(*gone, g) || !overlaps(g.Members, a) {
			continue
		}
		for i := range g.Members {
			d.l.scratch.give(&g.Members[i].Assignment)
		}
		*gone = append(*gone, g)
		err = d.l.scratch.take(a)
	}
	return err
}

// unclaim undoes what claim did.
func (d *decision) unclaim(taken []Member, gone []*grant) {
	for i := range taken {
		d.l.scratch.give(&taken[i].Assignment)
	}
	for _, g := range gone {
		for i := range g.Members {
			if err := d.l.scratch.take(&g.Members[i].Assignment); err != nil {
				panic("ledger: " + err.Error())
			}
		}
	}
}

// overlaps reports whether an assignment has a CPU, GPU or instance of one of
// the members.
func overlaps(members []Member, a *resource.Assignment) bool {
	for i := range members {
		b := &members[i].Assignment
		if slices.ContainsFunc(a.CPUs, func(x resource.CPUGrant) bool {
			return slices.ContainsFunc(b.CPUs, func(y resource.CPUGrant) bool { return x.ID == y.ID })
		}) || slices.ContainsFunc(a.GPUs, func(x resource.GPUGrant) bool {
			return slices.ContainsFunc(b.GPUs, func(y resource.GPUGrant) bool { return x.UUID == y.UUID })
		}) || slices.ContainsFunc(a.MIG, func(x resource.MIGGrant) bool {
			return slices.ContainsFunc(b.MIG, func(y resource.MIGGrant) bool { return x.UUID == y.UUID })
		}) {
			return true
		}
	}
	return false
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

// sameMembers reports whether a record names what is promised here; both have
// the indices of this host. The requests are not compared: a record has none.
func sameMembers(a, b []Member) bool {
	return slices.EqualFunc(a, b, func(x, y Member) bool {
		return x.Index == y.Index && x.Assignment.Equal(y.Assignment)
	})
}
