package ledger_test

import (
	"slices"
	"testing"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// In each state the ledger takes exactly the events, to exactly the states, that
// the table of package grant names.
func TestTheLedgerTakesTheStepsOfTheTable(t *testing.T) {
	const tx = resource.TxID("u.1.1.0")
	events := map[string]ledger.Event{
		"Committed": ledger.Committed{Tx: tx, Revision: 9},
		"Promoted":  ledger.Promoted{Tx: tx, Deadline: boot(60)},
		"Noticed":   ledger.Noticed{Tx: tx, Since: boot(0), Deadline: boot(60)},
		"StopBegun": ledger.StopBegun{Tx: tx, Since: boot(0), Deadline: boot(60)},
		"Buried":    ledger.Buried{Tx: tx},
		"Dropped":   ledger.Dropped{Tx: tx},
	}
	grantIn := func(state grant.State) ledger.Granted {
		g := ledger.Grant{Tx: tx, State: state, Origin: ledger.OriginOrphan} // an orphan is dropped when it is HELD
		if state != grant.Tombstone {
			g.Members = []ledger.Holding{{Assignment: resource.Assignment{CPUs: []resource.CPUGrant{{ID: 0, Milli: 1000}}}}}
		}
		return ledger.Granted{Grant: g}
	}
	for from := grant.None; from <= grant.Tombstone; from++ {
		for name, event := range events {
			l := ready(t, machine(t, 8, 0))
			if from != grant.None {
				if err := l.Apply(grantIn(from)); err != nil {
					t.Fatalf("a grant in %s: %v", from, err)
				}
			}
			err := l.Apply(event)
			g, _ := l.Lookup(tx)
			i := slices.IndexFunc(grant.Edges(), func(e grant.Edge) bool { return e.From == from && e.Event == name })
			switch {
			case i < 0 && err == nil:
				t.Errorf("%s takes %s from %s to %s, which the table does not have", name, tx, from, g.State)
			case i >= 0 && (err != nil || g.State != grant.Edges()[i].To):
				t.Errorf("%s takes %s from %s to %s (%v), want %s", name, tx, from, g.State, err, grant.Edges()[i].To)
			}
		}
	}
	for to := grant.Waiting; to < grant.Tombstone; to++ {
		if l := ready(t, machine(t, 8, 0)); !grant.None.MayBecome(to) || l.Apply(grantIn(to)) != nil || l.Apply(grantIn(to)) == nil {
			t.Errorf("a grant appears in %s once: table %t", to, grant.None.MayBecome(to))
		}
	}
}
