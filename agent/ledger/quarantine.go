package ledger

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is the last row of PROTOCOL.md section 5: a store that was restored
// from an old backup, and has lost records of grants here.

// Quarantine is the evidence that the store went back. The zero value is no
// quarantine.
type Quarantine struct {
	// Heard is the highest revision seen by this agent. Store is the store's revision, which
	// may be higher by now.
	Heard, Store resource.Revision
}

// Marks are the agent's knowledge of the store's past beside revisions.
type Marks struct {
	// Epoch and Term are of the newest term in the store at a registration.
	Epoch resource.Epoch
	Term  string
	// Restored is the mark of the last restoration of the store accepted by this agent,
	// by a first registration or by a reconciliation. AnyRestored accepts the mark of the
	// next registration.
	Restored string
}

// AnyRestored is the mark between a reconciliation and the registration that follows.
const AnyRestored = "*"

// Marks returns the agent's knowledge of the store's past.
func (l *Ledger) Marks() Marks { return l.marks }

// Newest returns a transaction and a revision at which the store had the record, the
// newest of all grants; "" and 0 without a grant.
func (l *Ledger) Newest() (tx resource.TxID, at resource.Revision) {
	for _, g := range l.grants {
		if g.Origin == OriginTxn && g.Revision > at {
			tx, at = g.Tx, g.Revision
		}
	}
	return tx, at
}

// AcceptsAny reports whether no restoration of the store concerns the agent: before the
// first registration and without a transaction, or after a reconciliation.
func (l *Ledger) AcceptsAny() bool {
	if l.marks.Restored == AnyRestored {
		return true
	}
	if l.marks != (Marks{}) || l.registered > 0 || !l.quarantine.IsZero() {
		return false
	}
	for _, g := range l.grants {
		if g.Origin == OriginTxn {
			return false
		}
	}
	return true
}

// IsZero reports whether there is no quarantine.
func (q Quarantine) IsZero() bool { return q == Quarantine{} }

// String describes it in plain words, with the way out; "" without a
// quarantine.
func (q Quarantine) String() string {
	if q.IsZero() {
		return ""
	}
	if q.Store >= q.Heard {
		return fmt.Sprintf("the store was restored from an old backup, is at revision %d since, and this agent has heard of revision %d before: "+
			"what runs goes on, nothing new is promised until `muster reconcile` adopts or releases it", q.Store, q.Heard)
	}
	return fmt.Sprintf("the store is at revision %d and this agent has heard of revision %d: it was restored from an old backup; "+
		"what runs goes on, nothing new is promised until `muster reconcile` adopts or releases it", q.Store, q.Heard)
}

// Quarantine returns the present one, the zero value for none.
func (l *Ledger) Quarantine() Quarantine { return l.quarantine }

// Known reports whether the leader may get the ledger's grants: once this
// incarnation has registered, and always in quarantine, for an operator has to
// see it.
func (l *Ledger) Known() bool { return l.registered > 0 || !l.quarantine.IsZero() }

// wentBack reports whether a registration saw an older store, by the revision or by the
// coordinator's finding.
func (c *Registered) wentBack() bool { return c.Store > 0 && c.Store < c.Heard || c.Lost }

// isolate begins a quarantine. The registration stays.
func (d *decision) isolate(c *Registered) {
	q := Quarantine{Heard: c.Heard, Store: c.Store}
	if c.Lost {
		q.Heard = d.l.heard
	}
	d.emit(Quarantined(q))
	d.alarm("quarantine: %s", q)
}

// quarantined answers a command in quarantine: nothing is promised, stopped,
// adopted, freed or fenced, however the store's records look.
func (d *decision) quarantined(cmd Command) {
	switch c := cmd.(type) {
	case grant.Reserve:
		d.keepOut(c.Tx)
	case grant.Commit:
		d.keepOut(c.Tx)
	case grant.Abort:
		d.keepOut(c.Tx)
	case grant.Release:
		d.keepOut(c.Tx)
	case grant.Evict:
		d.keepOut(c.Tx)
	case grant.Forget:
		d.keepOut(c.Tx)
	case Resolved:
		d.reply.Tx = c.Tx
	case Stopped:
		d.reply.Tx = c.Tx
	case Start:
		if c.Incarnation != d.l.incarnation {
			d.restart(c)
		}
	case grant.Cordon:
		d.cordon(c)
	case grant.KubeletPool: // no device changes hands before the quarantine ends
		d.setKubeletPool(c)
	case SetHealth:
		d.setHealth(c)
	case grant.Reconcile:
		d.reconcile(c)
	case Lend: // nothing becomes free, and nothing is taken
		d.lend(c)
	case Registered, NewEpoch, Observed, Pool, Return, Tick:
	default:
		panic(fmt.Sprintf("ledger: decide %T: no such command", cmd))
	}
}

func (d *decision) keepOut(tx resource.TxID) {
	d.reply.Tx = tx
	q := d.l.quarantine
	d.refuse(resource.Reason{Code: resource.ReasonQuarantined, Want: int64(q.Heard), Have: int64(q.Store), Detail: q.String()})
}

// reconcile ends the quarantine, and has the agent register anew in any case.
// Released grants are stopped only once the
// registration that follows has shown that the store has no record of it: the
// order may come from a leader that was deposed, and the next one may have
// adopted it. Reservations stay: a commit that is under way may still count on
// them, and after the registration they are resolved as ever.
func (d *decision) reconcile(c grant.Reconcile) {
	if d.l.quarantine.IsZero() {
		if c.Epoch < d.l.epoch {
			d.refuse(resource.Reason{Code: resource.ReasonStaleEpoch, Want: int64(d.l.epoch), Have: int64(c.Epoch)})
			return
		}
		if c.Revision <= d.l.reconciled { // a repetition
			return
		}
	}
	if c.Epoch < 1 || c.Revision < resource.Revision(c.Epoch) || c.Grace < 0 {
		d.refuse(resource.Reason{Code: resource.ReasonInvalidRequest, Detail: fmt.Sprintf(
			"reconcile: epoch %d, revision %d, grace %s: want 1 <= epoch <= revision, and no negative grace", c.Epoch, c.Revision, c.Grace)})
		return
	}
	for _, tx := range c.Released {
		if slices.Contains(c.Adopted, tx) {
			d.refuse(resource.Reason{Code: resource.ReasonInvalidRequest, Detail: fmt.Sprintf("reconcile: %s is both adopted and released", tx)})
			return
		}
	}
	released := d.l.sorted(func(g *entry) bool {
		return g.Origin == OriginTxn && (g.State == grant.Held || g.State == grant.Evicting) && slices.Contains(c.Released, g.Tx)
	})
	d.emit(Reconciled{c.Epoch, c.Revision, released, c.Grace})
	d.emit(Marked{Restored: AnyRestored})
	d.reply.Registered = 0
}

// applyReconciled begins anew with a store whose revisions and epochs are lower.
func (l *Ledger) applyReconciled(e Reconciled) error {
	l.quarantine, l.registered, l.epoch, l.reconciled = Quarantine{}, 0, e.Epoch, e.Revision
	l.heard, l.forgotten = max(e.Revision, resource.Revision(e.Epoch)), Attempt{}
	for _, g := range l.grants {
		g.Revision = 0 // of the lost store; the registration brings the record's
	}
	for _, tx := range e.Released {
		g, err := l.expect("release", tx, grant.Held, grant.Evicting)
		if err != nil {
			return err
		}
		g.Disowned, g.Grace = true, max(g.Grace, e.Grace)
	}
	return nil
}
