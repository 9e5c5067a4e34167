package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestBoundsOfCommandsAreExact: a command exactly at a bound is taken, and refused beyond.
func TestBoundsOfCommandsAreExact(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	reserve := func(edit func(*grant.Reserve)) grant.Reserve {
		c := gpus("a", 1, 1)
		edit(&c)
		return c
	}
	victims := func(n int) (list []resource.TxID) {
		for i := range n {
			list = append(list, resource.TxID(fmt.Sprint("gone", i)))
		}
		return list
	}
	for name, c := range map[string]struct {
		at, beyond ledger.Command
	}{
		"bytes of a transaction": {
			reserve(func(c *grant.Reserve) { c.Tx = resource.TxID(text(ledger.MaxText)) }),
			reserve(func(c *grant.Reserve) { c.Tx = resource.TxID(text(ledger.MaxText + 1)) }),
		},
		"bytes of a unit": {
			reserve(func(c *grant.Reserve) { c.Unit = resource.UnitUID(text(ledger.MaxText)) }),
			reserve(func(c *grant.Reserve) { c.Unit = resource.UnitUID(text(ledger.MaxText + 1)) }),
		},
		"bytes of a name": {
			reserve(func(c *grant.Reserve) { c.Name = text(ledger.MaxName) }),
			reserve(func(c *grant.Reserve) { c.Name = text(ledger.MaxName + 1) }),
		},
		"bytes of a tenant": {
			reserve(func(c *grant.Reserve) { c.Tenant = resource.TenantID(text(ledger.MaxText)) }),
			reserve(func(c *grant.Reserve) { c.Tenant = resource.TenantID(text(ledger.MaxText + 1)) }),
		},
		"bytes of a reason": {grant.Release{Tx: "a", Epoch: 1, Reason: text(ledger.MaxText)}, grant.Release{Tx: "a", Epoch: 1, Reason: text(ledger.MaxText + 1)}},
		"bytes of a released transaction": {
			grant.Release{Tx: resource.TxID(text(ledger.MaxText)), Epoch: 1}, grant.Release{Tx: resource.TxID(text(ledger.MaxText + 1)), Epoch: 1},
		},
		"bytes of a preemptor": {
			grant.Evict{Tx: "a", Epoch: 1, By: resource.TxID(text(ledger.MaxText))}, grant.Evict{Tx: "a", Epoch: 1, By: resource.TxID(text(ledger.MaxText + 1))},
		},
		"victims": {
			reserve(func(c *grant.Reserve) { c.After = victims(ledger.MaxVictims) }),
			reserve(func(c *grant.Reserve) { c.After = victims(ledger.MaxVictims + 1) }),
		},
		"patience": {
			reserve(func(c *grant.Reserve) { c.TTL = 1 }),
			reserve(func(c *grant.Reserve) { c.TTL = 0 }),
		},
		"members of a unit": {
			reserve(func(c *grant.Reserve) { c.UnitMembers = ledger.MaxUnitMembers }),
			reserve(func(c *grant.Reserve) { c.UnitMembers = ledger.MaxUnitMembers + 1 }),
		},
		"the last member of a unit": {
			reserve(func(c *grant.Reserve) { c.UnitMembers, c.Members[0].Index = 3, 2 }),
			reserve(func(c *grant.Reserve) { c.UnitMembers, c.Members[0].Index = 3, 3 }),
		},
		"devices":          {ledger.SetHealth{Device: 3}, ledger.SetHealth{Device: 4}},
		"the first device": {ledger.SetHealth{Device: 0}, ledger.SetHealth{Device: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			if r := do(t, ready(t, machine(t, 8, 4)), boot(1), c.at); r.Refused() {
				t.Errorf("at the bound: %v", r.Reasons)
			}
			if r := do(t, ready(t, machine(t, 8, 4)), boot(1), c.beyond); !r.Refused() {
				t.Error("one beyond the bound is taken")
			}
		})
	}
}

// TestTheLastGrantThatFitsIsTaken: work is taken with MaxGrants-1 grants, and not with MaxGrants.
func TestTheLastGrantThatFitsIsTaken(t *testing.T) {
	l := ledger.New(machine(t, 8, 4))
	do(t, l, boot(0), ledger.Start{Incarnation: incarnation("j1", "b1")})
	var ended []ledger.Event
	for i := range ledger.MaxGrants - 1 {
		ended = append(ended, ledger.Buried{Tx: resource.TxID(fmt.Sprint("t", i))})
	}
	if err := l.Replay([][]byte{ledger.AppendEvents(nil, ended)}); err != nil {
		t.Fatal(err)
	}
	do(t, l, boot(0), ledger.Registered{Revision: 5})
	if r := do(t, l, boot(1), gpus("last", 1, 1)); r.Refused() {
		t.Errorf("with %d grants: %v", ledger.MaxGrants-1, r.Reasons)
	}
	if r := do(t, l, boot(1), gpus("next", 1, 1)); !r.Refused() {
		t.Errorf("with %d grants work is taken", l.Len())
	}
	do(t, l, boot(2), grant.Forget{Tx: "t0"})
	if r := do(t, l, boot(2), gpus("next", 1, 1)); r.Refused() {
		t.Errorf("after an end was forgotten: %v", r.Reasons)
	}
}

// preempted has p wait for the victims v and w until 11 s.
func preempted(t *testing.T) *ledger.Ledger {
	t.Helper()
	l := ready(t, machine(t, 8, 4))
	for _, tx := range []resource.TxID{"v", "w"} {
		do(t, l, boot(0), gpus(tx, 1, 2))
		do(t, l, boot(0), grant.Commit{Tx: tx, Epoch: 1, Revision: 6})
	}
	p := gpus("p", 1, 4)
	p.After, p.TTL = []resource.TxID{"v", "w"}, 10*time.Second
	if r := do(t, l, boot(1), p); r.State != grant.Waiting {
		t.Fatalf("p is %s, want Waiting", r.State)
	}
	return l
}

// TestASecondNotice: a grace grows and never shrinks, the time of the first notice and the first
// preemptor stay.
func TestASecondNotice(t *testing.T) {
	type notice struct {
		at    float64
		by    resource.TxID
		grace time.Duration
	}
	for name, c := range map[string]struct {
		first, second notice
		deadline      float64
		by            resource.TxID
	}{
		"the same":              {notice{1, "p", 30 * time.Second}, notice{5, "p", 30 * time.Second}, 31, "p"},
		"shorter":               {notice{1, "p", 30 * time.Second}, notice{5, "p", 10 * time.Second}, 31, "p"},
		"longer":                {notice{1, "p", 30 * time.Second}, notice{5, "p", 40 * time.Second}, 41, "p"},
		"one nanosecond longer": {notice{1, "p", 30 * time.Second}, notice{5, "p", 30*time.Second + time.Nanosecond}, 31.000000001, "p"},
		"another preemptor":     {notice{1, "p", 30 * time.Second}, notice{5, "q", 40 * time.Second}, 41, "p"},
		"of a person":           {notice{1, "p", 30 * time.Second}, notice{5, "", 40 * time.Second}, 41, "p"},
		"a person first":        {notice{1, "", 30 * time.Second}, notice{5, "q", 40 * time.Second}, 41, "q"},
		"negative graces":       {notice{1, "p", -time.Hour}, notice{5, "p", -time.Minute}, 1, "p"},
	} {
		t.Run(name, func(t *testing.T) {
			l := ready(t, machine(t, 8, 4))
			do(t, l, boot(0), gpus("v", 1, 4))
			do(t, l, boot(0), grant.Commit{Tx: "v", Epoch: 1, Revision: 6})
			for _, n := range []notice{c.first, c.second} {
				do(t, l, boot(n.at), grant.Evict{Tx: "v", Epoch: 1, By: n.by, Grace: n.grace})
			}
			g, _ := l.Lookup("v")
			if !g.Deadline.Equal(boot(c.deadline)) || !g.Since.Equal(boot(c.first.at)) || g.By != c.by {
				t.Errorf("noticed at %s by %q until %s after the boot, want %v s by %q until %v s", g.Since.Sub(boot(0)), g.By, g.Deadline.Sub(boot(0)), c.first.at, c.by, c.deadline)
			}
		})
	}
}

// TestASecondStop: the first release decides the grace, whichever grace follows, and a negative
// grace is 0.
func TestASecondStop(t *testing.T) {
	for name, c := range map[string]struct {
		first, second time.Duration
		want          float64
	}{
		"shorter":  {30 * time.Second, time.Second, 31},
		"longer":   {30 * time.Second, time.Hour, 31},
		"negative": {-time.Hour, time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := ready(t, machine(t, 8, 4))
			do(t, l, boot(0), gpus("v", 1, 4))
			do(t, l, boot(0), grant.Commit{Tx: "v", Epoch: 1, Revision: 6})
			do(t, l, boot(1), grant.Release{Tx: "v", Epoch: 1, Grace: c.first, Reason: "first"})
			do(t, l, boot(2), grant.Release{Tx: "v", Epoch: 1, Grace: c.second, Reason: "second"})
			if g, _ := l.Lookup("v"); g.State != grant.Stopping || !g.Deadline.Equal(boot(c.want)) || g.Grace < 0 || g.Reason != "first" {
				t.Errorf("%s until %s after the boot with the grace %s for %q, want until %v s", g.State, g.Deadline.Sub(boot(0)), g.Grace, g.Reason, c.want)
			}
		})
	}
}

// TestGrantsAreDueAtTheirDeadline: not a nanosecond before, and again at each tick until the end.
func TestGrantsAreDueAtTheirDeadline(t *testing.T) {
	l := ready(t, machine(t, 8, 4))
	r := gpus("r", 1, 1)
	r.TTL = 10 * time.Second
	do(t, l, boot(0), r)
	for _, tx := range []resource.TxID{"e", "s"} {
		do(t, l, boot(0), gpus(tx, 1, 1))
		do(t, l, boot(0), grant.Commit{Tx: tx, Epoch: 1, Revision: 6})
	}
	do(t, l, boot(0), grant.Evict{Tx: "e", Epoch: 1, Grace: 10 * time.Second})
	do(t, l, boot(0), grant.Release{Tx: "s", Epoch: 1, Grace: 10 * time.Second})
	if got := do(t, l, boot(10).Add(-1), ledger.Tick{}); len(got.Resolve)+len(got.Stop) > 0 {
		t.Errorf("before the deadline: resolve %q, stop %q", got.Resolve, got.Stop)
	}
	for range 2 {
		got := do(t, l, boot(10), ledger.Tick{})
		if !slices.Equal(got.Resolve, []resource.TxID{"r"}) || !slices.Equal(got.Stop, []resource.TxID{"e", "s"}) {
			t.Errorf("at the deadline: resolve %q, stop %q, want r, and e and s", got.Resolve, got.Stop)
		}
	}
}

// TestAPreemptorIsPromotedWithItsLastVictim: the patience begins anew then.
func TestAPreemptorIsPromotedWithItsLastVictim(t *testing.T) {
	l := preempted(t)
	for _, tx := range []resource.TxID{"v", "w"} {
		do(t, l, boot(2), grant.Release{Tx: tx, Epoch: 1})
	}
	if r := do(t, l, boot(3), ledger.Stopped{Tx: "v"}); len(r.Woken) > 0 {
		t.Errorf("with one victim left %q wake", r.Woken)
	}
	if r := do(t, l, boot(8), ledger.Stopped{Tx: "w"}); !slices.Equal(r.Woken, []resource.TxID{"p"}) {
		t.Errorf("with the last victim gone %q wake, want p", r.Woken)
	}
	if g, _ := l.Lookup("p"); g.State != grant.Reserved || !g.Deadline.Equal(boot(18)) || len(g.Victims) > 0 {
		t.Errorf("p is %s until %s after the boot for %q, want Reserved until 18 s", g.State, g.Deadline.Sub(boot(0)), g.Victims)
	}
}

// TestVictimsAreFreeForAnotherPreemptor: once the first preemptor has given up.
func TestVictimsAreFreeForAnotherPreemptor(t *testing.T) {
	l := preempted(t)
	q := gpus("q", 1, 2)
	q.After = []resource.TxID{"v"}
	if r := do(t, l, boot(2), q); !r.Refused() {
		t.Fatal("a claimed victim is claimed again")
	}
	do(t, l, boot(3), grant.Abort{Tx: "p", Epoch: 1})
	if r := do(t, l, boot(4), q); r.State != grant.Waiting {
		t.Fatalf("after the end of p the next preemptor is %s: %v", r.State, r.Reasons)
	}
	do(t, l, boot(5), grant.Release{Tx: "v", Epoch: 1})
	if r := do(t, l, boot(5), ledger.Stopped{Tx: "v"}); !slices.Equal(r.Woken, []resource.TxID{"q"}) {
		t.Errorf("the end of v wakes %q, want q", r.Woken)
	}
}

// TestForgottenAttempts: an attempt not newer than an attempt with a forgotten end is refused,
// in whichever order the ends were forgotten.
func TestForgottenAttempts(t *testing.T) {
	attempt := func(epoch resource.Epoch, counter uint64) resource.TxID {
		return resource.NewTxID("u", epoch, counter, resource.Nonce{1})
	}
	l := ready(t, machine(t, 8, 4))
	do(t, l, boot(0), ledger.NewEpoch{Epoch: 3})
	for _, tx := range []resource.TxID{attempt(3, 9), attempt(3, 4), attempt(2, 50)} {
		do(t, l, boot(1), grant.Release{Tx: tx, Epoch: 3})
		do(t, l, boot(1), grant.Forget{Tx: tx})
	}
	for name, c := range map[string]struct {
		tx      resource.TxID
		refused bool
	}{
		"an earlier one":       {attempt(3, 8), true},
		"the newest forgotten": {attempt(3, 9), true},
		"the next one":         {attempt(3, 10), false},
		"of the epoch before":  {attempt(2, 99), true},
		"of the next epoch":    {attempt(4, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			again := ledger.New(machine(t, 8, 4))
			if err := again.Replay([][]byte{ledger.AppendEvents(nil, l.SnapshotEvents())}); err != nil {
				t.Fatal(err)
			}
			for what, of := range map[string]*ledger.Ledger{"the ledger": l, "a rewritten journal": again} {
				c2 := gpus(c.tx, 4, 1)
				reply, _ := of.Decide(boot(2), c2)
				if reply.Refused() != c.refused {
					t.Errorf("%s: refused %t (%v), want %t", what, reply.Refused(), reply.Reasons, c.refused)
				}
			}
		})
	}
	// The agent has promised no work of an epoch to come.
	do(t, l, boot(3), ledger.Resolved{Tx: attempt(4, 7), State: grant.RecordReleasing, Revision: 9})
	do(t, l, boot(3), grant.Forget{Tx: attempt(4, 7)})
	if r := do(t, l, boot(4), gpus(attempt(4, 2), 4, 1)); r.Refused() {
		t.Errorf("the end of an attempt of an epoch to come has later attempts refused: %v", r.Reasons)
	}
}

// TestADeviceInBothListsIsBusy: an orphan stays, a lent device as well.
func TestADeviceInBothListsIsBusy(t *testing.T) {
	names := gpuNames(2)
	l := ready(t, machineWith(t, 8, 64<<30, names))
	do(t, l, boot(1), ledger.Observed{Busy: names[:1]})
	do(t, l, boot(2), ledger.Observed{Busy: names[:1], Idle: names[:1]})
	if g, _ := l.Lookup(ledger.OrphanTx(names[0])); !isOrphan(l, names[0]) || !g.Since.Equal(boot(1)) {
		t.Errorf("an orphan that is busy is %s since %s after the boot, want since 1 s", g.State, g.Since.Sub(boot(0)))
	}
}

// TestAnAuditTakesNoCommitOfOtherDevices: the record of a reservation is read again where the record names
// other devices than the promise.
func TestAnAuditTakesNoCommitOfOtherDevices(t *testing.T) {
	l := ready(t, machine(t, 8, 4))
	mine := do(t, l, boot(0), gpus("a", 1, 1)).Members
	other := do(t, l, boot(0), gpus("b", 1, 1)).Members
	do(t, l, boot(0), grant.Abort{Tx: "b", Epoch: 1})
	for name, c := range map[string]struct {
		members []ledger.Holding
		want    grant.State
	}{
		"other devices":    {other, grant.Reserved},
		"the same devices": {mine, grant.Held},
	} {
		again := ledger.New(machine(t, 8, 4))
		if err := again.Replay([][]byte{ledger.AppendEvents(nil, l.SnapshotEvents())}); err != nil {
			t.Fatal(err)
		}
		r := do(t, again, boot(1), ledger.Registered{Revision: 9, Store: 9, Heard: 5, Records: []ledger.Record{{Tx: "a", Epoch: 1, State: grant.RecordCommitted, Members: c.members, Revision: 8}}})
		if g, _ := again.Lookup("a"); g.State != c.want || (len(r.Resolve) == 1) != (c.want == grant.Reserved) {
			t.Errorf("%s: the grant is %s and %q are read again, want %s", name, g.State, r.Resolve, c.want)
		}
	}
}

// TestAQuarantinedLedgerHasNoDeadline: no grant is stopped then, so no deadline wakes the owner.
func TestAQuarantinedLedgerHasNoDeadline(t *testing.T) {
	l := ready(t, machine(t, 8, 4))
	do(t, l, boot(0), gpus("e", 1, 1))
	do(t, l, boot(0), grant.Commit{Tx: "e", Epoch: 1, Revision: 6})
	do(t, l, boot(0), grant.Evict{Tx: "e", Epoch: 1, Grace: time.Second})
	if at, ok := l.Next(); !ok || !at.Equal(boot(1)) {
		t.Fatalf("next is %s, %t", at, ok)
	}
	quarantined(t, l)
	if at, ok := l.Next(); ok {
		t.Errorf("in quarantine the next deadline is %s after the boot", at.Sub(boot(0)))
	}
	if r := do(t, l, boot(5), ledger.Tick{}); len(r.Stop)+len(r.Resolve) > 0 {
		t.Errorf("in quarantine %q are stopped and %q resolved", r.Stop, r.Resolve)
	}
}
