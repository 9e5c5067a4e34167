package ledger_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// stages brings one grant into each state that has a deadline: r is RESERVED
// until 10 s, e EVICTING until 32 s, s STOPPING until 23 s.
func stages(t *testing.T) *ledger.Ledger {
	t.Helper()
	l := ready(t, machine(t, 8, 4))
	for _, tx := range []resource.TxID{"r", "e", "s"} {
		do(t, l, boot(0), gpus(tx, 1, 1))
	}
	do(t, l, boot(1), grant.Commit{Tx: "e", Epoch: 1, Revision: 6})
	do(t, l, boot(1), grant.Commit{Tx: "s", Epoch: 1, Revision: 7})
	do(t, l, boot(2), grant.Evict{Tx: "e", Epoch: 1, Grace: 30 * time.Second})
	do(t, l, boot(3), grant.Release{Tx: "s", Epoch: 1, Grace: 20 * time.Second})
	return l
}

func TestDeadlinesGoOnOverARestartAndBeginAnewAfterAReboot(t *testing.T) {
	for name, c := range map[string]struct {
		next resource.Incarnation
		want map[resource.TxID]float64 // seconds
	}{
		"the process starts again": {incarnation("j2", "b1"), map[resource.TxID]float64{"r": 10, "e": 32, "s": 23}},
		"the machine starts again": {incarnation("j1", "b2"), map[resource.TxID]float64{"r": 15, "e": 35, "s": 25}},
	} {
		t.Run(name, func(t *testing.T) {
			l := stages(t)
			do(t, l, boot(5), ledger.Start{Incarnation: c.next})
			for tx, seconds := range c.want {
				if g, _ := l.Lookup(tx); !g.Deadline.Equal(boot(seconds)) {
					t.Errorf("%s (%s): its deadline is %s after the first boot, want %v s", tx, g.State, g.Deadline.Sub(boot(0)), seconds)
				}
			}
		})
	}
}

// A preemption that was promoted is adopted by the next leader, as a waiting one
// is. A plain reservation of an older epoch is resolved.
func TestANewEpochResolvesReservationsButNotPromotedPreemptions(t *testing.T) {
	l := ready(t, machine(t, 8, 4))
	do(t, l, boot(0), gpus("plain", 1, 1))
	do(t, l, boot(0), gpus("v", 1, 3))
	do(t, l, boot(1), grant.Commit{Tx: "v", Epoch: 1, Revision: 6})
	preemptor := gpus("p", 1, 3)
	preemptor.After = []resource.TxID{"v"}
	do(t, l, boot(1), preemptor)
	do(t, l, boot(2), grant.Release{Tx: "v", Epoch: 1})
	do(t, l, boot(2), ledger.Stopped{Tx: "v"})
	if g, _ := l.Lookup("p"); g.State != grant.Reserved || !g.WasWaiting {
		t.Fatalf("p is %s, was waiting %v; want a promoted reservation", g.State, g.WasWaiting)
	}
	reply := do(t, l, boot(3), ledger.NewEpoch{Epoch: 2})
	if !slices.Equal(reply.Resolve, []resource.TxID{"plain"}) {
		t.Errorf("epoch 2 has %q resolved, want the plain reservation alone", reply.Resolve)
	}
}

// A message that the network repeats may reach an agent whose journal is new, and
// which has forgotten that the transaction has ended.
func TestAReserveForAnotherRegistrationIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		registered resource.Revision
		refused    bool
	}{
		"the registration of now":             {5, false},
		"an earlier one":                      {4, true},
		"a later one":                         {6, true},
		"a leader that names no registration": {0, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := ready(t, machine(t, 8, 4))
			request := gpus("r", 1, 1)
			request.Registered = c.registered
			reply := do(t, l, boot(1), request)
			if reply.Refused() != c.refused {
				t.Fatalf("the answer is %+v, want refused: %v", reply, c.refused)
			}
			if !c.refused {
				request.Registered = 99
				if again := do(t, l, boot(2), request); again.Refused() || again.State != grant.Reserved {
					t.Errorf("repeated, with another registration: %+v, want the present state", again)
				}
				return
			}
			if r := reply.Reasons[0]; r.Code != resource.ReasonUnregistered || r.Want != int64(c.registered) || r.Have != 5 {
				t.Errorf("the reason is %+v, want both registrations", r)
			}
		})
	}
}

// quarantined brings a ledger into quarantine; the store went back to revision
// 3.
func quarantined(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	do(t, l, boot(4), ledger.Registered{Revision: 3, Store: 3, Heard: l.Heard()})
	if l.Quarantine().IsZero() {
		t.Fatal("no quarantine")
	}
}

func TestAReconciliationNeverShortensAGrace(t *testing.T) {
	for name, c := range map[string]struct{ grace, want time.Duration }{
		"shorter": {10 * time.Second, 30 * time.Second},
		"longer":  {60 * time.Second, 60 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			l := stages(t)
			quarantined(t, l)
			do(t, l, boot(5), grant.Reconcile{Epoch: 2, Revision: 4, Released: []resource.TxID{"e"}, Grace: c.grace})
			if g, _ := l.Lookup("e"); g.Grace != c.want {
				t.Errorf("the grace of e is %s, want %s", g.Grace, c.want)
			}
		})
	}
}

// The devices of a grant that leaves go to the preemptor that waits for it, not
// to a record that names them too.
func TestARecordIsNotAdoptedOnDevicesThatAWaitingGrantGets(t *testing.T) {
	l := ready(t, machine(t, 8, 2))
	v := do(t, l, boot(1), gpus("v", 1, 1))
	preemptor := gpus("p", 1, 2)
	preemptor.After = []resource.TxID{"v"}
	if r := do(t, l, boot(1), preemptor); r.State != grant.Waiting {
		t.Fatalf("p is %s, want WAITING", r.State)
	}
	do(t, l, boot(2), grant.Commit{Tx: "other", Epoch: 1, Revision: 9}) // the store was at 9
	do(t, l, boot(3), ledger.Registered{Revision: 3, Store: 3, Heard: 9})
	if l.Quarantine().IsZero() {
		t.Fatal("no quarantine")
	}
	do(t, l, boot(5), grant.Reconcile{Epoch: 2, Revision: 4})
	elsewhere := v.Members[0]
	elsewhere.Assignment = elsewhere.Assignment.Clone()
	elsewhere.Assignment.Memory[0].Bytes *= 2
	reply := do(t, l, boot(6), ledger.Registered{Revision: 5, Store: 5, Heard: l.Heard(), Records: []ledger.Record{
		{Tx: "v", Unit: "v", Epoch: 1, State: grant.RecordCommitted, Revision: 5, Members: []ledger.Holding{elsewhere}},
		{Tx: "x", Unit: "x", Epoch: 1, State: grant.RecordCommitted, Revision: 5, Members: v.Members},
	}})
	if g, _ := l.Lookup("p"); g.State != grant.Reserved {
		t.Errorf("p is %s, want RESERVED", g.State)
	}
	if !slices.ContainsFunc(reply.Alarms, func(a string) bool { return strings.Contains(a, "transaction x is COMMITTED") }) {
		t.Errorf("alarms %q, want that of x", reply.Alarms)
	}
}

func TestAStoreAtTheRevisionOfBeforeHasNotGoneBack(t *testing.T) {
	for name, c := range map[string]struct {
		store       resource.Revision
		quarantined bool
	}{
		"the same revision": {9, false},
		"one revision less": {8, true},
		"it does not say":   {0, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := ready(t, machine(t, 8, 2))
			do(t, l, boot(3), ledger.Registered{Revision: 5, Store: c.store, Heard: 9})
			if got := !l.Quarantine().IsZero(); got != c.quarantined {
				t.Errorf("in quarantine: %v, want %v", got, c.quarantined)
			}
		})
	}
}

// TestARepeatedReserveExtendsAWaitingGrant: a preemptor keeps the place as long as the
// leader repeats the request, and no longer.
func TestARepeatedReserveExtendsAWaitingGrant(t *testing.T) {
	// waiting has p wait until 11 s for v, which has a grace of an hour.
	waiting := func(t *testing.T) (*ledger.Ledger, grant.Reserve) {
		t.Helper()
		l := ready(t, machine(t, 8, 4))
		do(t, l, boot(0), gpus("v", 1, 4))
		do(t, l, boot(0), grant.Commit{Tx: "v", Epoch: 1, Revision: 6})
		p := gpus("p", 1, 4)
		p.After, p.TTL = []resource.TxID{"v"}, 10*time.Second
		if r := do(t, l, boot(1), p); r.State != grant.Waiting {
			t.Fatalf("p is %s, want Waiting", r.State)
		}
		do(t, l, boot(1), grant.Release{Tx: "v", Epoch: 1, Grace: time.Hour})
		return l, p
	}
	for name, c := range map[string]struct {
		at     float64
		change func(*grant.Reserve)
		want   float64 // the deadline
	}{
		"the same request":         {6, func(*grant.Reserve) {}, 16},
		"more patience":            {6, func(p *grant.Reserve) { p.TTL = time.Minute }, 66},
		"a deadline before":        {2, func(p *grant.Reserve) { p.TTL = time.Second }, 11},
		"a new leader":             {2, func(p *grant.Reserve) { p.TTL, p.Epoch = time.Second, 2 }, 3},
		"no patience":              {6, func(p *grant.Reserve) { p.TTL = 0 }, 11},
		"no patience, new leader":  {6, func(p *grant.Reserve) { p.TTL, p.Epoch = 0, 2 }, 11},
		"the last moment":          {10.9, func(*grant.Reserve) {}, 20.9},
		"other victims count once": {6, func(p *grant.Reserve) { p.After = nil }, 16},
	} {
		t.Run(name, func(t *testing.T) {
			l, p := waiting(t)
			c.change(&p)
			if r := do(t, l, boot(c.at), p); r.State != grant.Waiting {
				t.Fatalf("the answer to the repeated request is %s, want Waiting", r.State)
			}
			epoch := p.Epoch
			if p.TTL == 0 { // such a request renews no grant
				epoch = 1
			}
			if g, _ := l.Lookup("p"); !g.Deadline.Equal(boot(c.want)) || g.Epoch != epoch {
				t.Errorf("p waits until %s after the boot under epoch %d, want %v s and epoch %d", g.Deadline.Sub(boot(0)), g.Epoch, c.want, epoch)
			}
			if r := do(t, l, boot(c.want-0.1), ledger.Tick{}); len(r.Resolve) > 0 {
				t.Errorf("before the deadline the agent asks for %q", r.Resolve)
			}
			if r := do(t, l, boot(c.want+0.1), ledger.Tick{}); !slices.Equal(r.Resolve, []resource.TxID{"p"}) {
				t.Errorf("after the deadline the agent asks for %q, want p", r.Resolve)
			}
		})
	}
}

// TestARepeatedReserveDoesNotExtendAReservation: the time is of the first request, under a
// new leader as well, unless the grant has waited.
func TestARepeatedReserveDoesNotExtendAReservation(t *testing.T) {
	for name, epoch := range map[string]resource.Epoch{"the same leader": 1, "a new leader": 2} {
		t.Run(name, func(t *testing.T) {
			l := ready(t, machine(t, 8, 4))
			r := gpus("r", 1, 1)
			r.TTL = 10 * time.Second
			do(t, l, boot(0), r)
			r.Epoch = epoch
			do(t, l, boot(5), r)
			if g, _ := l.Lookup("r"); !g.Deadline.Equal(boot(10)) {
				t.Errorf("r is %s until %s after the boot, want 10 s", g.State, g.Deadline.Sub(boot(0)))
			}
		})
	}
	l := ready(t, machine(t, 8, 4))
	do(t, l, boot(0), gpus("v", 1, 4))
	do(t, l, boot(0), grant.Commit{Tx: "v", Epoch: 1, Revision: 6})
	p := gpus("p", 1, 4)
	p.After, p.TTL = []resource.TxID{"v"}, 10*time.Second
	do(t, l, boot(1), p)
	do(t, l, boot(2), grant.Release{Tx: "v", Epoch: 1})
	do(t, l, boot(2), ledger.Stopped{Tx: "v"})
	for _, c := range []struct {
		epoch resource.Epoch
		adopt bool
	}{{1, false}, {2, true}} {
		before, _ := l.Lookup("p")
		p.Epoch = c.epoch
		do(t, l, boot(4), p)
		if g, _ := l.Lookup("p"); g.State != grant.Reserved || g.Epoch != c.epoch || c.adopt != g.Deadline.Equal(boot(14)) || !c.adopt && !g.Deadline.Equal(before.Deadline) {
			t.Errorf("epoch %d: p is %s until %s after the boot under epoch %d", c.epoch, g.State, g.Deadline.Sub(boot(0)), g.Epoch)
		}
	}
}
