package histories

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/programs"
)

// The flags of `make chaos`; the defaults are the short round of `make test`.
var (
	count = flag.Int("histories.count", 3, "how many histories are recorded and judged")
	seed  = flag.Uint64("histories.seed", uint64(time.Now().UnixNano()), "decides what clients ask and who is killed")
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// opsOfAHistory is how many operations one has at least.
const opsOfAHistory = 150

// Clients of three coordinators over a store of three members, of which some
// process is killed in each history.
func TestClientsSeeOneThingAtATime(t *testing.T) {
	t.Logf("seed %d: repeat with -args -histories.seed=%d", *seed, *seed)
	lot := rand.New(rand.NewPCG(*seed, 0))
	const limit = 5
	c := cluster.Start(t, cluster.Options{
		Agents: 2, GPUs: 4, Namespaces: cluster.Settings{"ns": cluster.Settings{"quota": cluster.Settings{"nvidia.com/gpu": limit}}},
	})
	total, lost, parts, began := 0, 0, 0, time.Now()
	for i := range *count {
		history := record(c, fmt.Sprintf("h%d-", i), lot)
		v := Judge(history, map[string]int{"ns": limit}, cluster.Patience)
		for _, o := range history {
			if o.Answer == Lost {
				lost++
			}
		}
		total, parts = total+len(history), parts+v.Parts
		for _, p := range v.Problems {
			t.Errorf("history %d: %s", i, p)
		}
		if len(v.Undecided) > 0 {
			t.Errorf("history %d: too hard to judge in the time given: %v", i, v.Undecided)
		}
		c.Audit(nil)
		c.Clear()
		if (i+1)%10 == 0 || i+1 == *count {
			t.Logf("%d histories after %s: %d operations, %d without an answer, %d parts judged", i+1, time.Since(began).Round(time.Second), total, lost, parts)
		}
	}
}

// record records one history, in the midst of which a process is killed and
// comes back.
func record(c *cluster.Cluster, prefix string, lot *rand.Rand) []Op {
	r := Record(c, []string{"ns", "free"}, 6, prefix, lot.Uint64())
	await := func(n int) {
		_ = programs.Poll(cluster.Patience, func() error { // what is missing is judged as it is
			if have := r.Count(); have < n {
				return fmt.Errorf("%d operations", have)
			}
			return nil
		})
	}
	await(opsOfAHistory / 3)
	victim := victim(c, lot)
	victim.Kill()
	await(2 * opsOfAHistory / 3)
	victim.Restart()
	await(opsOfAHistory)
	return r.Stop()
}

// victim is the leader as often as any other.
func victim(c *cluster.Cluster, lot *rand.Rand) *cluster.Process {
	leader, _ := c.AwaitLeader(0)
	if lot.IntN(2) == 0 {
		return leader
	}
	all := c.Processes()
	return all[lot.IntN(len(all))]
}
