package rig

import (
	"context"

	"google.golang.org/grpc"

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
func (c *Cluster) intercept(coordinator string) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := streamer(ctx, desc, cc, method, opts...)
		if err != nil {
			return nil, err
		}
		return &tapped{stream, c, coordinator, resource.NodeID(cc.Target()[len("passthrough:///"):])}, nil
	}
}

type tapped struct {
	grpc.ClientStream
	cluster     *Cluster
	coordinator string
	node        resource.NodeID
}

func (s *tapped) SendMsg(m any) error {
	inject := func(more *musterv1.LeaderMessage) error { return s.ClientStream.SendMsg(more) }
	if !s.cluster.passes(Message{Coordinator: s.coordinator, Node: s.node, ToAgent: m.(*musterv1.LeaderMessage), Inject: inject}) {
		return nil
	}
	return s.ClientStream.SendMsg(m)
}

func (s *tapped) RecvMsg(m any) error {
	for {
		if err := s.ClientStream.RecvMsg(m); err != nil {
			return err
		}
		if s.cluster.passes(Message{Coordinator: s.coordinator, Node: s.node, FromAgent: m.(*musterv1.AgentMessage)}) {
			return nil
		}
	}
}
