package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/musterd/muster/agent/usage"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire/limits"
)

// Heartbeat is an agent's report of itself: information for people and the sign
// that keeps the node's lease alive.
type Heartbeat struct {
	Time       time.Time // the node's clock; information only
	Began      time.Time // a time before it is sent, on any clock; the answer has it
	Usage      usage.Usage
	Devices    []devices.Use // at most devices.MaxUses
	Conditions []Condition
	Grants     []Phase
	Kubelet    *KubeletReport // nil where the kubelet gets no devices
	Containers int            // the members whose command runs, and the containers of the kubelet's devices
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
	Uses  []MemberUse // of the members whose processes run, ascending
}

// MemberUse is the measured use of a member since its start.
type MemberUse struct {
	Member int
	Use    *grant.WorkUse
}

// Directive is a coordinator's request in answer to a heartbeat.
type Directive struct{ Type, Tx, Message string }

// Answer is a coordinator's answer to a heartbeat.
type Answer struct {
	Began time.Time // of the heartbeat that it answers
	First bool      // of its stream; there may be several, one after the other
	// Kept: the node had its lease in the store after the heartbeat was sent.
	Kept       bool
	Directives []Directive // most answers have none
}

// DirectiveRegister asks the agent to register anew.
const DirectiveRegister = "register"

// Heartbeats opens a stream to a coordinator and sends the heartbeat that next
// returns, at once and then on every tick, until the stream breaks or its
// coordinator cannot keep the lease (an error) or ctx ends (nil). answered is
// called with each answer, in order, from another goroutine that has ended when
// Heartbeats returns.
func (c *Coordinators) Heartbeats(ctx context.Context, node resource.NodeID, every time.Duration,
	next func(context.Context) (Heartbeat, error), answered func(Answer),
) error {
	err := c.each(ctx, "heartbeat", func(ctx context.Context, conn *grpc.ClientConn) error {
		return heartbeats(ctx, conn, node, every, next, answered)
	})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the context ended it
	}
	return err
}

func heartbeats(ctx context.Context, conn *grpc.ClientConn, node resource.NodeID, every time.Duration,
	next func(context.Context) (Heartbeat, error), answered func(Answer),
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
	var sent inFlight
	go func() {
		defer close(ended)
		for first := true; ; {
			response, err := stream.Recv()
			if err != nil {
				broken <- err
				return
			}
			answer := answerOf(response)
			if answer.answersNothing() {
				answered(Answer{Directives: answer.Directives}) // it is no sign of contact
				continue
			}
			began, pairs := sent.next()
			answer.Began, answer.First = began, first
			first = false
			answer.Kept = answer.Kept && pairs
			answered(answer)
			if !answer.Kept && !answer.asksToRegister() {
				broken <- errNoLease
				return
			}
		}
	}()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		beat, err := next(ctx)
		if err != nil {
			return err
		}
		sent.add(beat.Began)
		if err := stream.Send(heartbeatMessage(node, beat)); err != nil {
			return fmt.Errorf("send: %w", <-broken) // Recv returns the stream's own error
		}
		select {
		case err := <-broken:
			return err
		case <-ticker.C:
		}
	}
}

// errNoLease ends a stream whose coordinator could not keep the node's lease:
// another one may have the store.
var errNoLease = errors.New("the coordinator could not keep the node's lease")

func (a Answer) asksToRegister() bool {
	return slices.ContainsFunc(a.Directives, func(d Directive) bool { return d.Type == DirectiveRegister })
}

// answersNothing reports whether a message came without a heartbeat: there is
// something new to ask for at once.
func (a Answer) answersNothing() bool {
	return len(a.Directives) == 1 && a.Directives[0].Type == DirectiveRenewNow
}

// inFlight is when the heartbeats began that are not answered yet. Answers come
// in their order.
type inFlight struct {
	mu    sync.Mutex
	began []time.Time
}

func (f *inFlight) add(t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.began = append(f.began, t)
}

// next is the oldest; false for an answer to nothing.
func (f *inFlight) next() (time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.began) == 0 {
		return time.Time{}, false
	}
	first := f.began[0]
	f.began = f.began[1:]
	return first, true
}

// answerOf reads an answer. A node that is to register has no lease.
func answerOf(m *schedulerv1.HeartbeatResponse) Answer {
	a := Answer{Kept: m.GetLeaseDurationSeconds() > 0}
	for _, d := range m.GetDirectives() {
		a.Directives = append(a.Directives, Directive{d.GetType(), d.GetAllocationId(), d.GetMessage()})
	}
	a.Kept = a.Kept && !a.asksToRegister()
	return a
}

// deviceUse is a use on the wire, where an unknown value is absent.
func deviceUse(use devices.Use) *schedulerv1.DeviceUse {
	m := &schedulerv1.DeviceUse{Uuid: use.UUID}
	if use.Percent != devices.UnknownUse {
		percent := int32(use.Percent)
		m.Percent = &percent
	}
	if use.Memory != devices.UnknownUse {
		memory := int64(use.Memory)
		m.MemoryBytes = &memory
	}
	return m
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
	if h.Usage.OOMKills >= 0 {
		m.CurrentUsage.OomKills = &h.Usage.OOMKills
	}
	containers := int32(min(h.Containers, 1<<20))
	m.CurrentUsage.ContainersRunning = &containers
	for _, use := range h.Devices[:min(len(h.Devices), devices.MaxUses)] {
		m.CurrentUsage.Devices = append(m.CurrentUsage.Devices, deviceUse(use))
	}
	m.Kubelet = h.Kubelet.message()
	for _, g := range h.Grants[:min(len(h.Grants), limits.MaxGrants)] {
		status := &schedulerv1.PodStatus{AllocationId: string(g.Tx), Phase: g.Phase}
		for _, u := range g.Uses {
			status.Uses = append(status.Uses, &schedulerv1.MemberUse{Member: int32(u.Member), Use: useMessage(u.Use)})
		}
		m.PodStatuses = append(m.PodStatuses, status)
	}
	for _, c := range h.Conditions[:min(len(h.Conditions), limits.MaxConditions)] {
		value := "False"
		if c.True {
			value = "True"
		}
		m.Conditions = append(m.Conditions, &schedulerv1.NodeCondition{Type: c.Type, Status: value, Reason: c.Reason, Message: limits.Plain(c.Message, limits.MaxReason)})
	}
	return m
}
