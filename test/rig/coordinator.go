package rig

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"

	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/store"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/rpcauth"
)

// Coordinator is one coordinator process: the coordinator itself and what it
// serves to agents.
type Coordinator struct {
	*coordinator.Coordinator
	ID   string
	Gate *Gate

	cluster  *Cluster
	cancel   context.CancelFunc
	server   *grpc.Server
	listener *bufconn.Listener
	wg       sync.WaitGroup
	ended    chan struct{} // closed when nothing of it runs any more

	mu      sync.Mutex
	stopped bool
	err     error // of Run
}

// StartCoordinator starts a coordinator; it campaigns from now on. An ID may be
// used again once the process before has stopped.
func (c *Cluster) StartCoordinator(id string) *Coordinator {
	c.t.Helper()
	k := &Coordinator{ID: id, cluster: c, ended: make(chan struct{})}
	k.Gate = &Gate{Store: c.Store, Delay: func() time.Duration { return 3 * time.Second }, crash: k.Crash, delayed: &c.delayed}
	config := coordinator.Config{
		ID: id, Cluster: ClusterName, Namespaces: c.options.Namespaces, Logger: c.log,
		Address: store.LeaderAddress{ID: id, GRPC: id, REST: "http://" + id},
		DialAgents: []grpc.DialOption{
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(rpcauth.Credentials(c.token)),
			grpc.WithContextDialer(c.net.dial), grpc.WithStreamInterceptor(c.intercept(id)),
		},
	}
	if c.options.Configure != nil {
		c.options.Configure(&config)
	}
	var err error
	if k.Coordinator, err = coordinator.New(config, k.Gate, nil); err != nil {
		c.t.Fatal(err)
	}
	k.serve()
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	k.wg.Go(func() {
		err := k.Run(ctx)
		k.mu.Lock()
		k.err = err
		k.mu.Unlock()
	})
	go func() { k.wg.Wait(); close(k.ended) }()
	c.mu.Lock()
	c.coordinators = append(c.coordinators, k)
	agents := make([]*Agent, 0, len(c.agents))
	for _, a := range c.agents {
		agents = append(agents, a)
	}
	c.mu.Unlock()
	for _, a := range agents {
		k.AgentSeen(a.Node, string(a.Node))
	}
	return k
}

// serve opens what agents call.
func (k *Coordinator) serve() {
	c := k.cluster
	k.server = grpc.NewServer(append(rpcauth.ServerOptions(c.token),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}))...)
	musterv1.RegisterCoordinatorServer(k.server, &rpc.Server{Cluster: ClusterName, Store: k.Gate, Logger: c.log, Registered: k.NodeRegistered})
	schedulerv1.RegisterNodeAgentServer(k.server, &rpc.Heartbeats{CoordinatorID: k.ID, Store: k.Gate, Logger: c.log, Heard: k.NodeHeard})
	k.listener = c.net.listen(k.ID)
	k.wg.Go(func() { k.server.Serve(k.listener) }) //nolint:errcheck // it ends with Stop
}

// Stop ends the process cleanly: it resigns.
func (k *Coordinator) Stop() { k.end() }

// Crash ends the process as kill -9 does: from now on nothing of it reaches
// the store, and its lease runs until it ends by itself.
func (k *Coordinator) Crash() {
	k.Gate.kill()
	k.end()
}

func (k *Coordinator) end() {
	k.mu.Lock()
	before := k.stopped
	k.stopped = true
	k.mu.Unlock()
	if !before {
		k.cluster.net.unplug(k.ID, k.listener)
		k.cancel()
		k.server.Stop()
	}
	<-k.ended
}

// Err is what Run returned, once it has.
func (k *Coordinator) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// Ended is closed when nothing of the process runs any more.
func (k *Coordinator) Ended() <-chan struct{} { return k.ended }

func (k *Coordinator) alive() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.stopped
}
