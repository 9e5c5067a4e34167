package sim_test

import (
	"testing"

	sim "github.com/musterd/muster/test/sim"
)

// Gangs lose members on nodes that are dead, other units replace them, and both end
// together: in runs of nodes that die, beside evictions, restores and edits.
func TestGangsThatHeal(t *testing.T) {
	total := map[string]int{}
	for i := range uint64(*seeds) / 3 {
		o := options(t, 1_000_000+*base+i)
		o.All, o.Only = true, sim.Fences|sim.Heals
		if i%2 == 0 {
			o.Only |= sim.Evictions | sim.Claims | sim.Edits | sim.Trees
		}
		if i%3 == 0 {
			o.Only |= sim.Domains | sim.Subgroups | sim.Edits
		}
		if i%4 < 2 {
			o.Only |= sim.Sets
		}
		r := named(t, o)
		for k, v := range r.Stats {
			total[k] += v
		}
		if len(r.Failures) > 0 {
			t.Errorf("seed %d, step %d: %v\n%s", r.Seed, r.Steps, r.Failures, tailOf(r.Transcript, 60))
			break
		}
	}
	t.Logf("in all: %v", total)
	if *seeds < 300 || testing.Short() { // too few steps
		return
	}
	if total["members lost"] == 0 || total["members replaced"] == 0 {
		t.Errorf("%d members were lost, %d replaced: the simulation does not get far", total["members lost"], total["members replaced"])
	}
	if *seeds >= 2000 && total["members that differ replaced"] == 0 {
		t.Errorf("of %d members that were replaced none was of a gang whose members differ: the simulation does not get far", total["members replaced"])
	}
}
