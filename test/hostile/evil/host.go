package evil

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/usage"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/numa/sysfs"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
)

// lies are where a hostile host departs from the truth. A nil field leaves the
// messages alone.
type lies struct {
	// command sees each command of the leader; what it returns goes to the real
	// agent, and answers go to the leader at once.
	command func(*musterv1.LeaderMessage) (forward *musterv1.LeaderMessage, answers []*musterv1.AgentMessage)
	// answer sees each message of the real agent; what it returns goes to the
	// leader.
	answer func(*musterv1.AgentMessage) []*musterv1.AgentMessage
	// register sees each registration, heartbeat each heartbeat.
	register  func(*musterv1.RegisterRequest)
	heartbeat func(*schedulerv1.HeartbeatRequest)
}

// host is a hostile host: a real agent in this process behind a relay that has
// the node's certificate. The agent and the relay prove themselves to each other
// by a token, in memory.
type host struct {
	*run
	lies     lies
	identity *agent.Identity
	calls    *grpc.ClientConn // to a coordinator, as the node
	inside   *bufconn.Listener
	outside  *bufconn.Listener // the relay's coordinator, which the agent calls
	token    rpcauth.Token
	relay    *relay
	rings    *gossip.Rings
	close    []func()
}

// maxMessage is more than any coordinator takes.
const maxMessage = 256 << 20

// quiet is the log of the real agent: the attack's program has none.
var quiet = slog.New(slog.DiscardHandler)

// enroll gets the certificate of the attacker's node.
func (r *run) enroll(ctx context.Context) (*agent.Identity, error) {
	dir := r.Certificate
	file := ""
	if dir == "" {
		dir = filepath.Join(r.Dir, "identity")
		file = filepath.Join(r.Dir, "bootstrap-token")
		if err := os.WriteFile(file, []byte(r.BootstrapToken+"\n"), 0o600); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return agent.OpenIdentity(ctx, agent.IdentityConfig{
		Cluster: r.Cluster, Node: resource.NodeID(r.Node), Dir: dir, TokenFile: file, Coordinators: r.coordinators(), Log: quiet,
	})
}

func (r *run) coordinators() []string {
	var list []string
	for _, c := range r.Coordinators {
		list = append(list, c.GRPC)
	}
	return list
}

// dial connects to a coordinator as the node.
func dial(address string, member rpcauth.Member) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address, append(member.DialOptions(rpcauth.AnyCoordinator()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 15 * time.Second, Timeout: 10 * time.Second}))...)
}

// start brings the hostile host up and waits until it is registered and its
// agent makes promises.
func (r *run) start(ctx context.Context, l lies) (*host, error) {
	h := &host{run: r, lies: l, token: rpcauth.Generate(), inside: bufconn.Listen(1 << 20), outside: bufconn.Listen(1 << 20)}
	var err error
	if h.identity, err = r.enroll(ctx); err != nil {
		return nil, fmt.Errorf("enroll %s: %w", r.Node, err)
	}
	if h.calls, err = dial(r.Coordinators[0].GRPC, h.identity.TLS()); err != nil {
		return nil, err
	}
	h.close = append(h.close, func() { _ = h.calls.Close() })
	address, err := h.serve()
	if err != nil {
		h.stop()
		return nil, err
	}
	if err := h.startAgent(ctx, address); err != nil {
		h.stop()
		return nil, err
	}
	if err := h.join(address); err != nil {
		h.stop()
		return nil, err
	}
	if !h.relay.await(ctx, 30*time.Second) {
		h.note("no leader opened a session within 30 s")
	}
	return h, nil
}

func (h *host) stop() {
	for i := len(h.close) - 1; i >= 0; i-- {
		h.close[i]()
	}
}

// serve starts the relay: towards the leader with the node's certificate,
// towards the agent with the token.
func (h *host) serve() (address string, err error) {
	h.relay = &relay{host: h, opened: make(chan struct{}, 1)}
	public, err := net.Listen("tcp", h.IP+":8472")
	if err != nil {
		return "", err
	}
	front := grpc.NewServer(append(rpcauth.Server(h.identity.TLS(), rpcauth.AgentRules()),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))...)
	musterv1.RegisterAgentServer(front, h.relay)
	go func() { _ = front.Serve(public) }()
	back := grpc.NewServer(append(rpcauth.Server(h.token, rpcauth.CoordinatorRules()),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))...)
	musterv1.RegisterCoordinatorServer(back, &passOn{host: h})
	schedulerv1.RegisterNodeAgentServer(back, &passBeats{host: h})
	go func() { _ = back.Serve(h.outside) }()
	h.close = append(h.close, front.Stop, back.Stop)
	return public.Addr().String(), nil
}

// hardware is what the attacker's host has: two GPUs and two NUMA nodes.
const hardware = `{
  "name": "evil", "driver": "550.54.15", "threadsPerCore": 2, "coresPerL3": 8,
  "nodes": [{"socket": 0, "cores": 8, "memory": "256Gi"}, {"socket": 1, "cores": 8, "memory": "256Gi"}],
  "distances": [[10, 21], [21, 10]],
  "gpus": [
    {"model": "NVIDIA A100-SXM4-80GB", "memory": "81920Mi", "pciBusID": "0000:01:00.0", "numaNode": 0, "path": "rc0/sw0"},
    {"model": "NVIDIA A100-SXM4-80GB", "memory": "81920Mi", "pciBusID": "0000:02:00.0", "numaNode": 1, "path": "rc1/sw0"}
  ]
}`

// startAgent starts the real agent.
func (h *host) startAgent(ctx context.Context, address string) error {
	machine, err := fake.ParseProfile([]byte(hardware))
	if err != nil {
		return err
	}
	a, err := agent.New(agent.Config{
		Cluster: h.Cluster, Node: resource.NodeID(h.Node), DataDir: filepath.Join(h.Dir, "agent"), Coordinators: []string{"relay"}, Heartbeat: time.Second,
	}, agent.Deps{
		Discovered: agent.Discovered{Host: sysfs.Host{Hostname: h.Node}, BootID: "evil", Topology: machine.Topology(), Inventory: machine.Inventory(h.Node)},
		Token:      h.token, Listener: h.inside, Address: address, Log: quiet,
		Dialer: func(ctx context.Context, _ string) (net.Conn, error) { return h.outside.DialContext(ctx) },
		Usage:  func(context.Context) (usage.Usage, error) { return usage.Usage{}, nil },
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = a.Run(ctx)
	}()
	h.close = append(h.close, func() { cancel(); <-ended })
	return nil
}

// join joins both rings, so that the leader learns the node's address.
func (h *host) join(address string) (err error) {
	h.rings, err = gossip.Start(gossip.Config{
		Cluster: h.Cluster, Tags: gossip.Tags{Role: gossip.RoleAgent, ID: h.Node, Addr: address, API: "v1"},
		SerfBind: h.IP + ":7946", CapacityBind: h.IP + ":7947", Join: h.serfs(), Keyring: h.identity.Keyring(), Logger: quiet,
	})
	if err == nil {
		h.close = append(h.close, func() { _ = h.rings.Abandon() })
	}
	return err
}

func (r *run) serfs() []string {
	var list []string
	for _, c := range r.Coordinators {
		list = append(list, c.Serf)
	}
	return list
}
