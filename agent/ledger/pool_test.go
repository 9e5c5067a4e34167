package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// poolOf returns the devices of the kubelet's pool, the lent ones apart.
func poolOf(l *ledger.Ledger) (free, lent []string) {
	for _, g := range l.Snapshot().Grants {
		uuid, isLent, ok := ledger.PooledUUID(g.Tx)
		switch {
		case !ok:
		case isLent:
			lent = append(lent, uuid)
		default:
			free = append(free, uuid)
		}
	}
	return free, lent
}

func wantPool(t *testing.T, l *ledger.Ledger, free, lent []string) {
	t.Helper()
	gotFree, gotLent := poolOf(l)
	if !slices.Equal(gotFree, free) || !slices.Equal(gotLent, lent) {
		t.Errorf("the pool is %v, lent are %v; want %v and %v", gotFree, gotLent, free, lent)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

func TestADeviceOfThePoolIsLentAndReturned(t *testing.T) {
	names := gpuNames(3)
	l := ready(t, machineWith(t, 8, 64<<30, names))
	do(t, l, boot(1), ledger.Pool{Devices: names[:2]})
	wantPool(t, l, names[:2], nil)
	if r := do(t, l, boot(2), gpus("two", 1, 2)); !r.Refused() {
		t.Error("a device of the pool was promised to the leader")
	}
	if r := do(t, l, boot(2), gpus("one", 1, 1)); r.Refused() {
		t.Errorf("the device outside the pool is refused: %v", r.Reasons)
	}
	if r := do(t, l, boot(3), ledger.Lend{Devices: names[:1]}); r.Refused() {
		t.Errorf("lend: %v", r.Reasons)
	}
	wantPool(t, l, names[1:2], names[:1])
	if r := do(t, l, boot(4), ledger.Lend{Devices: names[:1]}); r.Refused() {
		t.Errorf("a lent device is refused: %v", r.Reasons)
	}
	do(t, l, boot(5), ledger.Pool{})
	wantPool(t, l, nil, names[:1])
	if r := do(t, l, boot(6), ledger.Return{Devices: names[:1], Busy: names[:1]}); !r.Refused() {
		t.Error("a device on which a process runs was returned")
	}
	wantPool(t, l, nil, names[:1])
	do(t, l, boot(7), ledger.Return{Devices: names[:1]})
	wantPool(t, l, names[:1], nil)
	do(t, l, boot(7), ledger.Pool{})
	wantPool(t, l, nil, nil)
}

func TestADeviceThatIsNotInThePoolIsNotLent(t *testing.T) {
	names := gpuNames(3)
	for name, c := range map[string]struct {
		lend []string
		want string
	}{
		"a device of a leader's grant":     {names[2:], "grant u.1.1.0 of origin txn has it"},
		"a free device":                    {names[1:2], "not in the kubelet's pool"},
		"an unknown device":                {[]string{"GPU-none"}, "device GPU-none: not in the kubelet's pool"},
		"one in the pool, and one outside": {names[:2], "not in the kubelet's pool"},
	} {
		t.Run(name, func(t *testing.T) {
			l := ready(t, machineWith(t, 8, 64<<30, names))
			do(t, l, boot(1), ledger.Pool{Devices: names[:2]})
			if r := do(t, l, boot(1), gpus("u.1.1.0", 1, 1)); r.Refused() {
				t.Fatal(r.Reasons)
			}
			do(t, l, boot(1), ledger.Pool{Devices: names[:1]})
			r := do(t, l, boot(2), ledger.Lend{Devices: c.lend})
			if !r.Refused() || !strings.Contains(r.Reasons[0].Detail, c.want) {
				t.Errorf("lend %v: %v, want %q", c.lend, r.Reasons, c.want)
			}
			wantPool(t, l, names[:1], nil)
		})
	}
}

func TestADeviceJoinsThePoolWhenItsGrantEnds(t *testing.T) {
	names := gpuNames(1)
	l := ready(t, machineWith(t, 8, 64<<30, names))
	do(t, l, boot(1), gpus("a", 1, 1))
	do(t, l, boot(2), ledger.Pool{Devices: names})
	wantPool(t, l, nil, nil)
	do(t, l, boot(3), grant.Abort{Tx: "a", Epoch: 1})
	do(t, l, boot(3), ledger.Pool{Devices: names}) // as the owner does
	wantPool(t, l, names, nil)
}

func TestARestartKeepsThePoolAndWhatIsLent(t *testing.T) {
	names := gpuNames(2)
	l := ready(t, machineWith(t, 8, 64<<30, names))
	do(t, l, boot(1), ledger.Pool{Devices: names})
	do(t, l, boot(1), ledger.Lend{Devices: names[:1]})
	do(t, l, boot(2), ledger.Start{Incarnation: incarnation("j1", "b2")})
	do(t, l, boot(3), ledger.Pool{}) // has no effect before the registration
	wantPool(t, l, names[1:], names[:1])
	if r := do(t, l, boot(3), ledger.Lend{Devices: names[1:]}); r.Refused() {
		t.Errorf("without a coordinator the pool cannot be lent: %v", r.Reasons)
	}
	do(t, l, boot(4), ledger.Registered{Revision: 9})
	wantPool(t, l, nil, names)
}

func TestALeaderHasNoSayOverThePool(t *testing.T) {
	names := gpuNames(1)
	l := ready(t, machineWith(t, 8, 64<<30, names))
	do(t, l, boot(1), ledger.Pool{Devices: names})
	tx := ledger.PoolTx(names[0])
	preemptor := gpus("p.1.1.0", 1, 1)
	preemptor.After = []resource.TxID{tx}
	for name, c := range map[string]ledger.Command{
		"reserve": gpus(tx, 1, 1), "commit": grant.Commit{Tx: tx, Epoch: 1, Revision: 9}, "abort": grant.Abort{Tx: tx, Epoch: 1},
		"release": grant.Release{Tx: tx, Epoch: 1}, "evict": grant.Evict{Tx: tx, Epoch: 1}, "preempt": preemptor,
	} {
		if r := do(t, l, boot(1), c); !r.Refused() {
			t.Errorf("%s was not refused", name)
		}
		wantPool(t, l, names, nil)
	}
}

// TestThePoolAgainstItsRule compares the pool with a map, under random lists,
// loans, returns, requests of the leader and restarts.
func TestThePoolAgainstItsRule(t *testing.T) {
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
		var listed []string
		owner := map[string]string{} // of a device: "" (free), "leader", "pool" or "lent"
		live := map[resource.TxID][]string{}
		registered, boots := true, 1
		settle := func() {
			decide(ledger.Pool{Devices: listed}) // as the owner does after every change
			if !registered {
				return
			}
			for _, uuid := range names {
				switch is := slices.Contains(listed, uuid); {
				case is && owner[uuid] == "":
					owner[uuid] = "pool"
				case !is && owner[uuid] == "pool":
					owner[uuid] = ""
				}
			}
		}
		some := func(label string) (list []string) {
			for _, uuid := range names {
				if rapid.Bool().Draw(r, label) {
					list = append(list, uuid)
				}
			}
			return list
		}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			switch rapid.IntRange(0, 6).Draw(r, "kind") {
			case 0:
				listed = some("listed")
			case 1:
				list := some("lend")
				fits := !slices.ContainsFunc(list, func(uuid string) bool { return owner[uuid] != "pool" && owner[uuid] != "lent" })
				if reply := decide(ledger.Lend{Devices: list}); reply.Refused() == fits {
					r.Fatalf("lend %v of %v: refused is %t", list, owner, reply.Refused())
				}
				for _, uuid := range list {
					if fits {
						owner[uuid] = "lent"
					}
				}
			case 2:
				list, busy := some("return"), some("busy")
				decide(ledger.Return{Devices: list, Busy: busy})
				for _, uuid := range list {
					if registered && owner[uuid] == "lent" && !slices.Contains(busy, uuid) {
						owner[uuid] = "pool"
					}
				}
			case 3:
				tx := resource.NewTxID("u", 1, uint64(now.Unix()), resource.Nonce{})
				reply := decide(gpus(tx, 1, rapid.IntRange(1, 3).Draw(r, "n")))
				if reply.Refused() {
					continue
				}
				for _, m := range reply.Members {
					for _, g := range m.Assignment.GPUs {
						if owner[g.UUID] != "" {
							r.Fatalf("the leader got %s, which is of %s", g.UUID, owner[g.UUID])
						}
						owner[g.UUID] = "leader"
						live[tx] = append(live[tx], g.UUID)
					}
				}
			case 4:
				for tx, list := range live {
					if registered {
						decide(grant.Abort{Tx: tx, Epoch: 1})
						for _, uuid := range list {
							owner[uuid] = ""
						}
						delete(live, tx)
					}
					break
				}
			case 5:
				registered = false
				if rapid.Bool().Draw(r, "the host restarts, too") {
					boots++
					for _, list := range live { // no record protects these reservations
						for _, uuid := range list {
							owner[uuid] = ""
						}
					}
					clear(live)
				}
				decide(ledger.Start{Incarnation: incarnation("j1", fmt.Sprint("b", boots))})
				decide(ledger.Registered{Revision: 5})
				registered = true
			}
			settle()
			free, lent := poolOf(l)
			for _, uuid := range names {
				if slices.Contains(free, uuid) != (owner[uuid] == "pool") || slices.Contains(lent, uuid) != (owner[uuid] == "lent") {
					r.Fatalf("the pool is %v and %v, want %v", free, lent, owner)
				}
			}
			if replica.Hash() != l.Hash() {
				r.Fatal("the journal gives another ledger")
			}
		}
	})
}

func TestTheOperatorsPartOfThePoolIsKept(t *testing.T) {
	host := machineWith(t, 8, 64<<30, gpuNames(3))
	l := ready(t, host)
	wish := grant.KubeletPool{Add: []string{"GPU-a"}, Remove: []string{"GPU-b", "MIG-c"}}
	do(t, l, boot(1), wish)
	kept := func(what string, l *ledger.Ledger, want grant.KubeletPool) {
		t.Helper()
		if got := l.Snapshot().KubeletPool; !got.Equal(want) || !l.KubeletPool().Equal(want) {
			t.Errorf("%s: the operators' part is %+v, want %+v", what, got, want)
		}
	}
	kept("after the command", l, wish)
	replayed := ledger.New(host)
	if err := replayed.Replay([][]byte{ledger.AppendEvents(nil, l.SnapshotEvents())}); err != nil {
		t.Fatal(err)
	}
	kept("after a compaction", replayed, wish)
	if _, events := l.Decide(boot(2), wish.Clone()); len(events) > 0 {
		t.Errorf("the same wish is written twice: %v", events)
	}
	many := grant.KubeletPool{Add: make([]string, grant.MaxKubeletPool+1)}
	if r := do(t, l, boot(2), many); !r.Refused() {
		t.Error("a list without a bound was taken")
	}
	do(t, l, boot(3), grant.KubeletPool{})
	kept("after the wish was withdrawn", l, grant.KubeletPool{})
}
