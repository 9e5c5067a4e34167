package ledger

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// yielding is a grant that gives way to records with its devices, because it
// has ended here already, or will: one of an earlier incarnation that the store
// does not list, or one whose record is being ended.
type yielding struct {
	*entry
	record *Record // nil where none is listed
}

// to reports whether the grant gives way to a record. By the record, this host
// promised the devices to both, so it had freed the grant before it promised
// the record's: a damaged journal has revived the grant. Of two that are being
// ended the newer attempt is the one that may still run.
func (y yielding) to(r *Record) bool {
	return y.record == nil || r.State == grant.RecordCommitted || attemptOf(y.Tx).compare(attemptOf(r.Tx)) < 0
}

// join is the first registration of an incarnation, or after a quarantine:
// nothing has been answered since, so the list is how things are.
func (d *decision) join(listed map[resource.TxID]*Record) {
	d.l.scratch.copyFrom(&d.l.own)
	// Waiting grants go first, so that no event of this decision wakes them.
	for _, state := range []grant.State{grant.Waiting, grant.Reserved, grant.Held, grant.Evicting, grant.Stopping, grant.Tombstone} {
		for _, tx := range d.l.sorted(func(g *entry) bool { return g.State == state && g.Origin == OriginTxn }) {
			d.meet(d.l.grants[tx], listed)
		}
	}
	d.makeWay(listed)
	for _, r := range inOrder(listed) {
		d.adopt(r)
	}
}

// inOrder lists records as they are to be adopted: COMMITTED ones first, then
// from the newest attempt to the oldest.
func inOrder(listed map[resource.TxID]*Record) []*Record {
	records := make([]*Record, 0, len(listed))
	for _, r := range listed {
		records = append(records, r)
	}
	ends := func(r *Record) int {
		if r.State == grant.RecordCommitted {
			return 0
		}
		return 1
	}
	slices.SortFunc(records, func(a, b *Record) int {
		return cmp.Or(cmp.Compare(ends(a), ends(b)), attemptOf(b.Tx).compare(attemptOf(a.Tx)), cmp.Compare(a.Tx, b.Tx))
	})
	return records
}

// meet decides one local grant, and takes its record from listed unless the
// record is still to be adopted.
func (d *decision) meet(g *entry, listed map[resource.TxID]*Record) {
	r := listed[g.Tx]
	old := g.Incarnation != d.l.incarnation
	switch {
	case r == nil && (g.State == grant.Waiting || g.State == grant.Reserved) && old:
		// Its vote can no longer pass a compare.
		d.leave(g, Dropped{g.Tx, 0})
	case r == nil && g.Disowned && (g.State == grant.Held || g.State == grant.Evicting):
		d.stop(g, g.Grace, "released by an operator: the store had lost its record", 0)
	case r == nil:
		if old && g.State.Holds() {
			d.yielding = append(d.yielding, yielding{g, nil})
		}
		if g.State != grant.Waiting {
			d.resolve(g.Tx)
		}
	case g.State == grant.Waiting || g.State == grant.Reserved && !sameMembers(g.Members, d.l.places.reindex(r.Members)):
		// The record names a protected promise; the local promise gives way.
		d.leave(g, Dropped{g.Tx, 0})
	default:
		delete(listed, g.Tx)
		d.meetRecord(g, r, old)
	}
}

// meetRecord decides a local grant whose record is listed.
func (d *decision) meetRecord(g *entry, r *Record, old bool) {
	ends := r.State == grant.RecordEvicting || r.State == grant.RecordReleasing
	// The machine has started anew under the same journal: that has forgotten
	// nothing, so nothing of the grant runs. model: mutant BURY_WHAT_RUNS
	died := g.Incarnation.BootID != d.l.incarnation.BootID && g.Incarnation.JournalID == d.l.incarnation.JournalID
	switch {
	case ends && died && g.State != grant.Tombstone:
		d.leave(g, Buried{g.Tx, r.Revision})
		return
	case ends:
		d.follow(g, r)
		if g.State.Holds() {
			d.yielding = append(d.yielding, yielding{g, r})
		}
		return
	case r.State == grant.RecordCommitted && (g.State == grant.Evicting || g.State == grant.Stopping):
		// Its end is lost with the records that a restored store has lost.
		d.emit(Committed{g.Tx, r.Revision})
		return
	case r.State == grant.RecordCommitted && g.State == grant.Tombstone:
		d.alarm("transaction %s is COMMITTED at revision %d and %s here: its devices are not protected", g.Tx, r.Revision, g.State)
		return
	case d.follow(g, r):
		return
	case old && g.State.Holds():
		d.yielding = append(d.yielding, yielding{g, nil})
	}
	d.resolve(g.Tx)
}

// leave ends a grant and frees its part of scratch for the records that are
// adopted after it.
func (d *decision) leave(g *entry, e Event) {
	d.end(g, e)
	if g.State == grant.Waiting {
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

// adopt takes in a record for which there is no grant. One that is being ended
// is stopped first, whatever the time of its Yes: it may have been adopted and
// started in this boot by a journal that is gone.
func (d *decision) adopt(r *Record) {
	state := grant.Held
	switch r.State {
	case grant.RecordCommitted:
	case grant.RecordEvicting:
		state = grant.Evicting
	case grant.RecordReleasing:
		state = grant.Stopping
	default:
		return
	}
	if state != grant.Held && len(r.Members) == 0 {
		d.emit(Buried{r.Tx, r.Revision})
		return
	}
	if problem := adoptable(r); problem != "" {
		d.alarm("transaction %s is %s at revision %d and cannot be adopted: %s", r.Tx, r.State, r.Revision, problem)
		return
	}
	add := Grant{
		Tx: r.Tx, Unit: r.Unit, Epoch: r.Epoch, State: state, Revision: r.Revision, Name: clipped(r.Name, MaxName), Tenant: resource.TenantID(clipped(string(r.Tenant), MaxText)),
		Since: d.now, Deadline: d.now.Add(r.Grace), Grace: r.Grace, UnitMembers: unitMembers(r),
	}
	var gone []*entry
	for _, m := range d.l.places.reindex(r.Members) {
		if err := d.claim(r, &m.Assignment, &gone); err != nil {
			d.unclaim(add.Members, gone)
			d.cannotAdopt(r, state, m, err)
			return
		}
		m.Assignment = m.Assignment.Clone()
		add.Members = append(add.Members, m)
	}
	for _, g := range gone {
		d.alarm("transaction %s is %s here and had ended: it gives way to %s, which is %s with its devices at revision %d", g.Tx, g.State, r.Tx, r.State, r.Revision)
		d.end(g, Buried{g.Tx, 0})
	}
	d.adopted = append(d.adopted, r)
	d.emit(Granted{add})
}

// cannotAdopt deals with a record whose devices somebody has. One that is being
// ended was freed here before they were promised to the other, which is listed
// too: only its other hosts are still to free theirs.
func (d *decision) cannotAdopt(r *Record, state grant.State, m Holding, why error) {
	if state == grant.Held || !d.isTaken(&m.Assignment) {
		d.alarm("transaction %s is %s at revision %d and cannot be adopted: member %d: %v", r.Tx, r.State, r.Revision, m.Index, why)
		return
	}
	d.emit(Buried{r.Tx, r.Revision})
}

// isTaken reports whether a transaction has something of an assignment.
func (d *decision) isTaken(a *resource.Assignment) bool {
	for _, r := range d.adopted {
		if overlaps(r.Members, a) {
			return true
		}
	}
	for _, g := range d.l.grants {
		if g.Origin == OriginTxn && g.State.Holds() && !slices.Contains(d.ended, g.Tx) && overlaps(g.Members, a) {
			return true
		}
	}
	return false
}

// claim takes an assignment of a record for its adoption. Where that fails,
// grants that have ended give way; those that must go are added to gone.
func (d *decision) claim(r *Record, a *resource.Assignment, gone *[]*entry) error {
	err := d.l.scratch.take(a)
	for _, g := range d.yielding { // model: mutant REVIVED_STAYS
		if err == nil {
			break
		}
		claimed := g.claimed != "" && !slices.Contains(d.ended, g.claimed)
		if !g.to(r) || claimed || slices.Contains(d.ended, g.Tx) || slices.Contains(*gone, g.entry) || !overlaps(g.Members, a) {
			continue
		}
		for i := range g.Members {
			d.l.scratch.give(&g.Members[i].Assignment)
		}
		*gone = append(*gone, g.entry)
		err = d.l.scratch.take(a)
	}
	return err
}

// unclaim undoes claim.
func (d *decision) unclaim(taken []Holding, gone []*entry) {
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
func overlaps(members []Holding, a *resource.Assignment) bool {
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

// adoptable returns the reason that keeps a record from becoming a grant, or
// "".
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

// unitMembers is how many members a record's unit has, or 0 where the record
// contradicts itself: what runs is adopted all the same.
func unitMembers(r *Record) int {
	if r.UnitMembers > MaxUnitMembers || r.UnitMembers <= r.Members[len(r.Members)-1].Index {
		return 0
	}
	return r.UnitMembers
}

// clipped is a text that a journal record can hold, or "".
func clipped(text string, most int) string {
	if len(text) > most {
		return ""
	}
	return text
}
