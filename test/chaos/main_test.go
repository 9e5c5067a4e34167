package chaos

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/long"
)

// The flags of `make chaos`; the defaults are the short round of `make test`.
var (
	kills  = flag.Int("chaos.kills", long.Size(5, 50), "how many processes are killed under load")
	rounds = flag.Int("chaos.rounds", 0, "how often each partition is made, with an audit after each; 0 = once, with one audit at the end")
	seed   = flag.Uint64("chaos.seed", uint64(time.Now().UnixNano()), "decides who is hit, when and for how long")
)

func TestMain(m *testing.M) {
	// Clusters wait for leases more than they work, but more of them than this
	// keep a small machine so busy that leases of 2 s end all the time.
	if err := flag.Set("test.parallel", "2"); err != nil {
		panic(err)
	}
	os.Exit(cluster.Main(m))
}

// bounded is a namespace whose limit is below what the cluster has, so that
// clients meet it all the time.
const bounded = "bounded"

// start brings up the usual cluster.
func start(t testing.TB, o cluster.Options) *cluster.Cluster {
	t.Helper()
	o.Namespaces = cluster.Settings{bounded: cluster.Settings{"quota": cluster.Settings{"nvidia.com/gpu": 12}}}
	return cluster.Start(t, o)
}

// load is the usual load; prefix is as in cluster.LoadOptions.
func load(c *cluster.Cluster, prefix string) *cluster.Load {
	return c.StartLoad(cluster.LoadOptions{
		Prefix: prefix, Seed: *seed, Namespaces: []string{"default", bounded}, Pace: long.Size(60*time.Millisecond, 20*time.Millisecond),
		Quota: bounded, QuotaBetween: [2]int{4, 12},
	})
}

// dice are drawn anew for each test, from the seed and what the test is.
func dice(t testing.TB, which uint64) *rand.Rand {
	t.Logf("seed %d: repeat with -args -chaos.seed=%d", *seed, *seed)
	return rand.New(rand.NewPCG(*seed, which))
}

// hold lets a fault last.
func hold(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// finish ends a load, audits, and empties the cluster for the next.
func finish(t testing.TB, c *cluster.Cluster, l *cluster.Load, name string) []cluster.Operation {
	t.Helper()
	operations := l.Stop()
	c.Audit(operations)
	c.Clear()
	c.Fill(name)
	return operations
}

// outcomes counts operations by what came of them.
func outcomes(operations []cluster.Operation) string {
	n := map[cluster.Outcome]int{}
	for _, op := range operations {
		n[op.Outcome]++
	}
	return fmt.Sprintf("%d done, %d refused, %d unknown", n[cluster.Done], n[cluster.Refused], n[cluster.Unknown])
}
