// Package failover shows with real programs what clients see of a cluster with
// several coordinators: any of them answers, and when the leader goes the next
// one goes on within a lease and a moment. It judges what clients are told;
// what becomes of the cluster under worse faults is test/chaos'.
package failover

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// one is an allocation of one GPU.
func one(name string) *api.Allocation {
	a := &api.Allocation{Metadata: api.ObjectMeta{Name: name}}
	a.Spec.Resources.Requests = map[resource.Name]string{"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
	return a
}

func TestEveryCoordinatorAnswers(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Etcd: 1, Agents: 2})
	for i, by := range c.Coordinators {
		name := fmt.Sprint("a", i)
		k := c.At(by)
		made := c.Run(k, one(name))
		for _, at := range c.Coordinators { // whatever was acknowledged is shown by all, at once
			got, err := c.At(at).GetAllocation(t.Context(), "default", name, sdk.GetOptions{})
			if err != nil || got.Status.Phase != api.Running || got.Metadata.UID != made.Metadata.UID {
				t.Errorf("%s shows %s: %v, %+v", at.Name, name, err, got)
				continue
			}
			if g := got.Status.Assignment.GPUs; len(g) != 1 || g[0].Model == "" || g[0].UUID != made.Status.Assignment.GPUs[0].UUID {
				t.Errorf("%s shows the devices %+v, want %+v", at.Name, g, made.Status.Assignment.GPUs)
			}
		}
		repeated := k.Repeated.Load()
		// A deletion that was sent again may not find what it has deleted.
		_, err := k.DeleteAllocation(t.Context(), "default", name, 0)
		if gone := cluster.NotFound(err) && k.Repeated.Load() > repeated; err != nil && !gone {
			t.Errorf("%s deletes %s: %v", by.Name, name, err)
		}
	}
}

// outage is how long clients of a follower wait when the leader ends.
func outage(t testing.TB, c *cluster.Cluster, name string, end func(*cluster.Process)) time.Duration {
	t.Helper()
	leader, epoch := c.AwaitLeader(0)
	k := c.At(c.Followers(leader)[0])
	c.Run(k, one(name+"-0"))
	began, ended := time.Now(), make(chan struct{})
	go func() {
		defer close(ended)
		end(leader)
	}()
	for i := 1; ; i++ {
		one := one(fmt.Sprintf("%s-%d", name, i))
		ctx, cancel := context.WithTimeout(context.Background(), cluster.Patience)
		made, err := k.CreateAllocation(ctx, "default", one, sdk.CreateOptions{IdempotencyKey: one.Metadata.Name, Wait: 10 * time.Second})
		cancel()
		if err != nil {
			t.Fatalf("%s: %v", one.Metadata.Name, err)
		}
		if _, now := c.Leader(context.Background()); made.Status.Phase == api.Running && now > epoch {
			took := time.Since(began)
			<-ended // before it is started again
			return took
		}
		if _, err := k.DeleteAllocation(context.Background(), "default", one.Metadata.Name, 0); err != nil {
			t.Logf("delete of %s: %v", one.Metadata.Name, err)
		}
	}
}

func TestTheNextLeaderGoesOn(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Etcd: 1, Agents: 2, GPUs: 16})
	load := c.StartLoad(cluster.LoadOptions{Seed: 1, Clients: 2})
	load.AwaitProgress(5, "at first")
	t.Logf("kill -9 of the leader: %v to the next allocation (leases of %v)", outage(t, c, "killed", func(p *cluster.Process) { p.Kill() }), c.Options.LeaseTTL)
	c.Heal()
	load.AwaitProgress(5, "after a kill")
	t.Logf("leader stopped: %v to the next allocation", outage(t, c, "stopped", func(p *cluster.Process) { p.Stop() }))
	c.Heal()
	load.AwaitProgress(5, "after a stop")
	c.Audit(load.Stop())
}

func BenchmarkFailover(b *testing.B) {
	for name, end := range map[string]func(*cluster.Process){
		"killed":  func(p *cluster.Process) { p.Kill() },
		"stopped": func(p *cluster.Process) { p.Stop() },
	} {
		b.Run(name, func(b *testing.B) {
			c := cluster.Start(b, cluster.Options{Etcd: 1, Agents: 4, Quiet: true, LeaseTTL: 5 * time.Second})
			var worst, sum time.Duration
			for i := range b.N {
				took := outage(b, c, fmt.Sprint(name, i), end)
				worst, sum = max(worst, took), sum+took
				b.StopTimer()
				c.Heal()
				c.Clear()
				c.AwaitReady()
				b.StartTimer()
			}
			b.ReportMetric(float64(sum.Milliseconds())/float64(b.N), "ms/failover")
			b.ReportMetric(float64(worst.Milliseconds()), "ms-worst")
		})
	}
}
