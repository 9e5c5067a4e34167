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
	// Heard is the highest revision that this agent had seen, Store the store's
	// revision.
	Heard, Store resource.Revision
}

// IsZero reports whether there is no quarantine.
func (q Quarantine) IsZero() bool { return q == Quarantine{} }

// String describes it in plain words, with the way out; "" without a
// quarantine.
func (q Quarantine) String() string {
	if q.IsZero() {
		return ""
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

// wentBack reports whether the store that a registration saw is an older one.
func (c *Registered) wentBack() bool { return c.Store > 0 && c.Store < c.Heard }

// isolate begins a quarantine. The registration stays.
func (d *decision) isolate(c *Registered) {
	q := Quarantine{Heard: c.Heard, Store: c.Store}
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

// reconcile ends the quarantine. Released grants are stopped only once the
// registration that follows has shown that the store has no record of it: the
// order may come from a leader that was deposed, and the next one may have
// adopted it. Reservations stay: a commit that is under way may still count on
// them, and after the registration they are resolved as ever.
func (d *decision) reconcile(c grant.Reconcile) {
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
	d.reply.Registered = 0
}

// applyReconciled begins anew with a store whose revisions and epochs are lower.
func (l *Ledger) applyReconciled(e Reconciled) error {
	l.quarantine, l.registered, l.epoch = Quarantine{}, 0, e.Epoch
	l.heard, l.forgotten = max(e.Revision, resource.Revision(e.Epoch)), Attempt{}
	for _, g := range l.grants {
		g.Revision = min(g.Revision, e.Revision)
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
