package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/wire"
)

// Hello is how a leader opens its session.
type Hello struct {
	Cluster  string
	LeaderID string
	Epoch    resource.Epoch
	// Registered is the incarnation that the store has for this node, and
	// Revision the store's revision of it; zero before the first registration.
	Registered resource.Incarnation
	Revision   resource.Revision
}

// Welcome is the agent's answer to a Hello.
type Welcome struct {
	Node        resource.NodeID
	Incarnation resource.Incarnation
	// Revision is the store's revision of this incarnation's registration, 0
	// before it.
	Revision   resource.Revision
	Host       grant.Host
	Occupancy  Occupancy
	LedgerHash uint64
	// Quarantine is the reason why the agent promises nothing until it is
	// reconciled, "" while there is none.
	Quarantine string
}

// Owner owns the ledger. Its methods may block until the owner has time, end
// early with their context, and may be called from many goroutines.
type Owner interface {
	// Open admits a leader or refuses it with *StaleEpochError; in quarantine it
	// admits any. From now on
	// everything the leader should know goes into out, in order; the session
	// before, if any, is ended with ErrReplaced.
	Open(ctx context.Context, hello Hello, out *Outbox) (Welcome, error)
	// Submit queues one order of the session; its answer goes into out, after
	// the answers to the orders before it.
	Submit(ctx context.Context, order Order, out *Outbox) error
	// Close marks the end of the session.
	Close(out *Outbox)
}

// agentServer serves muster.v1.Agent.
type agentServer struct {
	musterv1.UnimplementedAgentServer
	cluster  string
	owner    Owner
	work     Members
	readers  chan struct{} // one for each reader of output
	sessions chan struct{} // one for each further command
}

// NewServer returns a server of the agent's two services, whose callers prove
// themselves to member. The caller serves a listener made by ListenAs, and
// stops it.
func NewServer(cluster string, member rpcauth.Member, owner Owner, snapshots Snapshots, work Members, evictions Evictions) *grpc.Server {
	server := grpc.NewServer(serverOptions(member)...)
	services := rpcauth.Register(server)
	musterv1.RegisterAgentServer(services, &agentServer{cluster: cluster, owner: owner, work: work, readers: make(chan struct{}, mostLogReaders), sessions: make(chan struct{}, mostSessions)})
	schedulerv1.RegisterNodeAgentServer(services, &nodeAgent{snapshots: snapshots, evictions: evictions})
	return server
}

// Session serves one leader until either side ends it.
func (s *agentServer) Session(stream musterv1.Agent_SessionServer) error {
	ctx := stream.Context()
	hello, err := s.hello(stream)
	if err != nil {
		return statusOf(err)
	}
	out := NewOutbox()
	welcome, err := s.owner.Open(ctx, hello, out)
	if err != nil {
		return statusOf(err)
	}
	defer s.owner.Close(out)
	if err := stream.Send(welcomeMessage(welcome)); err != nil {
		return err
	}
	// The reader ends when this handler returns, which ends the stream.
	go s.read(stream, out)
	for {
		e, ok := out.Next()
		if !ok {
			if reason := out.Reason(); !errors.Is(reason, errDone) {
				return statusOf(reason)
			}
			return nil
		}
		if err := stream.Send(e.message()); err != nil {
			return err
		}
	}
}

// errDone ends a session that the leader closed.
var errDone = errors.New("the leader closed the session")

func (s *agentServer) read(stream musterv1.Agent_SessionServer, out *Outbox) {
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			out.End(errDone)
			return
		}
		if err != nil {
			out.End(err)
			return
		}
		order, err := orderOf(m)
		if err == nil {
			err = s.owner.Submit(stream.Context(), order, out)
		}
		if err != nil {
			out.End(err)
			return
		}
	}
}

func (s *agentServer) hello(stream musterv1.Agent_SessionServer) (Hello, error) {
	first, err := stream.Recv()
	if err != nil {
		return Hello{}, err
	}
	m := first.GetHello()
	if m == nil {
		return Hello{}, fmt.Errorf("session: the first message is %T, want hello: %w", first.GetMessage(), ErrBadMessage)
	}
	if m.GetCluster() != s.cluster {
		return Hello{}, fmt.Errorf("session: leader %q leads cluster %q, this agent is of %q: %w", m.GetLeaderId(), m.GetCluster(), s.cluster, ErrWrongCluster)
	}
	if m.GetEpoch() < 1 {
		return Hello{}, fmt.Errorf("session: hello.epoch: %d is not positive: %w", m.GetEpoch(), ErrBadMessage)
	}
	registered, err := wire.FromIncarnation(m.GetRegistered())
	if err != nil {
		return Hello{}, fmt.Errorf("session: hello.registered: %w: %w", err, ErrBadMessage)
	}
	return Hello{
		Cluster: m.GetCluster(), LeaderID: m.GetLeaderId(), Epoch: resource.Epoch(m.GetEpoch()),
		Registered: registered, Revision: resource.Revision(m.GetRegisteredRevision()),
	}, nil
}
