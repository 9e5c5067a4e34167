package evil

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
)

// floodModes are a hostile host that sends too much: through its session (S7)
// and into the store (S3).
var floodModes = map[string]func(context.Context, *run) error{
	"flood-occupancies": flood(20, func(r *run) *musterv1.AgentMessage {
		o := &musterv1.Occupancy{}
		for i := range 10_000 {
			o.Grants = append(o.Grants, &musterv1.Grant{
				Tx: invented(i), Unit: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), Epoch: 1,
				State: musterv1.Reply_HELD, Name: strings.Repeat("n", 200), Tenant: "default",
				Members: []*musterv1.MemberAssignment{{Assignment: &musterv1.Assignment{Cpus: []*musterv1.CPUGrant{{Id: 0, Milli: 1}}}}},
			})
		}
		return &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Occupancy{Occupancy: o}}
	}),
	"flood-reasons": flood(4, func(r *run) *musterv1.AgentMessage {
		return replyOf(&musterv1.Reply{
			Tx: invented(0), State: musterv1.Reply_NO,
			Reasons: []*musterv1.Reason{{Code: "no", Detail: strings.Repeat("no ", 20<<20)}},
		})
	}),
	"flood-quarantine-text": flood(10, func(r *run) *musterv1.AgentMessage {
		return &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Health{Health: &musterv1.HealthChange{Quarantine: strings.Repeat("q", 3<<20)}}}
	}),
	"flood-health": flood(20_000, func(r *run) *musterv1.AgentMessage {
		return &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Health{Health: &musterv1.HealthChange{}}}
	}),
	"flood-unknown-votes": flood(20_000, func(r *run) *musterv1.AgentMessage {
		return replyOf(&musterv1.Reply{Tx: invented(0), State: musterv1.Reply_FREED})
	}),

	"conditions-9MB": beats(3, func(m *schedulerv1.HeartbeatRequest, i int) {
		m.Conditions = []*schedulerv1.NodeCondition{{Type: "Big", Status: "True", Reason: fmt.Sprint("r", i), Message: strings.Repeat("x", 9<<20)}}
	}),
	"conditions-many": beats(3, func(m *schedulerv1.HeartbeatRequest, i int) {
		for n := range 5_000 {
			m.Conditions = append(m.Conditions, &schedulerv1.NodeCondition{Type: fmt.Sprint("Type", n), Status: "True", Reason: fmt.Sprint("r", i)})
		}
	}),
	"conditions-changing": beats(300, func(m *schedulerv1.HeartbeatRequest, i int) {
		m.Conditions = []*schedulerv1.NodeCondition{{Type: "Flips", Status: "True", Reason: fmt.Sprint("r", i), Message: strings.Repeat("x", 900)}}
	}),
	"condition-escapes": beats(3, func(m *schedulerv1.HeartbeatRequest, i int) {
		m.Conditions = []*schedulerv1.NodeCondition{{Type: "Escape", Status: "True", Reason: "\x1b[2J", Message: "\x1b]0;owned\x07\x1b[31mred\u202eevil"}}
	}),
	"usage-2-62": beats(3, func(m *schedulerv1.HeartbeatRequest, i int) {
		m.CurrentUsage = &schedulerv1.ResourceUsage{CpuMillicores: 1 << 62, MemoryBytes: 1 << 62, DiskBytes: 1 << 62}
	}),
	"heartbeat-for-another": beats(1, func(m *schedulerv1.HeartbeatRequest, i int) { m.NodeId = "node-1" }),

	"fences-1MB": fences(10, func(i int) string {
		return string(resource.NewTxID(resource.UnitUID(strings.Repeat("f", 1<<20)), 1, uint64(i), resource.Nonce{}))
	}),
	"fences-invented": fences(800, invented),
}

// invented names a transaction of a unit that never was.
func invented(i int) string {
	return string(resource.NewTxID(resource.UnitUID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), 1, 1, resource.Nonce{}))
}

// flood sends one message again and again through the session of the host, n
// times for size 1.
func flood(n int, message func(*run) *musterv1.AgentMessage) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		h, err := r.start(ctx, lies{})
		if err != nil {
			return err
		}
		defer h.stop()
		r.ready()
		m := message(r)
		until := time.Now().Add(r.For)
		for range n * r.Size {
			if ctx.Err() != nil || time.Now().After(until) {
				break
			}
			if h.relay.say(m) {
				r.count("message: sent")
				continue
			}
			r.count("message: no session")
			pause(ctx, 100*time.Millisecond)
		}
		pause(ctx, 2*time.Second) // the leader has much to read
		return nil
	}
}

// beats sends heartbeats on a stream of their own, each changed, and waits for
// the answer to each.
func beats(n int, change func(m *schedulerv1.HeartbeatRequest, i int)) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		// The real agent's own heartbeats lie too, or they would repair the lie.
		h, err := r.start(ctx, lies{heartbeat: func(m *schedulerv1.HeartbeatRequest) { change(m, 0) }})
		if err != nil {
			return err
		}
		defer h.stop()
		r.ready()
		until := time.Now().Add(r.For)
		for i := 0; i < n*r.Size && ctx.Err() == nil && time.Now().Before(until); {
			if i, err = h.beat(ctx, i, n*r.Size, until, change); err != nil {
				r.answered("Heartbeat", err)
				if i++; !pause(ctx, 100*time.Millisecond) {
					break
				}
			}
		}
		pause(ctx, time.Second)
		return nil
	}
}

// beat sends heartbeats i to n on one stream and returns the next one to send.
func (h *host) beat(ctx context.Context, i, n int, until time.Time, change func(*schedulerv1.HeartbeatRequest, int)) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, max(time.Second, time.Until(until)))
	defer cancel()
	stream, err := schedulerv1.NewNodeAgentClient(h.calls).Heartbeat(ctx)
	if err != nil {
		return i, err
	}
	for ; i < n && time.Now().Before(until); i++ {
		m := &schedulerv1.HeartbeatRequest{NodeId: h.Node}
		change(m, i)
		if err := stream.Send(m); err != nil {
			_, err = stream.Recv()
			return i, err
		}
		if _, err := stream.Recv(); err != nil {
			return i, err
		}
		h.count("Heartbeat: OK")
	}
	return i, nil
}

// fences asks for records of transactions that never were.
func fences(n int, tx func(i int) string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		h, err := r.start(ctx, lies{})
		if err != nil {
			return err
		}
		defer h.stop()
		r.ready()
		coordinator := musterv1.NewCoordinatorClient(h.calls)
		var next atomic.Int64
		parallel(4, func(int) {
			for i := int(next.Add(1)); i <= n*r.Size && ctx.Err() == nil; i = int(next.Add(1)) {
				call, cancel := context.WithTimeout(ctx, 10*time.Second)
				answer, err := coordinator.Resolve(call, &musterv1.ResolveRequest{NodeId: h.Node, Tx: tx(i), Fence: true})
				cancel()
				r.answered("Resolve", err)
				if answer.GetRecord().GetState() == musterv1.Record_ABORTED {
					r.count("Resolve: a record was made")
				}
			}
		})
		return nil
	}
}
