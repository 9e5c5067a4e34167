package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// marked is an agent after the first registration, and do decides a command.
func marked(t *testing.T) (l *ledger.Ledger, do func(*ledger.Ledger, ledger.Command)) {
	t.Helper()
	l = ledger.New(machine(t, 8, 4))
	do = func(l *ledger.Ledger, c ledger.Command) {
		t.Helper()
		_, events := l.Decide(boot(1), c)
		if err := l.Replay([][]byte{ledger.AppendEvents(nil, events)}); err != nil {
			t.Fatal(err)
		}
	}
	do(l, ledger.Start{Incarnation: incarnation("j", "b")})
	if !l.AcceptsAny() {
		t.Error("an agent before its first registration does not accept a restoration")
	}
	do(l, ledger.Registered{Revision: 5, Store: 5, Marks: ledger.Marks{Epoch: 3, Term: "m", Restored: "r1"}})
	return l, do
}

func TestMarksAreOfTheLastRegistrationAndSurviveARewrite(t *testing.T) {
	l, do := marked(t)
	do(l, ledger.Registered{Revision: 5, Store: 9, Heard: 5}) // by an older coordinator
	again := ledger.New(machine(t, 8, 4))
	if err := again.Replay([][]byte{ledger.AppendEvents(nil, l.SnapshotEvents())}); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]*ledger.Ledger{"the ledger": l, "a rewritten journal": again} {
		if diff := cmp.Diff(ledger.Marks{Epoch: 3, Term: "m", Restored: "r1"}, of.Marks()); diff != "" || of.AcceptsAny() {
			t.Errorf("%s: accepts any %t\n%s", name, of.AcceptsAny(), diff)
		}
	}
}

func TestMarksThatTheStoreLacksIsolateUntilTheReconciliation(t *testing.T) {
	l, do := marked(t)
	do(l, ledger.Registered{Revision: 40, Store: 40, Heard: 5, Lost: true, Marks: ledger.Marks{Epoch: 30, Term: "n", Restored: "r2"}})
	if q := l.Quarantine(); q.IsZero() || l.Marks().Term != "m" || l.AcceptsAny() {
		t.Errorf("quarantine %q with the marks %+v, accepts any %t", q, l.Marks(), l.AcceptsAny())
	}
	for range 2 { // the second order is a repetition
		do(l, grant.Reconcile{Epoch: 30, Revision: 41})
		if !l.Quarantine().IsZero() || l.Registration() != 0 && l.AcceptsAny() {
			t.Errorf("quarantine %q, registered at %d", l.Quarantine(), l.Registration())
		}
		if l.AcceptsAny() {
			do(l, ledger.Registered{Revision: 42, Store: 42, Heard: 41, Marks: ledger.Marks{Epoch: 30, Term: "n", Restored: "r2"}})
		}
	}
	if l.Registration() != 42 || l.Marks().Restored != "r2" || l.AcceptsAny() {
		t.Errorf("registered at %d with the marks %+v", l.Registration(), l.Marks())
	}
	do(l, grant.Reconcile{Epoch: 30, Revision: 50}) // outside quarantine
	if l.Registration() != 0 || !l.AcceptsAny() {
		t.Errorf("registered at %d after an order to reconcile", l.Registration())
	}
	do(l, ledger.NewEpoch{Epoch: 60})
	do(l, ledger.Registered{Revision: 61, Store: 61, Heard: 60, Marks: ledger.Marks{Term: "o", Restored: "r2"}})
	if do(l, grant.Reconcile{Epoch: 30, Revision: 70}); l.Registration() != 61 {
		t.Error("an older leader's order takes effect outside quarantine")
	}
}

func TestMarksOfAnAgentWithGrantsAcceptNoRestoration(t *testing.T) {
	l := ledger.New(machine(t, 8, 4))
	for _, e := range []ledger.Event{
		ledger.Started{Incarnation: incarnation("j", "b"), At: boot(1)},
		ledger.Granted{Grant: ledger.Grant{Tx: "t1", State: grant.Tombstone, Revision: 7}},
		ledger.Granted{Grant: ledger.Grant{Tx: "t2", State: grant.Tombstone, Revision: 9}},
	} {
		if err := l.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	if l.AcceptsAny() {
		t.Error("an agent of an older version, with grants, accepts any restoration")
	}
	if tx, at := l.Newest(); tx != "t2" || at != 9 {
		t.Errorf("the newest record is %s at %d", tx, at)
	}
	if err := l.Apply(ledger.Reconciled{Epoch: 3, Revision: resource.Revision(20)}); err != nil {
		t.Fatal(err)
	}
	if tx, at := l.Newest(); at != 0 {
		t.Errorf("after a reconciliation %s at %d of the lost store counts", tx, at)
	}
}
