package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
)

// Heartbeats implements the Heartbeat of scheduler.v1.NodeAgent, the part of
// that service which coordinators serve; agents serve the rest.
type Heartbeats struct {
	schedulerv1.UnimplementedNodeAgentServer
	CoordinatorID string
	Store         interface {
		store.KVStore
		store.Leaser
	}
	Logger *slog.Logger
	// Fingerprint, if set, returns the fingerprint of the present authorities
	// and gossip keys (pki.Fingerprint). It is sent to agents once, and when it
	// changes.
	Fingerprint func() string
	// Changed, if set, is closed when Fingerprint may have changed since it was
	// called: agents get the new one at once, without a heartbeat to answer.
	Changed func() <-chan struct{}
	// OverBudget is as that of Server.
	OverBudget func(resource.NodeID, Budget)
	// Heard, if set, is called with each heartbeat of a node that keeps its lease. It
	// does not block.
	Heard func(history.Heartbeat)

	spent   spending
	reports reports
}

func (h *Heartbeats) spend(node resource.NodeID, b Budget) error {
	return h.spent.spend(node, b, h.Logger, h.OverBudget)
}

// renewNow is the directive of a message that answers no heartbeat. An agent of
// before 0.2 takes the message for an answer without a lease, ends the stream,
// and gets the directive on the next one.
const renewNow = "renew_now"

// Heartbeat keeps the node's lease alive while heartbeats arrive on the stream,
// and the node's conditions in its status.
func (h *Heartbeats) Heartbeat(stream grpc.BidiStreamingServer[schedulerv1.HeartbeatRequest, schedulerv1.HeartbeatResponse]) error {
	ctx := stream.Context()
	var node resource.NodeID
	var lease record.LeaseID
	var said conditions
	var size capacity
	told := ""
	beats := received(stream)
	for {
		var changed <-chan struct{}
		if h.Changed != nil {
			changed = h.Changed()
		}
		if h.Fingerprint != nil && told != "" { // after Changed: no change is missed
			if now := h.Fingerprint(); now != told {
				told = now
				if err := stream.Send(&schedulerv1.HeartbeatResponse{Directives: []*schedulerv1.SchedulingDirective{{Type: renewNow, Message: now}}}); err != nil {
					return err
				}
			}
		}
		var beat *schedulerv1.HeartbeatRequest
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			continue
		case got := <-beats:
			beat, err = got.beat, got.err
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := checkNode(beat.GetNodeId()); err != nil {
			return err
		}
		if node == "" {
			node = resource.NodeID(beat.GetNodeId())
		}
		if resource.NodeID(beat.GetNodeId()) != node {
			return status.Errorf(codes.InvalidArgument, "node_id %q: the stream is %q's", beat.GetNodeId(), node)
		}
		if err := h.spend(node, Heartbeat); err != nil {
			return err
		}
		response := &schedulerv1.HeartbeatResponse{}
		if lease, err = h.keep(ctx, node, lease); err != nil {
			h.Logger.Warn("node_lease_failed", "node", node, "error", err)
		}
		if lease != 0 && err == nil {
			response.LeaseDurationSeconds = int64(grant.NodeLeaseTTL / time.Second)
			m := h.measure(ctx, &size, node, beat)
			if h.Heard != nil {
				h.Heard(sampleOf(node, beat, m, time.Now()))
			}
			if err := h.report(ctx, node, &said, beat, m); err != nil {
				h.Logger.Warn("node_status_not_written", "node", node, "error", err)
			}
		}
		if lease == 0 && err == nil {
			response.Directives = []*schedulerv1.SchedulingDirective{{Type: "register", Message: fmt.Sprintf("node %s is not registered, or is fenced", node)}}
		}
		if h.Fingerprint != nil {
			if now := h.Fingerprint(); now != told {
				told = now
				response.Directives = append(response.Directives, &schedulerv1.SchedulingDirective{Type: "renew", Message: now})
			}
		}
		if err := stream.Send(response); err != nil {
			return err
		}
	}
}

// heartbeat is the last heartbeat received.
type heartbeat struct {
	beat *schedulerv1.HeartbeatRequest
	err  error
}

// received reads a stream until it ends; its last value has the error. The
// reader waits until each value is taken, or the stream's context ends.
func received(stream grpc.BidiStreamingServer[schedulerv1.HeartbeatRequest, schedulerv1.HeartbeatResponse]) <-chan heartbeat {
	beats := make(chan heartbeat)
	go func() {
		for {
			beat, err := stream.Recv()
			select {
			case beats <- heartbeat{beat, err}:
			case <-stream.Context().Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return beats
}

// measured are a host's claims about the use of itself and of its devices.
type measured struct {
	usage   resource.Vector    // cut to the host's capacity; nil where nothing counts
	devices []record.DeviceUse // each with a possible percentage; at most devices.MaxUses
	work    []record.MemberUse // of the members that run there; at most limits.MaxMemberUses
}

// measure reads the claims of a heartbeat.
func (h *Heartbeats) measure(ctx context.Context, size *capacity, node resource.NodeID, beat *schedulerv1.HeartbeatRequest) measured {
	u := beat.GetCurrentUsage()
	return measured{h.usage(ctx, size, node, u), deviceUses(u.GetDevices()), memberUses(beat.GetPodStatuses())}
}

// deviceUses reads a host's claims about its devices. Values that no device can
// have are unknown. Whether the host has such a device, with so much memory, is
// compared where the node is shown.
func deviceUses(told []*schedulerv1.DeviceUse) []record.DeviceUse {
	var list []record.DeviceUse
	for _, m := range told[:min(len(told), devices.MaxUses)] {
		use := devices.Use{UUID: m.GetUuid(), Percent: devices.UnknownUse, Memory: devices.UnknownUse}
		if m.Percent != nil {
			use.Percent = int(m.GetPercent())
		}
		if m.MemoryBytes != nil {
			use.Memory = resource.Bytes(m.GetMemoryBytes())
		}
		use, _ = use.Within(0)
		list = append(list, record.DeviceUse(use))
	}
	return list
}

// capacity is the registered capacity of the node of one stream.
type capacity struct {
	read   time.Time
	vector resource.Vector
}

// capacityAge is the time for which a stream keeps to the capacity that it has
// read for its node: the time between two registrations of an agent.
const capacityAge = 10 * time.Minute

// usage is a heartbeat's report of the host's usage, cut to the host's
// capacity: it is the host's own claim, and shown as such. A node that has not
// registered has no usage.
func (h *Heartbeats) usage(ctx context.Context, size *capacity, node resource.NodeID, u *schedulerv1.ResourceUsage) resource.Vector {
	if u == nil {
		return nil
	}
	if size.vector == nil || time.Since(size.read) > capacityAge {
		kv, found, _, err := h.Store.Get(ctx, record.NodeSpecKey(node))
		if err == nil && found {
			if spec, err := record.Decode[record.NodeSpec](kv.Key, kv.Value); err == nil {
				size.read, size.vector = time.Now(), spec.Capacity
			}
		}
	}
	if size.vector == nil {
		return nil
	}
	cut := func(name resource.Name, told int64) int64 { return min(max(0, told), size.vector[name]) }
	return resource.Vector{
		resource.CPU: cut(resource.CPU, u.GetCpuMillicores()), resource.Memory: cut(resource.Memory, u.GetMemoryBytes()),
	}
}

// keep renews the node's lease, or makes one for a node that is registered. A
// lease without an error means that the node's key was there, on that lease,
// after keep was called: agents take that for contact (PROTOCOL.md section 5).
// A renewal alone does not prove it: a fence deletes the key before it revokes
// the lease, and a late heartbeat at another coordinator puts the key on a
// lease of its own.
func (h *Heartbeats) keep(ctx context.Context, node resource.NodeID, lease record.LeaseID) (record.LeaseID, error) {
	if lease != 0 {
		err := h.Store.KeepAlive(ctx, lease)
		if err == nil {
			var kv record.KV
			var found bool
			if kv, found, _, err = h.Store.Get(ctx, record.NodeLeaseKey(node)); err == nil && (!found || kv.Lease != lease) {
				err = record.ErrLeaseGone
			}
		}
		if !errors.Is(err, record.ErrLeaseGone) {
			return lease, err
		}
	}
	identity, found, _, err := h.Store.Get(ctx, record.NodeIdentityKey(node))
	if err != nil || !found {
		return 0, err
	}
	if who, err := record.Decode[record.NodeIdentity](identity.Key, identity.Value); err != nil || who.Fenced {
		return 0, err
	}
	value, err := record.Encode(record.NodeLease{Coordinator: h.CoordinatorID})
	if err != nil {
		return 0, err
	}
	if err := h.spend(node, Leases); err != nil {
		return 0, err
	}
	granted, err := h.Store.Grant(ctx, grant.NodeLeaseTTL)
	if err != nil {
		return 0, err
	}
	result, err := h.Store.Txn(ctx, record.Txn{
		If:   []record.Compare{record.ModRevIs(identity.Key, identity.ModRev)},
		Then: []record.Op{record.PutLeased(record.NodeLeaseKey(node), value, granted.ID)},
	})
	if err != nil { // a lease without a key ends by itself
		return 0, err
	}
	if !result.Succeeded {
		return 0, fmt.Errorf("lease of %s: it registered in between; its next heartbeat tries again", node)
	}
	return granted.ID, nil
}
