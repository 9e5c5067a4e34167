package txn_test

import (
	"testing"

	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

func TestAnswersThatCountForNothing(t *testing.T) {
	waited := func(node resource.NodeID, rev resource.Revision) txn.Input {
		return txn.Waited{Node: node, Vote: txn.Vote{Revision: rev}}
	}
	voted := func(node resource.NodeID, rev resource.Revision) txn.Input {
		return txn.Voted{Node: node, Vote: txn.Vote{Revision: rev}}
	}
	for name, c := range map[string]struct {
		victims []resource.TxID
		before  []txn.Input
		nothing txn.Input
		state   txn.State
		answer  resource.Revision // n1's that counts, 0 if none does
	}{
		"Waiting, where nobody is to leave":                {nil, nil, waited("n1", 7), txn.Reserving, 0},
		"a Yes without a registration":                     {nil, nil, voted("n1", 0), txn.Reserving, 0},
		"a Yes of an older registration":                   {nil, []txn.Input{voted("n1", 7)}, voted("n1", 6), txn.Reserving, 7},
		"a Waiting of an older registration":               {[]resource.TxID{"v"}, []txn.Input{waited("n1", 7)}, waited("n1", 6), txn.Reserving, 7},
		"a Waiting after the Yes":                          {[]resource.TxID{"v"}, []txn.Input{voted("n1", 7)}, waited("n1", 7), txn.Reserving, 7},
		"a No of a stranger":                               {nil, []txn.Input{voted("n1", 7)}, txn.Refused{Node: "n9"}, txn.Reserving, 7},
		"a No while the evictions are being written":       {[]resource.TxID{"v"}, []txn.Input{voted("n1", 7), voted("n2", 7)}, txn.Refused{Node: "n1"}, txn.Clearing, 7},
		"a No while the commit is being written":           {nil, []txn.Input{voted("n1", 7), voted("n2", 7)}, txn.Refused{Node: "n1"}, txn.Committing, 7},
		"a budget that ends while the commit is under way": {nil, []txn.Input{voted("n1", 7), voted("n2", 7)}, txn.BudgetSpent{}, txn.Committing, 7},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := txn.New("tx", []resource.NodeID{"n1", "n2"}, c.victims...)
			for _, in := range c.before {
				m.Step(in)
			}
			if effects := m.Step(c.nothing); len(effects) > 0 || m.State() != c.state {
				t.Errorf("it asks for %v, and is %s, want nothing and %s", effects, m.State(), c.state)
			}
			if vote, _ := m.Answer("n1"); vote.Revision != c.answer {
				t.Errorf("the answer under registration %d counts, want %d", vote.Revision, c.answer)
			}
		})
	}
}

// TestAVictimIsReleasedOnceItsPreemptorIsDecided: until then the preemptor's commit
// is to find the record EVICTING.
func TestAVictimIsReleasedOnceItsPreemptorIsDecided(t *testing.T) {
	for by, want := range map[resource.TxID]txn.State{"p": txn.Evicting, "": txn.Ending} {
		m, _ := txn.Recover("tx", txn.Found{State: grant.RecordEvicting, Revision: 5, By: by}, map[resource.NodeID]txn.Vote{"n1": {Revision: 1}})
		effects := m.Step(txn.ReleaseAsked{GraceSeconds: 3})
		if m.State() != want || (len(effects) == 0) != (want == txn.Evicting) {
			t.Errorf("with the preemptor %q: %s, %v, want %s", by, m.State(), effects, want)
		}
	}
}
