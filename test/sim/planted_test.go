package sim_test

import (
	"runtime/debug"
	"testing"

	"github.com/musterd/muster/test/long"
	sim "github.com/musterd/muster/test/sim"
)

// within is the number of seeds in which a planted bug has to be found.
const within = 300

// foundBy is the first seed that finds each planted bug. A change of a decision
// changes the course of each seed, so an entry may be out of date: the test then
// searches, which takes a hundred times as long, and logs the seed to put here.
var foundBy = map[sim.Bug]uint64{
	sim.CommitWithoutIncarnation: 1,
	sim.CompareIdentityReadAnew:  1,
	sim.AnswerBeforeRegistering:  1,
	sim.RegisterWithoutReading:   1,
	sim.ReadBeforeRegistering:    158,
	sim.FreedBeforeDurable:       3,
	sim.FreedBeforeStopped:       3,
	sim.UnknownIsAborted:         158,
	sim.EpochNotCompared:         5,
	sim.SumBeforeElection:        8,
	sim.TombstoneForgottenEarly:  18,
	sim.FreeWithoutFencing:       1,
	sim.AckBeforeCommit:          1,
	sim.ReleasedBeforeAllFreed:   1,
	sim.CollectInDoubt:           92,
	sim.CommitOverRecord:         16,
	sim.RestoreUnnoticed:         2,
	sim.EvictForDecided:          22,
	sim.EvictWithoutIncarnations: 72,
	sim.SwapBeforeFreed:          47,
	sim.SwapKeepsVictims:         1,
	sim.GraceCut:                 1,
	sim.CollectEvictionInDoubt:   63,
	sim.VictimsNotRead:           63,
	sim.AdoptionForgotten:        9,
	sim.CollectNamed:             9,
	sim.FencedIsDead:             3,
	sim.EndIgnoresFence:          42,
	sim.CollectUnheard:           3,
	sim.DeathRetried:             41,
	sim.DeathOutlived:            1,
	sim.OrphansUnseen:            1,
	sim.EndedInQuarantine:        7,
	sim.VictimsUnseen:            90,
}

func TestEveryPlantedBugIsFound(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	for b := sim.NoBug + 1; b < sim.BugCount; b++ {
		t.Run(b.String(), func(t *testing.T) {
			if pinned := foundBy[b]; !long.Enabled() && finds(t, b, pinned) {
				return
			}
			for s := uint64(1); s <= within; s++ {
				if finds(t, b, s) {
					if s != foundBy[b] {
						t.Logf("foundBy names seed %d for this bug: replace it by %d, the search costs time in each run", foundBy[b], s)
					}
					return
				}
			}
			t.Errorf("not found within %d seeds", within)
		})
	}
}

// finds reports whether a seed finds a planted bug.
func finds(t *testing.T, b sim.Bug, seed uint64) bool {
	r := sim.Run(sim.Options{Seed: seed, Steps: 2000, Bug: b})
	if len(r.Failures) > 0 {
		t.Logf("seed %d, step %d: %s", r.Seed, r.Steps, r.Failures[0])
	}
	return len(r.Failures) > 0
}
