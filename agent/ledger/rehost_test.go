package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

func TestHealthOverARehost(t *testing.T) {
	names := gpuNames(4)
	type shown struct {
		Health devices.Health
		Reason string
	}
	tainted := shown{devices.Tainted, "xid 79"}
	cases := map[string]struct {
		cards []card // of the new host
		back  bool   // and then the old one again
		want  map[string]shown
	}{
		"what was told of a card goes with it": {
			[]card{{uuid: names[3]}, {uuid: names[0]}}, false, map[string]shown{names[0]: tainted, names[3]: {}},
		},
		"what was told outlives the card's absence": {
			[]card{{uuid: names[1]}}, true, map[string]shown{names[0]: tainted, names[1]: {}, names[2]: {devices.Suspect, "xid 48"}, names[3]: {}},
		},
		"a new card has the inventory's health": {
			[]card{{uuid: names[0]}, {uuid: "GPU-new", health: devices.Probation}}, false, map[string]shown{names[0]: tainted, "GPU-new": {devices.Probation, ""}},
		},
		"an inventory that knows no better is not believed": {
			[]card{{uuid: names[0], health: devices.OK}, {uuid: names[2], health: devices.Tainted}},
			false,
			map[string]shown{names[0]: tainted, names[2]: {devices.Suspect, "xid 48"}},
		},
		"of a card of which nothing was told the new inventory says it": {
			[]card{{uuid: names[3], health: devices.Tainted}}, false, map[string]shown{names[3]: {devices.Tainted, ""}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			old := machine(t, 8, 4)
			l := ready(t, old)
			do(t, l, boot(1), ledger.SetHealth{Device: 0, Health: devices.Tainted, Reason: "xid 79"})
			do(t, l, boot(1), ledger.SetHealth{Device: 2, Health: devices.Suspect, Reason: "xid 48"})
			events := l.SnapshotEvents()
			host := hardware{cpus: 8, memory: 64 << 30, gpus: c.cards}.build(t)
			if err := l.Rehost(host); err != nil {
				t.Fatal(err)
			}
			if c.back {
				if err := l.Rehost(old); err != nil {
					t.Fatal(err)
				}
				host = old
			}
			replayed := ledger.New(host)
			if err := replay(t, replayed, events); err != nil {
				t.Fatal(err)
			}
			for how, l := range map[string]*ledger.Ledger{"rehosted": l, "replayed": replayed} {
				if err := l.Check(); err != nil {
					t.Fatal(err)
				}
				got := map[string]shown{}
				v := l.Snapshot()
				for i, g := range v.GPUs {
					got[g.UUID] = shown{g.Health, g.Reason}
					if taken := v.Free.Unhealthy>>i&1 == 0; taken != g.Health.Allocatable() {
						t.Errorf("%s: %s is %s, and takes work: %v", how, g.UUID, g.Health, taken)
					}
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%s: %s", how, diff)
				}
			}
		})
	}
}

// A preemptor waits for two victims; the card of one of them vanishes.
func TestWaitingOutlivesTheLossOfWhatItWaitsFor(t *testing.T) {
	names := gpuNames(4)
	l := ready(t, machineWith(t, 8, 64<<30, names))
	for i, tx := range []resource.TxID{"v0", "v1"} {
		c := gpus(tx, 1, 1)
		c.Members[0].PinnedGPUs = []int{i}
		do(t, l, boot(1), c)
		do(t, l, boot(1), grant.Commit{Tx: tx, Epoch: 1, Revision: 6})
	}
	p := gpus("p", 1, 2)
	p.Members[0].PinnedGPUs, p.After = []int{0, 1}, []resource.TxID{"v0", "v1"}
	do(t, l, boot(2), p)

	without, with := machineWith(t, 8, 64<<30, names[1:]), machineWith(t, 8, 64<<30, names)
	if err := l.Rehost(without); err != nil {
		t.Fatal(err)
	}
	for _, v := range []resource.TxID{"v0", "v1"} {
		do(t, l, boot(3), grant.Evict{Tx: v, Epoch: 1, By: "p"})
		do(t, l, boot(3), ledger.Stopped{Tx: v})
	}
	if g, _ := l.Lookup("p"); g.State != grant.Reserved {
		t.Fatalf("p is %s", g.State)
	}
	if err := l.Rehost(with); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	if v := l.Snapshot(); v.GPUs[0].Milli != 0 || v.GPUs[1].Milli != 0 || v.GPUs[2].Milli != 1000 {
		t.Errorf("free: %+v", v.GPUs)
	}
}

// A record names its devices as they were numbered when it was written.
func TestAdoptionFindsTheDevicesOfARecordByUUID(t *testing.T) {
	names := gpuNames(4)
	host := hardware{cpus: 8, memory: 64 << 30, gpus: []card{{uuid: "GPU-new"}, partition("GPU-p", "1g.10gb", "3g.40gb"), {uuid: names[0]}}}.build(t)
	l := ledger.New(host)
	do(t, l, boot(0), ledger.Start{Incarnation: incarnation("j2", "b1")})
	record := ledger.Record{Tx: "a", State: grant.RecordCommitted, Revision: 8, Members: []ledger.Holding{{Assignment: resource.Assignment{
		GPUs: []resource.GPUGrant{{Index: 0, UUID: names[0], Milli: 1000}, {Index: 1, UUID: names[1], Milli: 1000}},
		MIG:  []resource.MIGGrant{{GPU: 2, Instance: 0, UUID: "MIG-GPU-p-3g.40gb-1", Profile: "3g.40gb"}},
	}}}}
	if reply := do(t, l, boot(0), ledger.Registered{Revision: 9, Records: []ledger.Record{record}}); len(reply.Alarms) > 0 {
		t.Fatal(reply.Alarms)
	}
	g, _ := l.Lookup("a")
	want := resource.Assignment{
		GPUs: []resource.GPUGrant{{Index: 2, UUID: names[0], Milli: 1000}, {Index: 3, UUID: names[1], Milli: 1000}},
		MIG:  []resource.MIGGrant{{GPU: 1, Instance: 1, UUID: "MIG-GPU-p-3g.40gb-1", Profile: "3g.40gb"}},
	}
	if diff := cmp.Diff(want, g.Members[0].Assignment); diff != "" {
		t.Error(diff)
	}
	if v := l.Snapshot(); v.GPUs[2].Milli != 0 || v.GPUs[1].MIG != 1 {
		t.Errorf("free: %+v", v.GPUs)
	}
}

// The hash of a grant without huge pages and instances is the same as before
// there were any: leaders and agents of both kinds agree on it.
func TestGrantHashIsStable(t *testing.T) {
	plain := version1Samples()[6].(ledger.Granted).Grant
	if got, want := ledger.GrantHash(plain.Tx, plain.Members), uint64(0x993807dd008b96dd); got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
}

// BenchmarkRehost moves 1000 held grants to a host without one of its cards.
func BenchmarkRehost(b *testing.B) {
	names := gpuNames(8)
	from, to := machineWith(b, 128, 64<<30, names), machineWith(b, 128, 64<<30, names[1:])
	l := ready(b, from)
	for i := range 1000 {
		c := gpus(resource.TxID(rune('a'+i%26))+resource.TxID(rune('a'+i/26)), 1, 0)
		c.Members[0].Request = resource.Request{CPU: 100, Memory: 1 << 20, GPUShare: 5}
		apply(b, l, c)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Rehost(to); err != nil {
			b.Fatal(err)
		}
		if err := l.Rehost(from); err != nil {
			b.Fatal(err)
		}
	}
}
