package rig

import (
	"context"
	"net"
	"path"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
)

// Message is one message of a session between a leader and an agent. Exactly
// one of ToAgent and FromAgent is set.
type Message struct {
	Coordinator string
	Node        resource.NodeID
	ToAgent     *musterv1.LeaderMessage
	FromAgent   *musterv1.AgentMessage
	// Inject sends another message to the agent, before this one.
	Inject func(*musterv1.LeaderMessage) error
}

// Tap lets f see every message from now on, in the order of each stream; nil
// ends it. f runs in the stream's goroutine; where it returns false the message
// is lost. It may change the message.
func (c *Cluster) Tap(f func(Message) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tap = f
}

func (c *Cluster) passes(m Message) bool {
	c.mu.Lock()
	f := c.tap
	c.mu.Unlock()
	return f == nil || f(m)
}

// intercept is the client interceptor of a coordinator's streams.
func (c *Cluster) intercept(p *process) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := streamer(ctx, desc, cc, method, opts...)
		if err != nil || method != musterv1.Agent_Session_FullMethodName { // output of work decides nothing
			return stream, err
		}
		return &tapped{
			ClientStream: stream, cluster: c, proc: p, coordinator: p.name, node: resource.NodeID(c.net.name(cc.Target()[len("passthrough:///"):])),
		}, nil
	}
}

type tapped struct {
	grpc.ClientStream
	cluster     *Cluster
	proc        *process
	coordinator string
	node        resource.NodeID
	epoch       resource.Epoch // as the leader's hello says
}

// at is one side of a message's step.
func (s *tapped) at(m Message, after bool) error {
	return s.cluster.at(Step{Name: messageStep(m), After: after, Coordinator: m.Coordinator, Node: m.Node})
}

func (s *tapped) SendMsg(m any) error {
	inject := func(more *musterv1.LeaderMessage) error { return s.ClientStream.SendMsg(more) }
	message := Message{Coordinator: s.coordinator, Node: s.node, ToAgent: m.(*musterv1.LeaderMessage), Inject: inject}
	s.cluster.audit.told(s.node, message.ToAgent)
	if err := s.at(message, false); err != nil {
		return err
	}
	if s.cluster.passes(message) {
		if h := message.ToAgent.GetHello(); h != nil {
			s.epoch = resource.Epoch(h.GetEpoch())
		}
		if err := s.ClientStream.SendMsg(m); err != nil {
			return err
		}
	}
	return s.at(message, true)
}

func (s *tapped) RecvMsg(m any) error {
	for {
		if err := s.ClientStream.RecvMsg(m); err != nil {
			return err
		}
		message := Message{Coordinator: s.coordinator, Node: s.node, FromAgent: m.(*musterv1.AgentMessage)}
		if err := s.at(message, false); err != nil {
			return err
		}
		if !s.proc.pass() {
			return net.ErrClosed
		}
		s.cluster.audit.heard(s.node, s.epoch, message.FromAgent)
		if s.cluster.passes(message) {
			return s.at(message, true)
		}
	}
}

// interceptCalls makes each call of an agent to a coordinator a step, before it
// is served and before it is answered.
func (c *Cluster) interceptCalls(p *process) []grpc.ServerOption {
	at := func(method string, after bool, m any) error {
		node := ""
		if request, ok := m.(interface{ GetNodeId() string }); ok {
			node = request.GetNodeId()
		}
		err := c.at(Step{Name: "call " + path.Base(method), After: after, Coordinator: p.name, Node: resource.NodeID(node)})
		if err == nil && !p.pass() {
			err = net.ErrClosed
		}
		if err != nil {
			return status.Error(codes.Unavailable, err.Error())
		}
		return nil
	}
	unary := func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if err := at(info.FullMethod, false, request); err != nil {
			return nil, err
		}
		response, err := handler(ctx, request)
		if err != nil {
			return nil, err
		}
		return response, at(info.FullMethod, true, request)
	}
	stream := func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return handler(server, &calls{stream, func(m any) error { return at(info.FullMethod, false, m) }})
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream)}
}

// calls is a stream each of whose requests is a step.
type calls struct {
	grpc.ServerStream
	at func(m any) error
}

func (s *calls) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.at(m)
}
