package rpc

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/musterd/muster/agent/usage"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
)

// Heartbeat is what an agent reports of itself: information for people and
// the sign that keeps the node's lease alive.
type Heartbeat struct {
	Time       time.Time // the node's clock; information only
	Usage      usage.Usage
	Conditions []Condition
	Grants     []Phase
}

// Condition is one statement about the node, in Kubernetes' words.
type Condition struct {
	Type, Reason, Message string
	True                  bool
}

// Phase is the state of one transaction here.
type Phase struct {
	Tx    resource.TxID
	Phase string
}

// Directive is what a coordinator asks in answer to a heartbeat.
type Directive struct{ Type, Tx, Message string }

// DirectiveRegister asks the agent to register anew.
const DirectiveRegister = "register"

// Heartbeats opens a stream to a coordinator and sends what next returns at
// once and then on every tick, until the stream breaks (an error) or ctx ends
// (nil). obey is called for each directive, in order, from another goroutine
// that has ended when Heartbeats returns.
func (c *Coordinators) Heartbeats(ctx context.Context, node resource.NodeID, every time.Duration,
	next func(context.Context) Heartbeat, obey func(Directive),
) error {
	err := c.each(ctx, "heartbeat", func(ctx context.Context, conn *grpc.ClientConn) error {
		return heartbeats(ctx, conn, node, every, next, obey)
	})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was told to end
	}
	return err
}

func heartbeats(ctx context.Context, conn *grpc.ClientConn, node resource.NodeID, every time.Duration,
	next func(context.Context) Heartbeat, obey func(Directive),
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := schedulerv1.NewNodeAgentClient(conn).Heartbeat(ctx)
	if err != nil {
		return err
	}
	broken := make(chan error, 1) // one value, so that the reader never blocks
	ended := make(chan struct{})
	defer func() { cancel(); <-ended }()
	go func() {
		defer close(ended)
		for {
			response, err := stream.Recv()
			if err != nil {
				broken <- err
				return
			}
			for _, d := range response.GetDirectives() {
				obey(Directive{d.GetType(), d.GetAllocationId(), d.GetMessage()})
			}
		}
	}()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := stream.Send(heartbeatMessage(node, next(ctx))); err != nil {
			return fmt.Errorf("send: %w", <-broken) // Recv returns the stream's own error
		}
		select {
		case err := <-broken:
			return err
		case <-ticker.C:
		}
	}
}

func heartbeatMessage(node resource.NodeID, h Heartbeat) *schedulerv1.HeartbeatRequest {
	m := &schedulerv1.HeartbeatRequest{
		NodeId: string(node), Timestamp: h.Time.UnixMilli(),
		CurrentUsage: &schedulerv1.ResourceUsage{
			CpuMillicores: int64(h.Usage.CPU), MemoryBytes: int64(h.Usage.Memory),
			Load_1M: h.Usage.Load1, Load_5M: h.Usage.Load5, DiskBytes: int64(h.Usage.Disk),
			NetworkRxBytes: int64(h.Usage.NetworkRX), NetworkTxBytes: int64(h.Usage.NetworkTX),
		},
	}
	for _, g := range h.Grants {
		m.PodStatuses = append(m.PodStatuses, &schedulerv1.PodStatus{AllocationId: string(g.Tx), Phase: g.Phase})
	}
	for _, c := range h.Conditions {
		value := "False"
		if c.True {
			value = "True"
		}
		m.Conditions = append(m.Conditions, &schedulerv1.NodeCondition{Type: c.Type, Status: value, Reason: c.Reason, Message: c.Message})
	}
	return m
}
