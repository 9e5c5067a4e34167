package sim_test

import (
	"testing"

	sim "github.com/musterd/muster/test/sim"
)

// enoughLosses are so many lost members that some of them are replaced: about half are.
const enoughLosses = 20

// Gangs lose members on nodes that are dead, other units replace them, and both end
// together: in runs of nodes that die, beside evictions, restores and edits. Seeds are
// drawn until enough members are lost, but at most ten times as many as asked for.
func TestGangsThatHeal(t *testing.T) {
	total, most := map[string]int{}, uint64(*seeds)/3
	few := *seeds < 300 || testing.Short() // and so few losses
	for i := uint64(0); i < most || !few && i < 10*most && total["members lost"] < enoughLosses; i++ {
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
	if few {
		return
	}
	if total["members lost"] < enoughLosses || total["members replaced"] == 0 {
		t.Errorf("%d members were lost, %d replaced; want %d and 1: the simulation does not get far", total["members lost"], total["members replaced"], enoughLosses)
	}
	if *seeds >= 2000 && total["members that differ replaced"] == 0 {
		t.Errorf("of %d members that were replaced none was of a gang whose members differ: the simulation does not get far", total["members replaced"])
	}
}
