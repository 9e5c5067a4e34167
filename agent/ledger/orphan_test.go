package ledger_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

func isOrphan(l *ledger.Ledger, uuid string) bool {
	g, ok := l.Lookup(ledger.OrphanTx(uuid))
	return ok && g.Origin == ledger.OriginOrphan && g.State == grant.Held
}

func TestAFreeDeviceThatIsBusyIsAnOrphanUntilItIsIdle(t *testing.T) {
	names := gpuNames(2)
	l := ready(t, machineWith(t, 8, 64<<30, names))
	do(t, l, boot(1), ledger.Observed{Busy: names[:1], Idle: names[1:]})
	if !isOrphan(l, names[0]) || isOrphan(l, names[1]) {
		t.Fatal("want GPU 0 alone as an orphan")
	}
	if r := do(t, l, boot(1), gpus("two", 1, 2)); !r.Refused() {
		t.Error("an orphan was handed out")
	}
	if r := do(t, l, boot(1), gpus("one", 1, 1)); r.Refused() {
		t.Errorf("the idle device is refused: %v", r.Reasons)
	}
	do(t, l, boot(2), ledger.Observed{Idle: names})
	if isOrphan(l, names[0]) || l.Len() != 1 {
		t.Error("an idle orphan is not gone without a trace")
	}
	if r := do(t, l, boot(2), gpus("next", 1, 1)); r.Refused() {
		t.Errorf("what was an orphan is refused: %v", r.Reasons)
	}
}

func TestWhatAGrantHasAPartOfIsNoOrphan(t *testing.T) {
	names := gpuNames(1)
	l := ready(t, machineWith(t, 8, 64<<30, names))
	do(t, l, boot(1), gpus("a", 1, 1))
	do(t, l, boot(1), ledger.Observed{Busy: names})
	if isOrphan(l, names[0]) {
		t.Fatal("a device of a grant became an orphan")
	}
	do(t, l, boot(2), grant.Abort{Tx: "a", Epoch: 1})
	do(t, l, boot(2), ledger.Observed{Busy: names})
	if !isOrphan(l, names[0]) {
		t.Error("a device that its grant left busy is no orphan")
	}
}

func TestALeaderHasNoSayOverOrphans(t *testing.T) {
	names := gpuNames(1)
	l := ready(t, machineWith(t, 8, 64<<30, names))
	do(t, l, boot(1), ledger.Observed{Busy: names})
	tx := ledger.OrphanTx(names[0])
	reserve := gpus(tx, 1, 1)
	for name, c := range map[string]ledger.Command{
		"reserve": reserve, "commit": grant.Commit{Tx: tx, Epoch: 1, Revision: 9}, "abort": grant.Abort{Tx: tx, Epoch: 1},
		"release": grant.Release{Tx: tx, Epoch: 1}, "evict": grant.Evict{Tx: tx, Epoch: 1},
	} {
		if r := do(t, l, boot(1), c); !r.Refused() || !isOrphan(l, names[0]) {
			t.Errorf("%s: refused is %t", name, r.Refused())
		}
	}
}

func TestARecordExplainsWhatRunsOnItsDevices(t *testing.T) {
	names := gpuNames(2)
	l := ready(t, machineWith(t, 8, 64<<30, names))
	do(t, l, boot(1), ledger.Observed{Busy: names})
	g, _ := l.Lookup(ledger.OrphanTx(names[0]))
	do(t, l, boot(2), ledger.Start{Incarnation: incarnation("j2", "b1")})
	if r := do(t, l, boot(2), ledger.Observed{Busy: names}); r.Registered != 0 {
		t.Fatal("it is registered")
	}
	record := ledger.Record{Tx: "a", State: grant.RecordCommitted, Members: g.Members, Revision: 8}
	if r := do(t, l, boot(2), ledger.Registered{Revision: 9, Records: []ledger.Record{record}}); len(r.Alarms) > 0 {
		t.Errorf("alarms %v", r.Alarms)
	}
	do(t, l, boot(2), ledger.Observed{Busy: names})
	if a, ok := l.Lookup("a"); !ok || a.State != grant.Held || isOrphan(l, names[0]) || !isOrphan(l, names[1]) {
		t.Errorf("the record is %v %v, orphans %t %t", ok, a.State, isOrphan(l, names[0]), isOrphan(l, names[1]))
	}
}

// TestNothingBusyIsEverPromised compares with the rule itself, under random
// looks, requests and preemptions: a device is promised only if it was idle at
// the look before, no victim stays without a reason, and the journal replays to
// the same state.
func TestNothingBusyIsEverPromised(t *testing.T) {
	names := gpuNames(4)
	host := machineWith(t, 8, 64<<30, names)
	rapid.Check(t, func(r *rapid.T) {
		l, replica := ledger.New(host), ledger.New(host)
		now := boot(0)
		decide := func(c ledger.Command) ledger.Reply {
			now = now.Add(time.Second)
			reply, events := l.Decide(now, c)
			for _, e := range events {
				if err := l.Apply(e); err != nil {
					r.Fatal(err)
				}
			}
			if len(events) > 0 {
				if err := replica.Replay([][]byte{ledger.AppendEvents(nil, events)}); err != nil {
					r.Fatal(err)
				}
			}
			if err := l.Check(); err != nil {
				r.Fatal(err)
			}
			return reply
		}
		decide(ledger.Start{Incarnation: incarnation("j1", "b1")})
		decide(ledger.Registered{Revision: 5})
		var busy []string
		var live []resource.TxID
		waits := map[resource.TxID]resource.TxID{} // the grant that waits for a victim, "" where it has given up
		devices := func(tx resource.TxID) (list []string) {
			g, _ := l.Lookup(tx)
			for _, m := range g.Members {
				for _, gpu := range m.Assignment.GPUs {
					list = append(list, gpu.UUID)
				}
			}
			return list
		}
		isBusy := func(uuid string) bool { return slices.Contains(busy, uuid) }
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			switch rapid.IntRange(0, 5).Draw(r, "kind") {
			case 0:
				look := ledger.Observed{}
				for _, uuid := range names {
					if rapid.Bool().Draw(r, "busy") {
						look.Busy = append(look.Busy, uuid)
					} else {
						look.Idle = append(look.Idle, uuid)
					}
				}
				busy = look.Busy
				decide(look)
			case 1:
				tx := resource.NewTxID("u", 1, uint64(now.Unix()), resource.Nonce{})
				reply := decide(gpus(tx, 1, rapid.IntRange(1, 3).Draw(r, "n")))
				if reply.Refused() {
					continue
				}
				live = append(live, tx)
				if slices.ContainsFunc(devices(tx), isBusy) {
					r.Fatalf("%s was promised something busy", tx)
				}
			case 2:
				if len(live) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(live)-1).Draw(r, "end")
				decide(grant.Abort{Tx: live[i], Epoch: 1})
				live = slices.Delete(live, i, i+1)
				decide(ledger.Observed{Busy: busy}) // as the owner does
			case 3:
				if len(live) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(live)-1).Draw(r, "victim")
				victim, tx := live[i], resource.NewTxID("p", 1, uint64(now.Unix()), resource.Nonce{})
				decide(grant.Commit{Tx: victim, Epoch: 1, Revision: 9})
				reserve := gpus(tx, 1, rapid.IntRange(1, 3).Draw(r, "n"))
				reserve.After = []resource.TxID{victim}
				if waits[victim] = tx; decide(reserve).Refused() {
					waits[victim] = ""
				}
				live = slices.Delete(live, i, i+1)
				decide(grant.Evict{Tx: victim, Epoch: 1, By: tx})
			case 4:
				for _, victim := range slices.Sorted(maps.Keys(waits)) {
					lingers := slices.ContainsFunc(devices(waits[victim]), isBusy)
					reply := decide(ledger.Stopped{Tx: victim, Busy: busy})
					if (reply.State == grant.Evicting) != lingers {
						r.Fatalf("%s is %s, %s waits for it with %v, busy are %v", victim, reply.State, waits[victim], devices(waits[victim]), busy)
					}
					decide(ledger.Observed{Busy: busy})
					if lingers {
						continue
					}
					live = append(live, reply.Woken...)
					delete(waits, victim)
				}
			case 5:
				for _, victim := range slices.Sorted(maps.Keys(waits)) {
					if tx := waits[victim]; tx != "" {
						decide(grant.Abort{Tx: tx, Epoch: 1})
						decide(ledger.Observed{Busy: busy})
						waits[victim] = ""
					}
				}
			}
			if l.Hash() != replica.Hash() {
				r.Fatal("the journal tells another story")
			}
		}
	})
}
