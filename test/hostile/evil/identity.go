package evil

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
)

// identityModes are a host whose certificate was replaced or banned after it had
// enrolled: the harness does so between "ready" and the attack's calls.
var identityModes = map[string]func(context.Context, *run) error{
	// The old certificate goes on: its session, its heartbeats, its calls.
	"outlive-certificate": func(ctx context.Context, r *run) error {
		h, err := r.start(ctx, lies{})
		if err != nil {
			return err
		}
		defer h.stop()
		r.ready()
		until := time.Now().Add(r.For)
		for time.Now().Before(until) && pause(ctx, 500*time.Millisecond) {
			h.probe(ctx)
		}
		return nil
	},
	// A node speaks for another one, everywhere a message names a node.
	"speak-for-another": func(ctx context.Context, r *run) error {
		h, err := r.start(ctx, lies{})
		if err != nil {
			return err
		}
		defer h.stop()
		r.ready()
		other := r.Agents[0].Node
		c := musterv1.NewCoordinatorClient(h.calls)
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		_, err = c.ReadNode(ctx, &musterv1.ReadNodeRequest{NodeId: other})
		r.answered("ReadNode for another", err)
		_, err = c.Resolve(ctx, &musterv1.ResolveRequest{NodeId: other, Tx: invented(0), Fence: true})
		r.answered("Resolve for another", err)
		_, err = c.Evict(ctx, &musterv1.EvictAllocationRequest{NodeId: other, Allocation: "default/bait"})
		r.answered("Evict for another", err)
		_, err = c.Register(ctx, &musterv1.RegisterRequest{NodeId: other, Cluster: r.Cluster})
		r.answered("Register for another", err)
		return nil
	},
}

// probe tries, on connections that are open and on fresh ones, what a node may.
func (h *host) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, err := musterv1.NewCoordinatorClient(h.calls).ReadNode(ctx, &musterv1.ReadNodeRequest{NodeId: h.Node})
	for status.Code(err) == codes.Unavailable && pause(ctx, 20*time.Millisecond) { // its connection was ended under the call
		_, err = musterv1.NewCoordinatorClient(h.calls).ReadNode(ctx, &musterv1.ReadNodeRequest{NodeId: h.Node})
	}
	h.last("open connection", err)
	conn, err := dial(h.Coordinators[len(h.Coordinators)-1].GRPC, h.identity.TLS())
	if err != nil {
		return
	}
	defer conn.Close()
	_, err = musterv1.NewCoordinatorClient(conn).ReadNode(ctx, &musterv1.ReadNodeRequest{NodeId: h.Node})
	h.last("fresh connection", err)
	h.last("heartbeat", h.oneBeat(ctx, conn))
	_, err = musterv1.NewEnrollmentClient(conn).Renew(ctx, &musterv1.RenewRequest{Csr: []byte("none")})
	h.last("renewal", err)
}

func (h *host) oneBeat(ctx context.Context, conn *grpc.ClientConn) error {
	stream, err := schedulerv1.NewNodeAgentClient(conn).Heartbeat(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&schedulerv1.HeartbeatRequest{NodeId: h.Node}); err != nil {
		_, err = stream.Recv()
		return err
	}
	_, err = stream.Recv()
	return err
}

// last keeps the newest answer to a call as "last CALL: CODE" alone.
func (r *run) last(call string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	prefix := "last " + call + ": "
	for key := range r.report.Answers {
		if len(key) > len(prefix) && key[:len(prefix)] == prefix {
			delete(r.report.Answers, key)
		}
	}
	r.report.Answers[prefix+status.Code(err).String()] = 1
}

// codeOf is the name of an answer's code; its text is noted.
func (r *run) codeOf(call string, err error) string {
	if err != nil {
		r.note("%s: %v", call, err)
	}
	return status.Code(err).String()
}
