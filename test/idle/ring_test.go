package idle_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/usage"
	"github.com/musterd/muster/coordinator/daemon"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/numa/sysfs"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/sdk"
)

const (
	cluster   = "idle"
	free      = "127.0.0.1:0"
	profile   = "dgx-a100"
	readyTime = 2 * time.Minute
)

// ring is a coordinator and agents of 8 GPUs each in this process: the other
// members of the rings, all with the timings of production.
type ring struct {
	daemon *daemon.Daemon
	client *sdk.Client
	token  rpcauth.Token
}

// start brings up a coordinator and so many agents. They end with b.
func start(b *testing.B, agents int) *ring {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	b.Cleanup(func() { cancel(); wg.Wait() })
	r := &ring{token: rpcauth.Generate()}
	admin, log := rpcauth.Generate(), slog.New(slog.DiscardHandler)
	var err error
	r.daemon, err = daemon.New(ctx, daemon.Config{
		ID: "c1", Cluster: cluster, DataDir: filepath.Join(b.TempDir(), "coordinator"), RESTListen: free, GRPCListen: free,
		SerfBind: free, CapacityBind: free, ClusterToken: r.token, AdminToken: admin, Profile: gossip.LAN, Version: "test", Logger: log,
	})
	if err != nil {
		b.Fatal(err)
	}
	run := func(what string, f func(context.Context) error) {
		wg.Go(func() {
			if err := f(ctx); err != nil {
				b.Errorf("%s: %v", what, err)
			}
		})
	}
	run("coordinator", r.daemon.Run)
	if r.client, err = sdk.NewClient(sdk.Config{Endpoint: "http://" + r.daemon.RESTAddr(), Token: admin.Secret()}); err != nil {
		b.Fatal(err)
	}
	machine, err := fake.Lookup(profile)
	if err != nil {
		b.Fatal(err)
	}
	var like *fit.Host
	for i := range agents {
		node := fmt.Sprintf("node-%d", i)
		a, err := agent.New(agent.Config{
			Cluster: cluster, Node: resource.NodeID(node), Version: "test", DataDir: b.TempDir(), Listen: free,
			Gossip: &agent.GossipConfig{SerfBind: free, CapacityBind: free, Join: []string{r.daemon.SerfAddr()}, Profile: gossip.LAN},
		}, agent.Deps{
			Discovered: agent.Discovered{
				Host: sysfs.Host{Hostname: node}, BootID: node, Topology: machine.Topology(), Inventory: machine.Inventory(node),
			},
			HostLike: like, Token: r.token, Log: log,
			Usage: func(context.Context) (usage.Usage, error) { return usage.Usage{}, nil },
		})
		if err != nil {
			b.Fatal(err)
		}
		like = a.Host()
		run(node, a.Run)
	}
	return r
}

// awaitReady waits until the leader has a session with so many agents.
func (r *ring) awaitReady(b *testing.B, agents int) {
	b.Helper()
	ready := 0
	deadline := time.Now().Add(readyTime)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		nodes, err := r.client.Nodes().List(b.Context(), sdk.ListOptions{})
		if err == nil {
			ready = 0
			for _, n := range nodes.Items {
				if n.Status.Phase == "Ready" {
					ready++
				}
			}
		}
		if ready == agents {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("%d of %d agents are ready after %s: %v", ready, agents, readyTime, err)
		}
	}
}
