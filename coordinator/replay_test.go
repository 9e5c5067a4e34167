package coordinator_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterd/muster/coordinator"
)

// TestReplay: a leader is a value. Terms of clusters with faults are recorded;
// a new leader with the same beginning and inputs leaves the same effects and
// decisions, byte for byte, twice. A dependence on map order, a clock, a pointer
// or a random source of its own makes a difference; so does an input that a
// leader changes.
func TestReplay(t *testing.T) {
	seeds := []uint64{*seedFlag}
	if *seedFlag == 0 {
		seeds = []uint64{rand.Uint64(), rand.Uint64(), rand.Uint64()}
	}
	if testing.Short() {
		seeds = seeds[:1]
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			var recorder coordinator.Recorder
			runRandomFaults(t, seed, func(c *coordinator.Config) { c.Record(&recorder) })
			steps := 0
			for i, term := range recorder.Terms() {
				for range 2 {
					if diff := term.Replay(); diff != "" {
						t.Fatalf("term %d of %d: %s\nrun again with: go test ./coordinator -run TestReplay -seed %d", i+1, len(recorder.Terms()), diff, seed)
					}
				}
				steps += term.Len()
			}
			if steps == 0 {
				t.Fatal("nothing was recorded")
			}
			t.Logf("%d terms, %d steps", len(recorder.Terms()), steps)
		})
	}
}
