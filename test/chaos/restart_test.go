package chaos

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/long"
)

// held is how many allocations an agent has when it is killed.
var held = long.Size(30, 100)

// small is an allocation without devices.
func small(name string) *api.Allocation {
	a := &api.Allocation{Metadata: api.ObjectMeta{Name: name}}
	a.Spec.Resources.Requests = map[resource.Name]string{resource.CPU: "100m", resource.Memory: "64Mi"}
	return a
}

// outage is how long the only agent of a cluster takes from kill -9 to the
// next allocation on it, when it is started again at once.
func outage(t testing.TB, c *cluster.Cluster, name string) time.Duration {
	t.Helper()
	began := time.Now()
	c.Agents[0].Kill()
	c.Agents[0].Start()
	c.Run(c.Client, small(name))
	return time.Since(began)
}

func TestAKilledAgentIsBackWithWhatItHeld(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Etcd: 1, Coordinators: 1, Agents: 1})
	for i := range held {
		c.Run(c.Client, small(fmt.Sprintf("a-%d", i)))
	}
	t.Logf("back after %s, with %d allocations", outage(t, c, "after").Round(time.Millisecond), held)
	c.Audit(nil)
}

func BenchmarkKilledAgentWith100Allocations(b *testing.B) {
	c := cluster.Start(b, cluster.Options{Etcd: 1, Coordinators: 1, Agents: 1, Quiet: true})
	for i := range 100 {
		c.Run(c.Client, small(fmt.Sprintf("a-%d", i)))
	}
	var worst time.Duration
	for i := 0; b.Loop(); i++ {
		name := fmt.Sprintf("after-%d", i)
		worst = max(worst, outage(b, c, name))
		b.StopTimer()
		ctx, cancel := context.WithTimeout(context.Background(), cluster.Patience)
		if _, err := c.Client.DeleteAllocation(ctx, "default", name, 0); err != nil {
			b.Fatal(err)
		}
		cancel()
		hold(5 * time.Second) // a stream that lasts: the leader is in no haste to call one that dies again and again
		b.StartTimer()
	}
	b.ReportMetric(float64(worst.Milliseconds()), "ms-worst")
}
