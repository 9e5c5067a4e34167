package ledger

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/resource"
)

func TestAttemptsAreReadAsTheirIdentifiersAreMade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Attempt{resource.Epoch(rapid.Int64Min(0).Draw(t, "epoch")), rapid.Uint64().Draw(t, "counter")}
		unit := resource.UnitUID(rapid.StringMatching(`[a-z0-9-]{1,9}`).Draw(t, "unit"))
		tx := resource.NewTxID(unit, want.Epoch, want.Counter, resource.Nonce{15: rapid.Byte().Draw(t, "nonce")})
		if got := attemptOf(tx); got != want {
			t.Fatalf("%s is read as %+v, want %+v", tx, got, want)
		}
	})
	for _, tx := range []resource.TxID{"", "a", "a.b", "a.1.2", "a.x.1.n", "a.1.x.n", "a.-1.1.n"} {
		if got := attemptOf(tx); got != (Attempt{}) {
			t.Errorf("%q is read as %+v", tx, got)
		}
	}
	tx := resource.NewTxID("unit", 1<<40, 1<<60, resource.Nonce{})
	if n := testing.AllocsPerRun(100, func() { attemptOf(tx) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
