package quota_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/quota"
)

// Whatever has happened, and in both modes: an undo takes an admission back to the
// byte. In Maintenance an admission moves and evicts nobody, and only a group that
// does not exist or an amount that cannot be summed refuses it.
func TestAnAdmissionIsUndoneInBothModes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "world"), 3)).IntN, true)
		if !h.forest {
			h.must(h.m.AddForest("F"))
			h.must(h.m.AddTreeToForest("F", h.o.trees[0].name))
		}
		h.draw = func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			mode := rapid.SampledFrom([]quota.Mode{quota.Normal, quota.Maintenance}).Draw(t, "mode")
			if err := h.m.SetMode(mode); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "a call") {
				newStroke(h)(h.m)
			}
			id := h.specs[h.draw(len(h.specs))].ID
			before := h.m.AppendState(nil)
			r, err := h.m.AdmitForest("F", id)
			if err != nil {
				if after := h.m.AppendState(nil); !bytes.Equal(before, after) {
					t.Fatalf("an error changes (-before +after):\n%s", cmp.Diff(string(before), string(after)))
				}
				continue
			}
			if mode == quota.Maintenance {
				checkForced(t, h.m, id, r)
			}
			if err := h.m.Check(); err != nil {
				t.Fatal(err)
			}
			if err := h.m.UndoAllocateForest("F", id); err != nil {
				t.Fatal(err)
			}
			if after := h.m.AppendState(nil); !bytes.Equal(before, after) {
				t.Fatalf("%s: the undo leaves (-want +got):\n%s", mode, cmp.Diff(string(before), string(after)))
			}
		}
	})
}

// checkForced looks at an admission in Maintenance.
func checkForced(t *rapid.T, m *quota.Manager, id string, r quota.Result) {
	if !r.OK {
		if r.Refusal.Code != quota.UnknownGroup && r.Refusal.Code != quota.Overflow {
			t.Fatalf("%s is refused: %+v", id, r.Refusal)
		}
		return
	}
	if len(r.Preempted) > 0 {
		t.Fatalf("%s evicts %v", id, r.Preempted)
	}
	for _, move := range m.Moves() {
		if move.Consumer != id || move.From != "" {
			t.Fatalf("%s moves %+v", id, move)
		}
	}
}
