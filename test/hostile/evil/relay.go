package evil

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/rpcauth"
)

// relay serves the leader's session and passes it on to the real agent, with
// the host's lies.
type relay struct {
	musterv1.UnimplementedAgentServer
	host   *host
	opened chan struct{} // capacity 1: a session has begun

	mu      sync.Mutex
	session musterv1.Agent_SessionServer // the newest, nil without one
	end     context.CancelFunc           // of the newest
}

// drop ends the session; the leader opens another one.
func (r *relay) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end != nil {
		r.end()
	}
}

// await waits until a leader has opened a session.
func (r *relay) await(ctx context.Context, within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-r.opened:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// say sends a message to the leader and reports whether a session took it.
func (r *relay) say(m *musterv1.AgentMessage) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session != nil && r.session.Send(m) == nil
}

// Session connects the leader with the real agent.
func (r *relay) Session(leader musterv1.Agent_SessionServer) error {
	r.host.count("Session: opened by a leader")
	conn, err := grpc.NewClient("passthrough:///agent", append(r.host.token.DialOptions(rpcauth.NamedNode()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return r.host.inside.DialContext(ctx) }))...)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(leader.Context())
	defer cancel()
	agent, err := musterv1.NewAgentClient(conn).Session(ctx)
	if err != nil {
		return err
	}
	go func() {
		defer cancel()
		for {
			m, err := leader.Recv()
			if err != nil {
				return
			}
			var answers []*musterv1.AgentMessage
			if lie := r.host.lies.command; lie != nil {
				m, answers = lie(m)
			}
			for _, a := range answers {
				r.say(a)
			}
			if m != nil && agent.Send(m) != nil {
				return
			}
		}
	}()
	for first := true; ; first = false {
		m, err := agent.Recv()
		if err != nil {
			r.mu.Lock()
			if r.session == leader {
				r.session = nil
			}
			r.mu.Unlock()
			return err
		}
		if first {
			r.mu.Lock()
			r.session, r.end = leader, cancel
			r.mu.Unlock()
		}
		list := []*musterv1.AgentMessage{m}
		if lie := r.host.lies.answer; lie != nil {
			list = lie(m)
		}
		for _, m := range list {
			r.say(m)
		}
		if first {
			select {
			case r.opened <- struct{}{}:
			default:
			}
		}
	}
}

// passOn serves the real agent's calls as a coordinator would, by asking one.
type passOn struct {
	musterv1.UnimplementedCoordinatorServer
	host *host
}

// Register passes a registration on, with the host's lies.
func (p *passOn) Register(ctx context.Context, m *musterv1.RegisterRequest) (*musterv1.RegisterResponse, error) {
	if lie := p.host.lies.register; lie != nil {
		lie(m)
	}
	answer, err := musterv1.NewCoordinatorClient(p.host.calls).Register(ctx, m)
	p.host.answered("Register", err)
	return answer, err
}

// ReadNode passes the call on.
func (p *passOn) ReadNode(ctx context.Context, m *musterv1.ReadNodeRequest) (*musterv1.ReadNodeResponse, error) {
	return musterv1.NewCoordinatorClient(p.host.calls).ReadNode(ctx, m)
}

// Resolve passes the call on.
func (p *passOn) Resolve(ctx context.Context, m *musterv1.ResolveRequest) (*musterv1.ResolveResponse, error) {
	return musterv1.NewCoordinatorClient(p.host.calls).Resolve(ctx, m)
}

// passBeats passes the real agent's heartbeats on.
type passBeats struct {
	schedulerv1.UnimplementedNodeAgentServer
	host *host
}

// Heartbeat connects the agent's stream with a coordinator's.
func (p *passBeats) Heartbeat(agent schedulerv1.NodeAgent_HeartbeatServer) error {
	ctx, cancel := context.WithCancel(agent.Context())
	defer cancel()
	coordinator, err := schedulerv1.NewNodeAgentClient(p.host.calls).Heartbeat(ctx)
	if err != nil {
		return err
	}
	go func() {
		defer cancel()
		for {
			m, err := agent.Recv()
			if err != nil {
				return
			}
			if lie := p.host.lies.heartbeat; lie != nil {
				lie(m)
			}
			if coordinator.Send(m) != nil {
				return
			}
		}
	}()
	for {
		m, err := coordinator.Recv()
		if err != nil {
			p.host.answered("Heartbeat", err)
			return err
		}
		if err := agent.Send(m); err != nil {
			return err
		}
	}
}
