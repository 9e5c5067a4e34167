package ledger_test

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// rehost changes the host under load: there, back, and there.
func (w *world) rehost() {
	to := w.rng.IntN(len(w.hosts))
	before := w.ledger.Snapshot()
	w.move(w.ledger, to)
	w.move(w.ledger, w.host)
	w.same("there and back", before, w.ledger.Snapshot())
	w.move(w.ledger, to)
	w.move(w.replica, to)
	w.host, w.full = to, capacity(w.hosts[to])
	w.verifyAll("rehost")
	w.seen["rehosts"]++
	for x := range w.owners.of {
		if w.full[x] == 0 {
			w.seen["rehosts with something lost"]++
			break
		}
	}
	if w.rng.IntN(8) == 0 {
		w.replayed()
	}
}

func (w *world) move(l *ledger.Ledger, to int) {
	if err := l.Rehost(w.hosts[to]); err != nil {
		w.t.Fatal(err)
	}
}

// replayed replays the journal on the present host: the end is the live ledger,
// and every prefix is a state that the live ledger passed through, with any
// hosts in between.
func (w *world) replayed() *ledger.Ledger {
	w.seen["replays"]++
	fresh := ledger.New(w.hosts[w.host])
	for i, payload := range w.journal {
		if err := fresh.Replay([][]byte{payload}); err != nil {
			w.t.Fatal(err)
		}
		p := w.passed[i]
		if p.host != w.host {
			continue
		}
		if fresh.Hash() != p.hash || fresh.Len() != p.len {
			w.t.Fatalf("after %d of %d records: %d grants with hash %x, the live ledger had %d with %x", i+1, len(w.journal), fresh.Len(), fresh.Hash(), p.len, p.hash)
		}
		if p.view != nil {
			w.same(i, p.view, fresh.Snapshot())
		}
	}
	w.same("the whole journal", w.ledger.Snapshot(), fresh.Snapshot())
	return fresh
}

// restart replays the journal into a new ledger, sometimes a compacted one,
// under the same or another incarnation, and registers where it must.
func (w *world) restart(reboot bool) {
	if w.rng.IntN(2) == 0 || len(w.journal) > 2000 {
		w.journal, w.passed = nil, nil
		w.remember(ledger.AppendEvents(nil, w.ledger.SnapshotEvents()))
	}
	w.ledger, w.replica = w.replayed(), w.replayed()
	if reboot {
		w.boots++
		w.now = boot(0)
	}
	w.run(ledger.Start{Incarnation: incarnation("j", fmt.Sprint(w.boots))})
	if reply := w.run(gpus("early", w.epoch, 1)); reboot != reply.Refused() && !w.cordonedOrFull(reply) {
		w.t.Fatalf("reserve after reboot %v: %+v", reboot, reply)
	} else if g, _ := w.ledger.Lookup("early"); !reply.Refused() && w.state["early"] == grant.None {
		w.granted(g)
	}
	if reboot {
		w.register()
	}
	w.verify("restart")
}

// cordonedOrFull reports a refusal for an ordinary reason, or a repetition.
func (w *world) cordonedOrFull(r ledger.Reply) bool {
	return r.Refused() && r.Reasons[0].Code != resource.ReasonUnregistered
}

// register meets the store after a reboot: grants that were held or are ending
// are listed, reservations only where they were committed in time.
func (w *world) register() {
	var records []ledger.Record
	after := map[resource.TxID]grant.State{}
	for tx, s := range w.state {
		g, _ := w.ledger.Lookup(tx)
		r := ledger.Record{Tx: tx, Unit: g.Unit, Epoch: g.Epoch, State: grant.RecordCommitted, Members: g.Members, Revision: w.revision()}
		switch s {
		case grant.Waiting:
			after[tx] = grant.None
			continue
		case grant.Reserved:
			after[tx] = grant.None
			if w.rng.IntN(2) == 0 {
				continue
			}
			after[tx] = grant.Held
		case grant.Held:
			after[tx] = grant.Held
			if w.rng.IntN(3) == 0 {
				r.State, after[tx] = grant.RecordReleasing, grant.Tombstone
			}
		case grant.Evicting:
			r.State, after[tx] = grant.RecordEvicting, grant.Tombstone
		case grant.Stopping:
			r.State, after[tx] = grant.RecordReleasing, grant.Tombstone
		case grant.Tombstone:
			after[tx] = grant.Tombstone
			continue
		}
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b ledger.Record) int { return w.rng.IntN(3) - 1 })
	reply := w.run(ledger.Registered{Revision: w.revision(), Store: w.latest, Heard: w.ledger.Heard(), Records: records})
	if len(reply.Alarms) > 0 {
		w.t.Fatalf("registration: %v", reply.Alarms)
	}
	// A waiting grant is dropped before its victims end, so it is not woken.
	for tx := range w.owners.waits {
		w.enter(tx, after[tx])
	}
	for tx, s := range after {
		w.enter(tx, s)
	}
	w.adoptFromNothing(records)
}

// adoptFromNothing verifies the wiped-disk path: a ledger without a journal
// adopts the records that the store lists.
func (w *world) adoptFromNothing(records []ledger.Record) {
	l := ledger.New(w.hosts[w.host])
	do(w.t, l, w.now, ledger.Start{Incarnation: incarnation("wiped", fmt.Sprint(w.boots))})
	reply := do(w.t, l, w.now, ledger.Registered{Revision: 31, Records: records})
	if len(reply.Alarms) > 0 {
		w.t.Fatalf("adoption: %v", reply.Alarms)
	}
	for _, r := range records {
		want := map[grant.RecordState]grant.State{
			grant.RecordCommitted: grant.Held, grant.RecordEvicting: grant.Evicting, grant.RecordReleasing: grant.Stopping,
		}[r.State]
		if g, _ := l.Lookup(r.Tx); g.State != want {
			w.t.Fatalf("record %s %s was adopted as %s", r.State, r.Tx, g.State)
		}
	}
}
