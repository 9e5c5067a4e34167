package rpc

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
)

// Snapshot is a host's resources and grants for people and tools.
type Snapshot struct {
	Node                             resource.NodeID
	Capacity, Allocatable, Available resource.Vector
	NUMA                             []NUMAFree
	Devices                          []DeviceFree
	Grants                           []GrantMember // in order of transaction and member
}

// NUMAFree is the free capacity of one NUMA node.
type NUMAFree struct {
	ID         int
	CPU        resource.Millicores
	Memory     resource.Bytes  // in ordinary pages
	Hugepages  resource.Vector // bytes by the names of huge pages; nil without any
	WholeCores int
}

// DeviceFree is the free part of one device.
type DeviceFree struct {
	Index       int
	UUID, Model string
	Free        resource.Milli // 0 in MIG mode
	Health      string
	Reason      string // why it is not ok
	MIG         []MIGFree
}

// MIGFree is one MIG instance of a device.
type MIGFree struct {
	UUID, Profile string
	Memory        resource.Bytes
	Free          bool
}

// GrantMember is one member of one transaction here.
type GrantMember struct {
	Tx         resource.TxID
	Unit       resource.UnitUID
	Member     int
	State      string
	Held       bool // committed: it may run
	Assignment resource.Assignment
}

// Snapshots returns a host's resources and grants; it may block until the owner
// of the ledger answers. The result is immutable.
type Snapshots interface {
	Snapshot(ctx context.Context) (Snapshot, error)
}

// nodeAgent serves the three calls of scheduler.v1.NodeAgent that agents
// serve; Heartbeat is the coordinators'.
type nodeAgent struct {
	schedulerv1.UnimplementedNodeAgentServer
	snapshots Snapshots
	evictions Evictions
}

// Heartbeat is served by coordinators.
func (n *nodeAgent) Heartbeat(schedulerv1.NodeAgent_HeartbeatServer) error {
	return status.Error(codes.Unimplemented, "heartbeats go to a coordinator; this is an agent")
}

// BindAllocation confirms a grant that has been committed, found by
// transaction or unit, and nothing else: it never creates one.
func (n *nodeAgent) BindAllocation(ctx context.Context, r *schedulerv1.BindRequest) (*schedulerv1.BindResponse, error) {
	s, err := n.snapshots.Snapshot(ctx)
	if err != nil {
		return nil, statusOf(err)
	}
	if r.GetAllocationId() == "" {
		return nil, statusOf(fmt.Errorf("allocation_id: empty: %w", ErrBadMessage))
	}
	if id := r.GetNodeId(); id != "" && id != string(s.Node) {
		return nil, statusOf(fmt.Errorf("node_id: %q, this is %q: %w", id, s.Node, ErrWrongNode))
	}
	state := ""
	for _, g := range s.Grants {
		if id := r.GetAllocationId(); string(g.Tx) != id && string(g.Unit) != id {
			continue
		}
		if g.Held {
			return &schedulerv1.BindResponse{Success: true}, nil
		}
		state = g.State
	}
	if state != "" {
		return &schedulerv1.BindResponse{
			FailureReason: "NotCommitted",
			ErrorMessage:  fmt.Sprintf("allocation %s is %s on %s, not held", r.GetAllocationId(), state, s.Node),
		}, nil
	}
	return &schedulerv1.BindResponse{
		FailureReason: "NotFound",
		ErrorMessage:  fmt.Sprintf("node %s holds nothing of allocation %s; submit it to a coordinator", s.Node, r.GetAllocationId()),
	}, nil
}

// GetResourceSnapshot returns the host's resources and their grants.
func (n *nodeAgent) GetResourceSnapshot(ctx context.Context, _ *schedulerv1.SnapshotRequest) (*schedulerv1.ResourceSnapshot, error) {
	s, err := n.snapshots.Snapshot(ctx)
	if err != nil {
		return nil, statusOf(err)
	}
	m := &schedulerv1.ResourceSnapshot{
		NodeId: string(s.Node), Capacity: quantities(s.Capacity),
		Allocatable: quantities(s.Allocatable), Available: quantities(s.Available),
	}
	for _, n := range s.NUMA {
		m.NumaNodes = append(m.NumaNodes, &schedulerv1.NUMASnapshot{
			Id: int32(n.ID), FreeCpuMillicores: int64(n.CPU), FreeMemoryBytes: int64(n.Memory), FreeWholeCores: int32(n.WholeCores),
			FreeHugepagesBytes: bytesByName(n.Hugepages),
		})
	}
	for i := range s.Devices {
		m.Devices = append(m.Devices, s.Devices[i].message())
	}
	for i := range s.Grants {
		m.Allocations = append(m.Allocations, s.Grants[i].message())
	}
	return m, nil
}

func (d *DeviceFree) message() *schedulerv1.DeviceSnapshot {
	m := &schedulerv1.DeviceSnapshot{
		Index: int32(d.Index), Uuid: d.UUID, Model: d.Model, FreeMilli: int64(d.Free), Health: d.Health, HealthReason: d.Reason,
	}
	for _, g := range d.MIG {
		m.MigInstances = append(m.MigInstances, &schedulerv1.MIGSnapshot{Uuid: g.UUID, Profile: g.Profile, MemoryBytes: int64(g.Memory), Free: g.Free})
	}
	return m
}

func (g *GrantMember) message() *schedulerv1.AllocationSnapshot {
	m := &schedulerv1.AllocationSnapshot{
		Transaction: string(g.Tx), Unit: string(g.Unit), Member: int32(g.Member), State: g.State, Cpus: g.Assignment.CPUSet().String(),
	}
	for _, d := range g.Assignment.GPUs {
		m.GpuUuids = append(m.GpuUuids, d.UUID)
	}
	for _, d := range g.Assignment.MIG {
		m.MigUuids = append(m.MigUuids, d.UUID)
	}
	for _, b := range g.Assignment.Memory {
		m.MemoryBytes += int64(b.Bytes)
	}
	huge := resource.Vector{}
	for _, b := range g.Assignment.Hugepages {
		huge.Add(resource.Vector{resource.Hugepages(b.Size): int64(b.Bytes)})
	}
	m.HugepagesBytes = bytesByName(huge)
	return m
}

func bytesByName(v resource.Vector) map[string]int64 {
	if len(v) == 0 {
		return nil
	}
	m := make(map[string]int64, len(v))
	for name, amount := range v {
		m[string(name)] = amount
	}
	return m
}

func quantities(v resource.Vector) map[string]string {
	m := make(map[string]string, len(v))
	for _, name := range v.Names() {
		m[string(name)] = resource.FormatAmount(name, v[name])
	}
	return m
}
