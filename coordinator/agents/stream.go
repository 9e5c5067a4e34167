package agents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
	"github.com/musterd/muster/wire/limits"
)

// connect runs one stream to its end.
func (p *Pool) connect(ctx context.Context, s *session) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///"+s.addr, append([]grpc.DialOption{
		grpc.WithAuthority(string(s.node)), // the node that a certificate has to name (rpcauth.NamedNode)
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: firstRetry, Multiplier: 1.6, MaxDelay: lastRetry}, MinConnectTimeout: time.Second}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepalivePeriod, Timeout: keepaliveTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(limits.MaxSession)),
	}, append(limits.DialOptions(), p.o.Dial...)...)...)
	if err != nil {
		return fmt.Errorf("agent %s at %s: %w", s.node, s.addr, err)
	}
	defer conn.Close()
	incarnation, revision, err := p.o.Identity(ctx, s.node)
	if err != nil {
		return fmt.Errorf("identity of %s: %w", s.node, err)
	}
	stream, err := musterv1.NewAgentClient(conn).Session(ctx)
	if err != nil {
		return fmt.Errorf("agent %s at %s: %w", s.node, s.addr, err)
	}
	hello := &musterv1.LeaderHello{
		Cluster: p.o.Cluster, LeaderId: p.o.LeaderID, Epoch: int64(p.o.Epoch),
		Registered: wire.ToIncarnation(incarnation), RegisteredRevision: int64(revision),
	}
	if err := stream.Send(&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Hello{Hello: hello}}); err != nil {
		return fmt.Errorf("hello to %s: %w", s.node, err)
	}
	first, err := p.receiveHello(stream, cancel, s.node)
	if err != nil {
		if highest := highestSeen(err); highest > p.o.Epoch {
			p.o.Deliver(grant.Refused{Node: s.node, Highest: highest})
		}
		return err
	}
	// The outbox opens before Connected is delivered, so that the leader can
	// answer the event at once.
	outbox := make(chan *musterv1.LeaderMessage, outboxSize)
	select {
	case <-s.hurry: // it was about this stream
	default:
	}
	s.mu.Lock()
	s.outbox, s.giveUp, s.heard = outbox, cancel, first.Incarnation
	s.mu.Unlock()
	p.o.Deliver(first)
	var sender sync.WaitGroup
	sender.Go(func() { sendAll(ctx, cancel, stream, outbox) })
	err = p.receiveAll(stream, s.node)
	cancel()
	var broken *brokenError
	s.mu.Lock()
	s.outbox = nil
	if errors.As(err, &broken) {
		s.penalize()
	}
	s.mu.Unlock()
	sender.Wait()
	p.o.Deliver(grant.Disconnected{Node: s.node, Err: err, Broken: broken != nil})
	return err
}

// receiveHello waits for the agent's Hello, at most helloTimeout.
func (p *Pool) receiveHello(stream musterv1.Agent_SessionClient, cancel context.CancelFunc, node resource.NodeID) (Connected, error) {
	timer := time.AfterFunc(helloTimeout, cancel)
	defer timer.Stop()
	m, err := stream.Recv()
	if err != nil {
		return Connected{}, fmt.Errorf("hello of %s: %w", node, err)
	}
	event, err := decode(node, m)
	if err != nil {
		return Connected{}, &brokenError{fmt.Errorf("hello of %s: %w", node, err)}
	}
	hello, ok := event.(Connected)
	if !ok {
		return Connected{}, &brokenError{fmt.Errorf("hello of %s: first message is %T", node, event)}
	}
	h := hello.Host
	hello.Fit, err = fit.NewHostLike(p.like.Load(), h.Topology, h.Inventory, fit.Reserved{CPUs: h.ReservedCPUs, Memory: h.ReservedMemory})
	if err == nil {
		hello.Fit, err = hello.Fit.WithCounts(grant.AmountsOf(h.Counts))
	}
	if err != nil {
		return Connected{}, &brokenError{fmt.Errorf("hello of %s: host: %w", node, err)}
	}
	p.like.Store(hello.Fit)
	return hello, nil
}

// brokenError ends a stream whose agent cannot be understood, or is another's.
type brokenError struct{ err error }

func (e *brokenError) Error() string {
	const most = 512
	text := e.err.Error()
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

func (e *brokenError) Unwrap() error { return e.err }

// highestSeen is the epoch for which an agent has refused a hello, 0 if it was
// refused for something else.
func highestSeen(err error) resource.Epoch {
	for _, d := range status.Convert(err).Details() {
		if r, is := d.(*musterv1.Reason); is && r.GetCode() == resource.ReasonStaleEpoch {
			return resource.Epoch(r.GetWant())
		}
	}
	return 0
}

func (p *Pool) receiveAll(stream musterv1.Agent_SessionClient, node resource.NodeID) error {
	for {
		m, err := stream.Recv()
		if isBeyondLimits(err) {
			return &brokenError{fmt.Errorf("stream of %s: %w", node, err)}
		}
		if err != nil {
			return fmt.Errorf("stream of %s: %w", node, err)
		}
		event, err := decode(node, m)
		if errors.Is(err, errUnknown) {
			return fmt.Errorf("stream of %s: %w", node, err)
		}
		if err != nil {
			return &brokenError{fmt.Errorf("stream of %s: %w", node, err)}
		}
		if _, again := event.(Connected); again {
			return &brokenError{fmt.Errorf("stream of %s: a second hello", node)}
		}
		p.o.Deliver(event)
	}
}

// isBeyondLimits reports whether a message was refused for its size or for one of
// its fields. gRPC has no type for the first two: the texts are those of its
// client for a message that it could not decode, and for one that is too large.
func isBeyondLimits(err error) bool {
	if violation := (*limits.Violation)(nil); errors.As(err, &violation) {
		return true
	}
	s, ok := status.FromError(err)
	if err == nil || !ok {
		return false
	}
	return s.Code() == codes.Internal && strings.Contains(s.Message(), "failed to unmarshal") ||
		s.Code() == codes.ResourceExhausted && strings.Contains(s.Message(), "received message larger than max")
}

// sendAll writes the outbox to the stream until ctx ends or the stream fails.
func sendAll(ctx context.Context, cancel context.CancelFunc, stream musterv1.Agent_SessionClient, outbox <-chan *musterv1.LeaderMessage) {
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-outbox:
			if err := stream.Send(m); err != nil {
				return
			}
		}
	}
}
