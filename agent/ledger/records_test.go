package ledger_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestARecordIsJournalledOnce: the same revision of a held grant is no event, a later revision is.
func TestARecordIsJournalledOnce(t *testing.T) {
	for name, c := range map[string]struct {
		revision resource.Revision
		want     resource.Revision
		events   int
	}{"earlier": {5, 6, 0}, "the same": {6, 6, 0}, "later": {7, 7, 1}} {
		l := ready(t, machine(t, 8, 4))
		do(t, l, boot(0), gpus("a", 1, 1))
		do(t, l, boot(0), grant.Commit{Tx: "a", Epoch: 1, Revision: 6})
		_, events := l.Decide(boot(1), ledger.Resolved{Tx: "a", State: grant.RecordCommitted, Revision: c.revision})
		if len(events) != c.events {
			t.Errorf("%s: %d events, want %d", name, len(events), c.events)
		}
		do(t, l, boot(1), ledger.Resolved{Tx: "a", State: grant.RecordCommitted, Revision: c.revision})
		if g, _ := l.Lookup("a"); g.Revision != c.want {
			t.Errorf("%s: the grant has the record of %d, want %d", name, g.Revision, c.want)
		}
	}
}

// TestTheRevisionsOfTheStore: the highest of each message counts.
func TestTheRevisionsOfTheStore(t *testing.T) {
	l := ready(t, machine(t, 8, 4))
	for _, c := range []struct {
		cmd  ledger.Command
		want resource.Revision
	}{
		{ledger.Registered{Revision: 7, Store: 20, Heard: 5}, 20},
		{ledger.Registered{Revision: 30, Store: 25, Heard: 20}, 30},
		{ledger.NewEpoch{Epoch: 40}, 40},
		{ledger.NewEpoch{Epoch: 35}, 40},
		{ledger.Resolved{Tx: "gone", State: grant.RecordReleasing, Revision: 50}, 50},
		{grant.Release{Tx: "other", Epoch: 40}, 50},
	} {
		if do(t, l, boot(1), c.cmd); l.Heard() != c.want {
			t.Errorf("after %+v the highest revision is %d, want %d", c.cmd, l.Heard(), c.want)
		}
	}
}

// TestAContradictoryGrantTakesNoPart: the members before the contradiction give their devices back.
func TestAContradictoryGrantTakesNoPart(t *testing.T) {
	l := ready(t, machine(t, 8, 4))
	mine := do(t, l, boot(0), gpus("a", 1, 1)).Members
	free := do(t, l, boot(0), gpus("b", 1, 1)).Members
	do(t, l, boot(0), grant.Abort{Tx: "b", Epoch: 1})
	second := mine[0]
	second.Index = 1
	before := l.Snapshot()
	if err := l.Apply(ledger.Granted{Grant: ledger.Grant{Tx: "c", State: grant.Held, Members: []ledger.Holding{free[0], second}}}); err == nil {
		t.Fatal("a device is granted twice")
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before.GPUs, l.Snapshot().GPUs); diff != "" {
		t.Errorf("free GPUs (-before +after):\n%s", diff)
	}
}

// TestOfTwoEndsTheNewerAttemptMayRun: both records have the same devices, and the grant here is of an
// earlier life of the agent.
func TestOfTwoEndsTheNewerAttemptMayRun(t *testing.T) {
	older, newer := resource.NewTxID("u", 1, 1, resource.Nonce{1}), resource.NewTxID("w", 1, 2, resource.Nonce{2})
	for name, c := range map[string]struct{ here, other, want resource.TxID }{
		"the older is here": {older, newer, newer},
		"the newer is here": {newer, older, newer},
	} {
		l := ready(t, machine(t, 8, 4))
		members := do(t, l, boot(0), gpus(c.here, 1, 4)).Members
		do(t, l, boot(0), grant.Commit{Tx: c.here, Epoch: 1, Revision: 6})
		do(t, l, boot(1), ledger.Start{Incarnation: incarnation("j2", "b1")})
		record := func(tx resource.TxID) ledger.Record {
			return ledger.Record{Tx: tx, Epoch: 1, State: grant.RecordEvicting, Members: members, Grace: time.Minute, Revision: 8}
		}
		do(t, l, boot(2), ledger.Registered{Revision: 9, Store: 9, Heard: 6, Records: []ledger.Record{record(c.here), record(c.other)}})
		for _, tx := range []resource.TxID{older, newer} {
			want := grant.Tombstone
			if tx == c.want {
				want = grant.Evicting
			}
			if g, _ := l.Lookup(tx); g.State != want {
				t.Errorf("%s: %s is %s, want %s", name, tx, g.State, want)
			}
		}
	}
}

// TestAnAuditFollowsRecords: a reservation goes on to the end of the record, too.
func TestAnAuditFollowsRecords(t *testing.T) {
	for name, c := range map[string]struct {
		commit bool
		state  grant.RecordState
		want   grant.State
	}{
		"a reservation and a notice":  {false, grant.RecordEvicting, grant.Evicting},
		"a reservation and a release": {false, grant.RecordReleasing, grant.Stopping},
		"a held grant and a notice":   {true, grant.RecordEvicting, grant.Evicting},
		"a held grant and a release":  {true, grant.RecordReleasing, grant.Stopping},
	} {
		l := ready(t, machine(t, 8, 4))
		members := do(t, l, boot(0), gpus("a", 1, 1)).Members
		if c.commit {
			do(t, l, boot(0), grant.Commit{Tx: "a", Epoch: 1, Revision: 6})
		}
		r := do(t, l, boot(1), ledger.Registered{Revision: 9, Store: 9, Heard: 6, Records: []ledger.Record{{Tx: "a", Epoch: 1, State: c.state, Members: members, Grace: time.Minute, Revision: 8}}})
		if g, _ := l.Lookup("a"); g.State != c.want || !g.Deadline.Equal(boot(61)) || len(r.Resolve) > 0 {
			t.Errorf("%s: %s until %s after the boot, %q are read again; want %s until 61 s", name, g.State, g.Deadline.Sub(boot(0)), r.Resolve, c.want)
		}
	}
}

// TestAReleaseInAQuarantineEndsWithTheRecord: the registration with a record has the grant stay, the
// registration without a record stops the grant.
func TestAReleaseInAQuarantineEndsWithTheRecord(t *testing.T) {
	for name, found := range map[string]bool{"a record": true, "no record": false} {
		l := ready(t, machine(t, 8, 4))
		members := do(t, l, boot(0), gpus("a", 1, 1)).Members
		do(t, l, boot(0), grant.Commit{Tx: "a", Epoch: 1, Revision: 6})
		quarantined(t, l)
		do(t, l, boot(5), grant.Reconcile{Epoch: 2, Revision: 4, Released: []resource.TxID{"a"}, Grace: time.Minute})
		if g, _ := l.Lookup("a"); !g.Disowned || g.State != grant.Held {
			t.Fatalf("%s: after the order the grant is %s, disowned %t", name, g.State, g.Disowned)
		}
		var records []ledger.Record
		if found {
			records = []ledger.Record{{Tx: "a", Epoch: 1, State: grant.RecordCommitted, Members: members, Revision: 5}}
		}
		do(t, l, boot(6), ledger.Registered{Revision: 7, Store: 7, Heard: l.Heard(), Records: records})
		g, _ := l.Lookup("a")
		if want := map[bool]grant.State{true: grant.Held, false: grant.Stopping}[found]; g.State != want || found && g.Disowned {
			t.Errorf("%s: the grant is %s, disowned %t, want %s", name, g.State, g.Disowned, want)
		}
		if found { // a second registration stops no adopted grant
			do(t, l, boot(8), ledger.Start{Incarnation: incarnation("j1", "b1")})
			r := do(t, l, boot(9), ledger.Registered{Revision: 8, Store: 8, Heard: l.Heard()})
			if g, _ := l.Lookup("a"); g.State != grant.Held || !slices.Equal(r.Resolve, []resource.TxID{"a"}) {
				t.Errorf("without a record at a later audit the grant is %s, %q are read again", g.State, r.Resolve)
			}
		}
	}
}
