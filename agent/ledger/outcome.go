package ledger

import (
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file decides the outcome of a transaction: one function per column of
// the table in PROTOCOL.md section 4.

func (d *decision) commit(c grant.Commit) {
	g, ok := d.admit(c.Tx, c.Epoch)
	if !ok {
		return
	}
	switch {
	case g == nil || g.State == grant.Tombstone:
		// An old message, or a lost promise: only the record decides.
		d.resolve(c.Tx)
	case g.State == grant.Waiting:
		d.alarm("transaction %s is COMMITTED although this host only answered Waiting", c.Tx)
	case g.State == grant.Reserved:
		d.emit(Committed{c.Tx, c.Revision})
		d.become(grant.Held, g.Members)
	}
}

func (d *decision) abort(c grant.Abort) {
	g, ok := d.admit(c.Tx, c.Epoch)
	if !ok || g == nil {
		return
	}
	switch g.State {
	case grant.Waiting, grant.Reserved:
		d.drop(g, 0)
	case grant.Held, grant.Evicting, grant.Stopping:
		d.alarm("transaction %s is %s here and ABORTED for the leader: it stays as it is", c.Tx, g.State)
	}
}

func (d *decision) release(c grant.Release) {
	g, ok := d.admit(c.Tx, c.Epoch)
	if !ok || d.tooLong("reason", c.Reason) || d.tooLong("tx", string(c.Tx)) {
		return
	}
	switch {
	case g == nil || g.State == grant.Waiting || g.State == grant.Reserved:
		// No workload starts before COMMITTED was seen here.
		d.bury(c.Tx, g, 0)
	case g.State == grant.Held:
		d.stop(g, c.Grace, c.Reason, 0)
	}
}

func (d *decision) evict(c grant.Evict) {
	g, ok := d.admit(c.Tx, c.Epoch)
	if !ok || d.tooLong("by", string(c.By)) {
		return
	}
	switch {
	case g == nil:
		d.resolve(c.Tx)
	case g.State == grant.Reserved || g.State == grant.Held || g.State == grant.Evicting:
		d.notice(g, c.By, c.Grace, 0)
	}
}

// tooLong refuses a text that no journal record should hold.
func (d *decision) tooLong(field, text string) bool {
	if len(text) <= MaxText {
		return false
	}
	d.refuse(resource.Reason{Code: resource.ReasonInvalidRequest, Want: int64(len(text)), Have: MaxText, Detail: field + " is too long, in bytes"})
	return true
}

func (d *decision) forget(c grant.Forget) {
	d.reply.Tx = c.Tx
	if !d.enrolled() {
		return
	}
	if g := d.l.grants[c.Tx]; g != nil && g.State == grant.Tombstone {
		d.drop(g, 0)
	}
}

// stopped ends a grant whose end is due, unless its preemptor would wake on a
// busy device. Before the registration it stays: after a quarantine an operator
// may have given it a new record, by which it is held again.
func (d *decision) stopped(c Stopped) {
	d.reply.Tx = c.Tx
	if d.l.registered == 0 {
		return
	}
	g := d.l.grants[c.Tx]
	if g == nil || g.State != grant.Evicting && g.State != grant.Stopping || d.l.wakesOnBusy(g, c.Busy) { // model: mutant ORPHAN_HANDED_OUT
		return
	}
	d.bury(c.Tx, g, 0)
}

// resolved follows the record, whichever messages were missed on the way.
func (d *decision) resolved(c Resolved) {
	d.reply.Tx = c.Tx
	g := d.l.grants[c.Tx]
	state := grant.None
	if g != nil {
		state = g.State
	}
	switch c.State {
	case grant.RecordCommitted:
		d.sawCommitted(c, g, state)
	case grant.RecordAborted:
		switch state {
		case grant.Waiting, grant.Reserved, grant.Tombstone:
			d.drop(g, c.Revision)
		case grant.Held, grant.Evicting, grant.Stopping:
			d.alarm("transaction %s is %s here and its record is ABORTED: it stays as it is", c.Tx, state)
		}
	case grant.RecordEvicting:
		switch state {
		case grant.None:
			d.bury(c.Tx, nil, c.Revision)
		case grant.Reserved, grant.Held:
			d.notice(g, "", c.Grace, c.Revision)
		}
	case grant.RecordReleasing:
		switch state {
		case grant.None, grant.Waiting, grant.Reserved:
			d.bury(c.Tx, g, c.Revision)
		case grant.Held:
			d.stop(g, c.Grace, "", c.Revision)
		}
	case grant.RecordReleased:
		switch state {
		case grant.Waiting, grant.Reserved, grant.Tombstone:
			d.drop(g, c.Revision)
		case grant.Held:
			d.stop(g, c.Grace, "its record is RELEASED", c.Revision)
		}
	case grant.RecordAbsent:
		switch state {
		case grant.Tombstone:
			d.drop(g, c.Revision) // it was terminal and is deleted
		case grant.Held, grant.Evicting, grant.Stopping:
			d.alarm("transaction %s is %s here and has no record: an operator adopts or releases it", c.Tx, state)
		}
	}
}

func (d *decision) sawCommitted(c Resolved, g *entry, state grant.State) {
	switch state {
	case grant.None, grant.Tombstone:
		if state != c.Asked {
			d.resolve(c.Tx) // it was read before the transaction ended here
			return
		}
		d.alarm("transaction %s is COMMITTED at revision %d and %s here: its devices are not protected", c.Tx, c.Revision, state)
	case grant.Waiting:
		d.alarm("transaction %s is COMMITTED although this host only answered Waiting", c.Tx)
	case grant.Reserved:
		d.emit(Committed{c.Tx, c.Revision})
		d.become(grant.Held, g.Members)
	case grant.Held:
		if c.Revision > g.Revision {
			d.emit(Committed{c.Tx, c.Revision})
		}
	}
}
