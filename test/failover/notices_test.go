package failover

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/cluster"
)

// A program that watches a node for evictions by the SDK gets each notice once and in
// order, while the coordinator that answers the program, and then the leader, are killed
// right before an eviction.
func TestNoticesOfEvictionsGoOnOverKills(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Agents: 1, Quiet: true})
	leader, epoch := c.AwaitLeader(0)
	followers := c.Followers(leader)
	ctx, cancel := context.WithTimeout(t.Context(), 2*cluster.Patience)
	defer cancel()
	notices, ended := make(chan api.EvictionNotice, 64), make(chan struct{})
	watcher := client(t, c, followers...)
	go func() {
		defer close(ended)
		for notice, err := range watcher.Nodes().WatchEvictions(ctx, string(c.Agents[0].Node), "") {
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			notices <- notice
		}
	}()
	kills := map[int]func(){
		3: followers[0].Kill, // the watch begins here
		6: func() { leader.Kill(); c.AwaitLeader(epoch) },
	}
	var at objects.ID
	for i := range 9 {
		name := fmt.Sprintf("evicted-%d", i)
		c.Run(c.Client, &api.Allocation{Metadata: api.ObjectMeta{Name: name}, Spec: api.AllocationSpec{
			Resources: api.Requirements{Requests: map[resource.Name]string{resource.CPU: "1"}},
		}})
		if kill := kills[i]; kill != nil {
			kill()
		}
		if _, err := c.Client.Evict(ctx, "default", name, 1); err != nil {
			t.Fatal(err)
		}
		select {
		case n := <-notices:
			if n.Allocation != name || n.Namespace != "default" || n.GracePeriodSeconds != 1 {
				t.Fatalf("the notice is %+v, want that of %s", n, name)
			}
			if n.ResourceVersion == "" { // it stood when the watch began
				continue
			}
			id, err := objects.ParseID(n.ResourceVersion)
			if err != nil || id.Compare(at) <= 0 {
				t.Errorf("notice %+v comes after %s: %v", n, at, err)
			}
			at = id
		case <-time.After(cluster.Patience):
			t.Fatalf("no notice of %s", name)
		}
	}
	cancel()
	<-ended
	for len(notices) > 0 {
		t.Errorf("a notice too many: %+v", <-notices)
	}
}
