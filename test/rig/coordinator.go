package rig

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/gossip"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/rpcauth"
)

// Coordinator is one coordinator process: the coordinator itself and what it
// serves to agents.
type Coordinator struct {
	*coordinator.Coordinator
	ID    string
	Gate  *Gate
	Rings *gossip.Rings // nil without Options.Rings
	// Metrics has the coordinator's own.
	Metrics *prometheus.Registry

	cluster  *Cluster
	account  *account
	proc     *process
	cancel   context.CancelFunc
	server   *grpc.Server
	listener *listener
	wg       sync.WaitGroup
	ended    chan struct{} // closed when nothing of it runs any more

	mu      sync.Mutex
	stopped bool
	err     error // of Run
}

// StartCoordinator starts a coordinator; it campaigns from now on. An ID may be
// used again once the process before has stopped. In a cluster that is being
// closed it is stopped at once.
func (c *Cluster) StartCoordinator(id string) *Coordinator {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	k := &Coordinator{ID: id, cluster: c, account: newAccount(id), proc: &process{name: id}, cancel: cancel, ended: make(chan struct{}), Metrics: prometheus.NewRegistry()}
	k.Gate = &Gate{
		Store: c.Store.Connect(mem.Options{MaxTxnOps: c.options.MaxTxnOps}), Delay: func() time.Duration { return 3 * time.Second }, crash: k.Crash, delayed: &c.delayed, cluster: c, proc: k.proc,
	}
	config := coordinator.Config{
		Decisions: k.account,
		ID:        id, Cluster: ClusterName, Namespaces: c.options.Namespaces, Logger: logTo(astray{c.t, k.proc}),
		Address: record.LeaderAddress{ID: id, GRPC: id, REST: "http://" + id},
		DialAgents: []grpc.DialOption{
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(rpcauth.Credentials(c.token)),
			grpc.WithContextDialer(c.net.dialer(id, k.proc)), grpc.WithStreamInterceptor(c.intercept(k.proc)),
		},
	}
	if c.options.Configure != nil {
		c.options.Configure(&config)
	}
	var err error
	if k.Coordinator, err = coordinator.New(config, k.Gate, k.Metrics); err != nil {
		c.t.Fatal(err)
	}
	k.serve()
	if err := k.joinRings(); err != nil {
		c.t.Fatal(err)
	}
	k.wg.Go(func() {
		err := k.Run(ctx)
		k.mu.Lock()
		k.err = err
		k.mu.Unlock()
	})
	go func() { k.wg.Wait(); close(k.ended) }()
	c.mu.Lock()
	if c.closed { // nobody else would end it
		c.mu.Unlock()
		k.Stop()
		return k
	}
	c.coordinators = append(c.coordinators, k)
	agents := make([]*Agent, 0, len(c.agents))
	for _, a := range c.agents {
		agents = append(agents, a)
	}
	c.mu.Unlock()
	for _, a := range agents {
		if c.options.Rings {
			break // gossip tells
		}
		k.AgentSeen(a.Node, string(a.Node))
	}
	return k
}

// serve opens what agents call.
func (k *Coordinator) serve() {
	c := k.cluster
	k.server = grpc.NewServer(append(append(rpcauth.ServerOptions(c.token), c.interceptCalls(k.proc)...),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}))...)
	musterv1.RegisterCoordinatorServer(k.server, &rpc.Server{Cluster: ClusterName, Store: k.Gate, Logger: c.log, Registered: k.NodeRegistered, Evictor: k.EvictFor, ApproveGrowth: c.options.ApproveGrowth})
	schedulerv1.RegisterNodeAgentServer(k.server, &rpc.Heartbeats{CoordinatorID: k.ID, Store: k.Gate, Logger: c.log})
	k.listener = c.net.listen(k.ID, k.proc)
	k.wg.Go(func() { k.server.Serve(k.listener) }) //nolint:errcheck // it ends with Stop
}

// Stop ends the process cleanly: it resigns.
func (k *Coordinator) Stop() { k.end() }

// Crash ends the process as kill -9 does: from now on nothing of it reaches
// the store or an agent, and its lease runs until it ends by itself.
func (k *Coordinator) Crash() {
	k.Kill()
	k.end()
}

// Kill is Crash without waiting until the remains have ended; it may be called
// from a step of the process itself.
func (k *Coordinator) Kill() {
	k.proc.kill()
	k.cluster.net.sever(k.proc)
	go k.end()
}

// Pause stops the process for a while, as SIGSTOP does: what it does to the
// world, and hears from it, waits.
func (k *Coordinator) Pause(d time.Duration) {
	k.proc.pause()
	time.AfterFunc(d, k.proc.resume)
}

// Disconnect breaks every connection of the process.
func (k *Coordinator) Disconnect() { k.cluster.net.sever(k.proc) }

func (k *Coordinator) end() {
	k.mu.Lock()
	before := k.stopped
	k.stopped = true
	k.mu.Unlock()
	if !before {
		k.proc.resume()
		k.cluster.net.unplug(k.ID, k.listener)
		k.cancel()
		k.leaveRings()
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

// Up reports whether the process runs: it has not been stopped or killed,
// and is not paused.
func (k *Coordinator) Up() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.stopped && !k.proc.paused()
}
