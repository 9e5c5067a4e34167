package ledger

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Apply changes the ledger by one event, in the order in which Decide returned
// them. It never fails on an event that Decide made of this state; an error
// names an event that contradicts the ones before it, and then the ledger is of
// no use any more.
func (l *Ledger) Apply(event Event) error {
	switch e := event.(type) {
	case Started:
		l.applyStarted(e)
	case Enrolled:
		l.registered = e.Revision
		l.hear(max(e.Revision, e.Store))
		for _, g := range l.grants {
			g.Incarnation, g.Disowned = l.incarnation, false
		}
	case EpochRaised:
		l.epoch = max(l.epoch, e.Epoch)
		l.hear(resource.Revision(e.Epoch)) // it was a revision of the store
	case Granted:
		return l.applyGranted(&e.Grant)
	case CordonSet:
		l.cordoned = e.Cordoned
	case KubeletPoolSet:
		l.wish = grant.KubeletPool(e).Clone()
	case HealthChanged:
		l.applyHealth(e)
	case Buried:
		return l.applyBuried(e)
	case Quarantined:
		l.quarantine = Quarantine(e)
		l.hear(e.Heard)
	case Reconciled:
		return l.applyReconciled(e)
	case Marked:
		l.marks = Marks(e)
	default:
		return l.applyChange(event)
	}
	return nil
}

// Replay applies the payloads of a journal, each as AppendEvents made it.
func (l *Ledger) Replay(payloads [][]byte) error {
	for i, p := range payloads {
		events, err := ParseEvents(p)
		if err != nil {
			return fmt.Errorf("journal corrupt at record %d of %d: %w", i+1, len(payloads), err)
		}
		for _, e := range events {
			if err := l.Apply(e); err != nil {
				return fmt.Errorf("journal corrupt at record %d of %d: %w", i+1, len(payloads), err)
			}
		}
	}
	return nil
}

// applyStarted takes up another incarnation. After a reboot the time line is a
// new one, so every deadline starts anew.
func (l *Ledger) applyStarted(e Started) {
	if e.Incarnation.BootID != l.incarnation.BootID {
		for _, g := range l.grants {
			g.Since = e.At
			switch g.State {
			case grant.Waiting, grant.Reserved:
				g.Deadline = e.At.Add(g.TTL)
			case grant.Evicting, grant.Stopping:
				g.Deadline = e.At.Add(g.Grace)
			}
		}
	}
	l.incarnation, l.startedAt, l.registered = e.Incarnation, e.At, 0
	l.hear(e.Heard)
	l.forgotten = later(l.forgotten, e.Forgotten)
}

// hear records a revision of the store.
func (l *Ledger) hear(r resource.Revision) { l.heard = max(l.heard, r) }

// applyGranted adds a grant and takes the resources that it holds or blocks.
func (l *Ledger) applyGranted(add *Grant) error {
	if old := l.grants[add.Tx]; old != nil {
		return fmt.Errorf("grant %s as %s: it is %s already", add.Tx, add.State, old.State)
	}
	g := l.newGrant()
	g.Grant = *add
	if g.Incarnation.IsZero() {
		g.Incarnation = l.incarnation
	}
	g.Members = l.places.reindex(add.Members)
	switch {
	case add.State.Holds():
		for i := range g.Members {
			if err := l.own.take(&g.Members[i].Assignment); err != nil {
				for k := range i {
					l.own.give(&g.Members[k].Assignment)
				}
				return fmt.Errorf("grant %s as %s, member %d: %w", add.Tx, add.State, g.Members[i].Index, err)
			}
		}
	case add.State == grant.Waiting:
		for _, v := range add.Victims {
			victim := l.grants[v]
			if victim == nil || !victim.State.Holds() || victim.claimed != "" {
				return fmt.Errorf("grant %s as WAITING: its victim %s does not hold, or is claimed by another", add.Tx, v)
			}
			victim.claimed = add.Tx
		}
		if err := l.block(g); err != nil {
			return fmt.Errorf("grant %s as WAITING: %w", add.Tx, err)
		}
	}
	if add.State != grant.Tombstone {
		g.hash = GrantHash(g.Tx, g.Members)
		l.hash += g.hash
	}
	l.grants[add.Tx] = g
	return nil
}

// maxSpare bounds Ledger.spare.
const maxSpare = 256

// newGrant returns a zero grant, if possible one that recycle took.
func (l *Ledger) newGrant() *entry {
	if n := len(l.spare); n > 0 {
		g := l.spare[n-1]
		l.spare = l.spare[:n-1]
		return g
	}
	return &entry{}
}

// recycle takes a grant that nothing refers to any more.
func (l *Ledger) recycle(g *entry) {
	if len(l.spare) < maxSpare {
		*g = entry{}
		l.spare = append(l.spare, g)
	}
}

// applyBuried turns a grant into a tombstone, and hands its resources to the
// Waiting grant that claims them.
func (l *Ledger) applyBuried(e Buried) error {
	l.hear(e.Revision)
	g := l.grants[e.Tx]
	if g == nil {
		l.grants[e.Tx] = &entry{Grant: Grant{Tx: e.Tx, State: grant.Tombstone, Incarnation: l.incarnation}}
		return nil
	}
	if !g.State.MayBecome(grant.Tombstone) {
		return fmt.Errorf("bury %s: it is a tombstone already", e.Tx)
	}
	err := l.leave(g)
	g.State, g.Members, g.WasWaiting = grant.Tombstone, nil, false
	return err
}

// leave ends a grant's hold; in the same step, the resources that a Waiting
// grant awaits of it are blocked for that Waiting grant.
func (l *Ledger) leave(g *entry) error {
	waiting := l.grants[g.claimed]
	g.claimed = ""
	if waiting != nil {
		l.own.give(&waiting.blocked)
		waiting.blocked = resource.Assignment{}
		waiting.Victims = slices.DeleteFunc(slices.Clone(waiting.Victims), func(tx resource.TxID) bool { return tx == g.Tx })
	}
	l.vacate(g)
	if waiting == nil {
		return nil
	}
	if err := l.block(waiting); err != nil {
		return fmt.Errorf("end %s for %s: %w", g.Tx, waiting.Tx, err)
	}
	return nil
}

// vacate gives back the resources that a grant holds or blocks, and takes it
// out of the hash.
func (l *Ledger) vacate(g *entry) {
	if g.State.Holds() {
		for i := range g.Members {
			l.own.give(&g.Members[i].Assignment)
		}
	}
	if g.State == grant.Waiting {
		l.own.give(&g.blocked)
		g.blocked = resource.Assignment{}
		for _, v := range g.Victims {
			l.grants[v].claimed = ""
		}
		g.Victims = nil
	}
	l.hash -= g.hash
	g.hash = 0
}

// applyChange applies the events that change one grant in place.
func (l *Ledger) applyChange(event Event) error {
	switch e := event.(type) {
	case Committed:
		g, err := l.mayBecome(grant.Held, "commit", e.Tx)
		if err != nil {
			return err
		}
		g.State, g.Revision, g.WasWaiting = grant.Held, e.Revision, false
		l.hear(e.Revision)
	case Renewed:
		g, err := l.expect("renew", e.Tx, grant.Waiting, grant.Reserved)
		if err != nil {
			return err
		}
		g.Epoch, g.Deadline = e.Epoch, e.Deadline
	case Promoted:
		g, err := l.mayBecome(grant.Reserved, "promote", e.Tx)
		if err != nil {
			return err
		}
		if len(g.Victims) > 0 {
			return fmt.Errorf("promote %s: it still waits for %v", e.Tx, g.Victims)
		}
		l.promote(g)
		g.Deadline = e.Deadline
	case Noticed:
		g, err := l.mayBecome(grant.Evicting, "evict", e.Tx)
		if err != nil {
			return err
		}
		g.State, g.By, g.Since, g.Deadline, g.Grace, g.WasWaiting = grant.Evicting, e.By, e.Since, e.Deadline, e.Grace, false
		l.hear(e.Revision)
	case StopBegun:
		g, err := l.mayBecome(grant.Stopping, "stop", e.Tx)
		if err != nil {
			return err
		}
		g.State, g.Since, g.Deadline, g.Grace, g.Reason, g.WasWaiting = grant.Stopping, e.Since, e.Deadline, e.Grace, e.Reason, false
		l.hear(e.Revision)
	case Dropped:
		g, err := l.mayBecome(grant.None, "drop", e.Tx)
		if err != nil {
			return err
		}
		if g.State == grant.Held && g.Origin != OriginOrphan && g.Origin != OriginKubelet {
			return fmt.Errorf("drop %s: it is HELD, from which only orphans and grants of the kubelet are dropped", e.Tx)
		}
		if g.State == grant.Tombstone {
			l.forget(g.Tx)
		}
		l.hear(e.Revision)
		delete(l.grants, e.Tx)
		err = l.leave(g)
		l.recycle(g)
		return err
	default:
		return fmt.Errorf("apply %T: no such event", event)
	}
	return nil
}

// mayBecome returns the grant if the table of package grant has a step from its
// state to another.
func (l *Ledger) mayBecome(to grant.State, what string, tx resource.TxID) (*entry, error) {
	g := l.grants[tx]
	if g == nil {
		return nil, fmt.Errorf("%s %s: there is no such grant", what, tx)
	}
	if !g.State.MayBecome(to) {
		return nil, fmt.Errorf("%s %s: it is %s, from which no step leads to %s", what, tx, g.State, to)
	}
	return g, nil
}

// expect returns the grant if it is in one of the states.
func (l *Ledger) expect(what string, tx resource.TxID, states ...grant.State) (*entry, error) {
	g := l.grants[tx]
	if g == nil {
		return nil, fmt.Errorf("%s %s: there is no such grant", what, tx)
	}
	if !slices.Contains(states, g.State) {
		return nil, fmt.Errorf("%s %s: it is %s, want one of %v", what, tx, g.State, states)
	}
	return g, nil
}
