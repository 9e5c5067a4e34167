package sim_test

import (
	"bytes"
	"flag"
	"runtime/debug"
	"testing"

	"github.com/musterd/muster/test/long"
	sim "github.com/musterd/muster/test/sim"
)

// What `make sim` sets.
var (
	seed  = flag.Int64("sim.seed", -1, "replay this seed and print its transcript")
	seeds = flag.Int("sim.seeds", long.Size(100, 2000), "how many seeds to run")
	base  = flag.Uint64("sim.from", 1, "the first of them")
	steps = flag.Int("sim.steps", 2000, "steps of each until its faults end")
)

// gcPercent: a run leaves little behind, and makes much garbage.
const gcPercent = 400

// options are those of a seed.
func options(t *testing.T, seed uint64) sim.Options {
	o := sim.Options{Seed: seed, Steps: *steps}
	if testing.Short() {
		o.Steps = min(o.Steps, 500)
	}
	return o
}

// tailOf returns the last lines of a transcript.
func tailOf(transcript []byte, lines int) []byte {
	all := bytes.SplitAfter(transcript, []byte("\n"))
	return bytes.Join(all[max(0, len(all)-lines):], nil)
}

// named runs a seed, and names it if the leader panics.
func named(t *testing.T, o sim.Options) sim.Result {
	ended := false
	defer func() {
		if !ended {
			t.Logf("seed %d panics; all of it: make sim SEED=%d", o.Seed, o.Seed)
		}
	}()
	r := sim.Run(o)
	ended = true
	return r
}

func TestSeedsHoldEveryInvariant(t *testing.T) {
	if *seed >= 0 {
		r := sim.Run(options(t, uint64(*seed)))
		t.Logf("seed %d ends at step %d with %v\n%s", r.Seed, r.Steps, r.Failures, r.Transcript)
		if len(r.Failures) > 0 {
			t.Fail()
		}
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	total := map[string]int{}
	failed := 0
	for i := range *seeds {
		r := named(t, options(t, *base+uint64(i)))
		total["steps"] += r.Steps
		for k, v := range r.Stats {
			total[k] += v
		}
		if len(r.Failures) == 0 {
			continue
		}
		if failed++; failed == 1 {
			t.Logf("the last lines of seed %d; all of them: make sim SEED=%d\n%s", r.Seed, r.Seed, tailOf(r.Transcript, 120))
		}
		if failed <= 20 {
			t.Errorf("seed %d, step %d: %v", r.Seed, r.Steps, r.Failures)
		}
	}
	t.Logf("%d of %d seeds failed; in all: %v", failed, *seeds, total)
	floor := *seeds
	if testing.Short() {
		floor /= 2 // fewer steps
	}
	for _, what := range []string{"commits", "releases", "aborted records", "agent crashes", "reboots", "terms", "evictions", "running at the end"} {
		if *seeds >= 100 && total[what] < floor {
			t.Errorf("%s: %d in %d seeds: the simulation does not get far", what, total[what], *seeds)
		}
	}
}

func TestASeedDecidesEverything(t *testing.T) {
	hashes := map[uint64]uint64{}
	for s := range uint64(10) {
		first, second := sim.Run(options(t, s)), sim.Run(options(t, s))
		if first.Hash != second.Hash {
			t.Errorf("seed %d: transcripts %016x and %016x", s, first.Hash, second.Hash)
		}
		if other, twice := hashes[first.Hash]; twice {
			t.Errorf("seeds %d and %d have the same transcript", other, s)
		}
		hashes[first.Hash] = s
	}
}
