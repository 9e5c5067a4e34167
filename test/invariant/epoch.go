package invariant

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is I12: after an epoch is known somewhere, none before it has an
// effect there.

// tenure says who leads from a revision on; epoch 0 is nobody.
type tenure struct {
	from  resource.Revision
	epoch resource.Epoch
}

// Write is a Txn that only a leader may send, and that landed. That the code
// compares the leader's key is not taken for granted.
type Write struct {
	Revision resource.Revision
	What     string
	Epoch    resource.Epoch // of the leader that sent it, or that it compares
}

// Wrote says that a leader's Txn has landed. The checker may not know the
// revision yet.
func (c *Checker) Wrote(w Write) []Violation {
	if c.writes[w.Revision] = w; w.Revision <= c.state.revision {
		c.checkWrite(w)
	}
	return c.taken()
}

// reign notes who leads after a revision, and checks what has landed up to it.
func (c *Checker) reign(revision resource.Revision) {
	leader := c.state.leader()
	if n := len(c.tenures); n == 0 && len(c.state.candidates) > 0 || n > 0 && c.tenures[n-1].epoch != leader {
		c.tenures = append(c.tenures, tenure{revision, leader})
	}
	for _, at := range slices.Sorted(maps.Keys(c.writes)) {
		if at <= revision {
			c.checkWrite(c.writes[at])
		}
	}
}

// checkWrite holds a Txn against who led when it landed.
func (c *Checker) checkWrite(w Write) {
	delete(c.writes, w.Revision)
	at, _ := slices.BinarySearchFunc(c.tenures, w.Revision, func(t tenure, rev resource.Revision) int { return cmp.Compare(t.from, rev) })
	if at == 0 {
		return
	}
	if leader := c.tenures[at-1].epoch; leader != w.Epoch {
		v := of(I12Writers, w.What)
		v.Have, v.Bound = int64(w.Epoch), int64(leader)
		c.report(v, "%s lands at %d in epoch %d, while %d leads", w.What, w.Revision, w.Epoch, leader)
	}
}

// ExpectAdoptions says that records of earlier epochs may be committed from now
// on: an operator adopts what a restored store has lost.
func (c *Checker) ExpectAdoptions() { c.adopting = true }

// Decision is what a ledger makes of one command.
type Decision struct {
	Node resource.NodeID
	// Seen, Heard and Quarantined are of the ledger before the command; Heard is
	// the store's revision that the agent knew when it began to register.
	Seen        resource.Epoch
	Heard       resource.Revision
	Quarantined bool
	Command     ledger.Command
	Events      []ledger.Event
}

// Decided says what a ledger has decided, before it is applied.
func (c *Checker) Decided(d Decision) []Violation {
	epoch, has := epochOf(d.Command)
	if has && epoch < d.Seen && len(d.Events) > 0 && !c.omitted[d.Node] {
		v := of(I12Commands, d.Node)
		v.Have, v.Bound = int64(epoch), int64(d.Seen)
		c.report(v, "%s has seen epoch %d and obeys %T of epoch %d", d.Node, d.Seen, d.Command, epoch)
	}
	c.checkQuarantine(d)
	return c.taken()
}

func epochOf(c ledger.Command) (resource.Epoch, bool) {
	switch c := c.(type) {
	case grant.Reserve:
		return c.Epoch, true
	case grant.Commit:
		return c.Epoch, true
	case grant.Abort:
		return c.Epoch, true
	case grant.Release:
		return c.Epoch, true
	case grant.Evict:
		return c.Epoch, true
	}
	return 0, false
}

// checkQuarantine checks that an agent which reads a store older than it knew
// goes into quarantine, and that it changes no grant there.
func (c *Checker) checkQuarantine(d Decision) {
	if r, is := d.Command.(ledger.Registered); is && r.Store < d.Heard && !d.Quarantined {
		quarantines := len(d.Events) == 1
		if quarantines {
			_, quarantines = d.Events[0].(ledger.Quarantined)
		}
		if !quarantines {
			v := of(QuarantineKept, d.Node)
			v.Have, v.Bound = int64(r.Store), int64(d.Heard)
			c.report(v, "%s had heard of revision %d, reads revision %d and makes %T of it", d.Node, d.Heard, r.Store, d.Events)
		}
	}
	if !d.Quarantined {
		return
	}
	for _, e := range d.Events {
		switch e.(type) {
		case ledger.CordonSet, ledger.HealthChanged, ledger.Started, ledger.Reconciled, ledger.Marked:
		default:
			c.report(of(QuarantineKept, d.Node), "%s is in quarantine and %T makes %T of it", d.Node, d.Command, e)
		}
	}
}

// Alarmed says that a ledger tells its operator of something that must not be.
func (c *Checker) Alarmed(node resource.NodeID, text string) []Violation {
	if c.lost[node] == 0 && !c.restored && !c.omitted[node] {
		c.report(of(AlarmRaised, node), "%s: %s", node, text)
	}
	return c.taken()
}

// promises is what an agent was heard to have promised since it let the leader
// of the newest epoch in. A promise of an older epoch that is new then is one
// that a deposed leader got.
type promises struct {
	epoch resource.Epoch // of the newest leader that was told what the agent holds
	known map[resource.TxID]bool
}

func (c *Checker) promisesOf(node resource.NodeID) *promises {
	p := c.promises[node]
	if p == nil {
		p = &promises{known: map[resource.TxID]bool{}}
		c.promises[node] = p
	}
	return p
}

// Occupied says that an agent tells the leader of an epoch all that it holds.
func (c *Checker) Occupied(node resource.NodeID, epoch resource.Epoch, txs []resource.TxID) {
	p := c.promisesOf(node)
	if epoch < p.epoch {
		return // it was sent before
	}
	p.epoch = epoch
	for _, tx := range txs {
		p.known[tx] = true
	}
}

// Answered says what an agent tells the leader of an epoch of one transaction,
// and whether that is a promise.
func (c *Checker) Answered(node resource.NodeID, epoch resource.Epoch, tx resource.TxID, promise bool) []Violation {
	p := c.promisesOf(node)
	if epoch < p.epoch {
		return c.taken() // it was sent before
	}
	if _, of, _, err := tx.Attempt(); promise && err == nil && of < p.epoch && !p.known[tx] {
		c.reportPromise(node, tx, of, p.epoch)
	}
	p.known[tx] = true
	return c.taken()
}

func (c *Checker) reportPromise(node resource.NodeID, tx resource.TxID, epoch, seen resource.Epoch) {
	v := of(I12Promises, string(node), string(tx))
	v.Have, v.Bound = int64(epoch), int64(seen)
	c.report(v, "%s promises %s of epoch %d after it has let epoch %d in", node, tx, epoch, seen)
}

// attempt is what a transaction's attempt is called.
type attempt struct {
	epoch   resource.Epoch
	counter uint64
}

// Asked says that the leader of an epoch asks an agent for a transaction.
func (c *Checker) Asked(tx resource.TxID, leader resource.Epoch) []Violation {
	_, epoch, counter, err := tx.Attempt()
	at := attempt{epoch, counter}
	switch other, used := c.attempts[at]; {
	case err != nil:
		c.report(of(NamesAttempts, tx), "a leader asks for %q: %v", tx, err)
		return c.taken()
	case epoch > leader:
		c.report(of(NamesAttempts, tx), "the leader of epoch %d asks for %s", leader, tx)
	case used && other != tx:
		c.report(of(NamesAttempts, other, tx), "attempt %d of epoch %d is %s and %s", counter, epoch, other, tx)
	}
	c.attempts[at] = tx
	return c.taken()
}
