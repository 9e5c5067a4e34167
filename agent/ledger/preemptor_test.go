package ledger_test

import (
	"testing"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
)

// A journal that has lost its last records holds a preemptor that waits, and a
// victim that runs; by the store's records the one has taken the other's place.
func TestARevivedVictimGivesWayToItsPreemptor(t *testing.T) {
	for _, state := range []grant.RecordState{grant.RecordCommitted, grant.RecordEvicting} {
		t.Run(state.String(), func(t *testing.T) {
			l := ready(t, machine(t, 8, 2))
			do(t, l, boot(1), gpus("v", 1, 2))
			do(t, l, boot(1), grant.Commit{Tx: "v", Epoch: 1, Revision: 6})
			waiting := gpus("p", 1, 2)
			waiting.After = append(waiting.After, "v")
			r := do(t, l, boot(2), waiting)
			if r.State != grant.Waiting {
				t.Fatalf("p is %s, want WAITING", r.State)
			}
			do(t, l, boot(3), ledger.Start{Incarnation: incarnation("j2", "b1")})
			do(t, l, boot(3), ledger.Registered{Revision: 20, Records: []ledger.Record{{
				Tx: "p", Unit: "p", Epoch: 1, State: state, Revision: 15, Members: r.Members,
			}}})
			want := map[grant.RecordState]grant.State{grant.RecordCommitted: grant.Held, grant.RecordEvicting: grant.Evicting}[state]
			if g, _ := l.Lookup("p"); g.State != want {
				t.Errorf("p is %s, want %s", g.State, want)
			}
			if g, _ := l.Lookup("v"); g.State != grant.Tombstone {
				t.Errorf("v is %s, want TOMBSTONE", g.State)
			}
		})
	}
}
