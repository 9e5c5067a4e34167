package ledger_test

import (
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// quarantine lets the store go back, tries everything on the agent, and lets an
// operator end it.
func (w *world) quarantine() {
	if w.ledger.Heard() < 2 {
		return
	}
	w.seen["quarantines"]++
	before := w.ledger.Snapshot()
	back := 1 + resource.Revision(w.rng.Int64N(int64(before.Heard)-1))
	reply := w.run(ledger.Registered{Revision: 1, Store: back, Heard: before.Heard, Records: w.strangers()})
	if len(reply.Alarms) != 1 || w.ledger.Quarantine() != (ledger.Quarantine{Heard: before.Heard, Store: back}) {
		w.t.Fatalf("heard of %d, the store is at %d: %+v, alarms %v", before.Heard, back, w.ledger.Quarantine(), reply.Alarms)
	}
	for range 20 {
		w.now = w.now.Add(time.Duration(w.rng.IntN(20)) * time.Second)
		w.knock(w.any())
	}
	if w.rng.IntN(2) == 0 {
		w.journal, w.passed = nil, nil
		w.remember(ledger.AppendEvents(nil, w.ledger.SnapshotEvents()))
	}
	w.ledger, w.replica = w.replayed(), w.replayed()
	if diff := cmp.Diff(before.Grants, w.ledger.Snapshot().Grants); diff != "" {
		w.t.Fatalf("the quarantine has changed: %s", diff)
	}
	w.reconcile(back)
}

// strangers are records that would be adopted, were the store believed.
func (w *world) strangers() []ledger.Record {
	gpu := w.hosts[w.host].Inventory().Devices[0]
	return []ledger.Record{{Tx: "stranger", State: grant.RecordCommitted, Revision: 1, Members: []ledger.Holding{{
		Assignment: resource.Assignment{GPUs: []resource.GPUGrant{{UUID: gpu.UUID, Milli: 1000}}},
	}}}}
}

// knock tries a command in quarantine: none of a leader is obeyed.
func (w *world) knock(tx resource.TxID) {
	epoch := w.epoch + 1000
	commands := []ledger.Command{
		gpus("new", epoch, 1),
		grant.Commit{Tx: tx, Epoch: epoch, Revision: 9},
		grant.Abort{Tx: tx, Epoch: epoch},
		grant.Release{Tx: tx, Epoch: epoch},
		grant.Evict{Tx: tx, Epoch: epoch},
		grant.Forget{Tx: tx},
		ledger.Stopped{Tx: tx},
		ledger.Tick{},
		ledger.NewEpoch{Epoch: epoch},
		ledger.Resolved{Tx: tx, State: grant.RecordState(w.rng.IntN(6)), Revision: 9},
		ledger.Registered{Revision: 1, Store: 1 << 40, Records: w.strangers()},
		ledger.Start{Incarnation: w.ledger.Incarnation()},
		grant.Reconcile{Epoch: 9, Revision: 8},
		grant.Reconcile{Epoch: 9, Revision: 9, Adopted: []resource.TxID{tx}, Released: []resource.TxID{tx}},
	}
	records := len(w.journal)
	at := w.rng.IntN(len(commands))
	reply := w.run(commands[at])
	if len(w.journal) != records || len(reply.Resolve)+len(reply.Stop)+len(reply.Alarms) > 0 {
		w.t.Fatalf("in quarantine %+v gives %+v and %d events", commands[at], reply, len(w.journal)-records)
	}
	if of := at < 6; of && (len(reply.Reasons) != 1 || reply.Reasons[0].Code != resource.ReasonQuarantined) {
		w.t.Fatalf("in quarantine %+v is answered %+v", commands[at], reply)
	}
	if at, ok := w.ledger.Next(); ok {
		w.t.Fatalf("in quarantine something is due at %v", at)
	}
	w.run(grant.Cordon{Cordoned: w.rng.IntN(2) == 0})
	w.run(ledger.SetHealth{Device: 0, Health: devices.OK})
	w.health[w.hosts[w.host].Inventory().Devices[0].UUID] = ledger.HealthChanged{Health: devices.OK}
	w.verify("quarantine")
}

// reconcile ends the quarantine: some are released, the others have records.
func (w *world) reconcile(back resource.Revision) {
	w.run(grant.Cordon{})
	c := grant.Reconcile{Epoch: resource.Epoch(back), Revision: back + 3, Grace: time.Second}
	for tx, s := range w.state {
		switch {
		case s != grant.Held && s != grant.Evicting:
		case w.rng.IntN(3) == 0:
			c.Released = append(c.Released, tx)
		default:
			c.Adopted = append(c.Adopted, tx)
		}
	}
	for range 2 {
		w.run(c)
	}
	w.epoch, w.latest, w.gone = c.Epoch, c.Revision, nil
	if v := w.ledger.Snapshot(); !v.Quarantine.IsZero() || v.Registered != 0 || v.Epoch != c.Epoch || v.Heard != c.Revision {
		w.t.Fatalf("after %+v: %+v", c, v)
	}
	w.verify("reconciled")
	if reply := w.run(gpus("new", w.epoch, 1)); !reply.Refused() || reply.Reasons[0].Code != resource.ReasonUnregistered {
		w.t.Fatalf("promised before the registration: %+v", reply)
	}
	if w.rng.IntN(2) == 0 {
		w.journal, w.passed = nil, nil
		w.remember(ledger.AppendEvents(nil, w.ledger.SnapshotEvents()))
		w.ledger, w.replica = w.replayed(), w.replayed()
	}
	adopted := map[resource.TxID]bool{}
	for _, tx := range c.Adopted {
		adopted[tx] = true
	}
	for _, tx := range c.Released {
		adopted[tx] = w.rng.IntN(3) == 0 // by the next leader: the order was one of a deposed one
	}
	w.rejoin(adopted)
}

// rejoin registers after a quarantine: adopted grants are COMMITTED, though
// they were under notice, or released; grants that were only released are
// stopped; reservations are resolved as ever.
func (w *world) rejoin(adopted map[resource.TxID]bool) {
	var records []ledger.Record
	for tx, listed := range adopted {
		if !listed {
			continue
		}
		g, _ := w.ledger.Lookup(tx)
		records = append(records, ledger.Record{Tx: tx, State: grant.RecordCommitted, Members: g.Members, Revision: w.revision()})
	}
	reply := w.run(ledger.Registered{Revision: 1, Store: w.revision(), Heard: w.ledger.Heard(), Records: records})
	if len(reply.Alarms) > 0 {
		w.t.Fatalf("after the quarantine: %v", reply.Alarms)
	}
	for tx, listed := range adopted {
		if w.enter(tx, grant.Stopping); listed {
			w.enter(tx, grant.Held)
		}
	}
	for tx, s := range w.state {
		if resolved := slices.Contains(reply.Resolve, tx); resolved == (s == grant.Held || s == grant.Waiting) && s != grant.Stopping {
			w.t.Fatalf("%s is %s, resolved: %v", tx, s, resolved)
		}
	}
	w.verify("registered again")
}
