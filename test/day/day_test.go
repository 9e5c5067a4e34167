package day_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/musterd/muster/test/long"
	"github.com/musterd/muster/test/postgres"
	"github.com/musterd/muster/test/sim"
)

// The flags of make day.
var (
	hours = flag.Float64("day.hours", long.Size(0.4, 24), "hours of virtual time in all")
	from  = flag.Uint64("day.from", 1, "the first seed")
)

func TestMain(m *testing.M) { flag.Parse(); os.Exit(postgres.Main(m)) }

// parts are all but restores: rows of a past that the store has lost are marked by the
// projector, which the simulation does not have.
const parts = ^sim.Restores

// TestTheHistoryOfADay: after each cluster both databases hold no contradiction, and the sums
// of use by slices and by hours are those of the witness.
func TestTheHistoryOfADay(t *testing.T) {
	var passed time.Duration
	total := map[string]int{}
	for seed := *from; passed < time.Duration(*hours*float64(time.Hour)); seed++ {
		c, r := live(t, seed)
		if t.Failed() {
			return
		}
		passed += r.Passed
		total["clusters"]++
		total["grants"] += len(c.seen.txs)
		total["evictions"] += r.Stats["evictions"]
		total["members lost"] += c.seen.lost
	}
	t.Logf("%v of virtual time: %v", passed, total)
}

// TestClustersWithAFaultBefore has the seeds of clusters whose histories had a contradiction
// before a mend.
func TestClustersWithAFaultBefore(t *testing.T) {
	for what, seed := range map[string]uint64{
		"devices that a node frees while the write of EVICTING has no answer go to the next unit": 224,
	} {
		t.Run(what, func(t *testing.T) { live(t, seed) })
	}
}

// live has a simulated cluster live, and compares the histories with the witness.
func live(t *testing.T, seed uint64) (*cluster, sim.Result) {
	t.Helper()
	c := newCluster(t)
	r := sim.Run(sim.Options{Seed: seed, Steps: 2000, Only: parts, Followed: c.follow})
	if len(r.Failures) > 0 {
		t.Fatalf("seed %d, step %d: %v", seed, r.Steps, r.Failures)
	}
	c.flush()
	for dialect, w := range c.histories {
		for _, fault := range c.contradictions(w) {
			t.Errorf("seed %d, %s: %s", seed, dialect, fault)
		}
		w.Close()
	}
	return c, r
}
