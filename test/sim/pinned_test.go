package sim_test

import (
	"slices"
	"testing"

	sim "github.com/musterd/muster/test/sim"
)

// pin is a set of seeds, and the parts that they had when they met a fault.
type pin struct {
	only  sim.Parts
	seeds []uint64
}

// pinned are seeds that each met a fault of the real code before it was mended:
// without the rule that is named the run fails at about the step that is given.
var pinned = map[string]pin{
	// lost.problem, Leader.adoptee: 2212, 2095, 2090, 2150.
	"an adoption makes a second unit of one that is placed anew": {0, []uint64{77, 100, 175, 240}},
	// adoption.Unheard: 2171.
	"a preemption that was ABORTED is adopted as COMMITTED": {0, []uint64{170}},
	// Leader.pardon: 1909.
	"a node that is let back wakes nobody": {0, []uint64{197}},
	// Leader.collecting: 2127, 565, 1015.
	"a terminal record is deleted twice in one Txn": {0, []uint64{33, 40, 2112}},
	// unit.isBeingAdopted in Leader.claimQuota: the leader panics.
	"a claim names a unit that is being adopted": {0, []uint64{13775}},
	// lost.unitMembers: 2097, 2091, 2147, 2223, 2097.
	"a gang is adopted without the members of a lost disk": {0, []uint64{10017, 10772, 11604, 11650, 12763}},
}

func TestSeedsThatOnceFailedHold(t *testing.T) {
	for fault, p := range pinned {
		t.Run(fault, func(t *testing.T) {
			for _, seed := range slices.Sorted(slices.Values(p.seeds)) {
				if r := sim.Run(sim.Options{Seed: seed, Steps: 2000, Only: p.only}); len(r.Failures) > 0 {
					t.Errorf("seed %d, step %d: %v", seed, r.Steps, r.Failures)
				}
			}
		})
	}
}
