package rpc

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
)

// snapshots answers with one snapshot, or fails.
type snapshots struct {
	s   Snapshot
	err error
}

func (s snapshots) Snapshot(context.Context) (Snapshot, error) { return s.s, s.err }

// partitioned is a host that holds whole cores, huge pages and an instance.
func partitioned() Snapshot {
	return Snapshot{
		Node:      "n1",
		Capacity:  resource.Vector{resource.CPU: 64000, "hugepages-2Mi": 4 << 30, "nvidia.com/mig-1g.10gb": 2},
		Available: resource.Vector{resource.CPU: 60000, "hugepages-2Mi": 3 << 30, "nvidia.com/mig-1g.10gb": 1},
		NUMA:      []NUMAFree{{ID: 0, CPU: 60000, Memory: 8 << 30, Hugepages: resource.Vector{"hugepages-2Mi": 3 << 30}, WholeCores: 30}},
		Devices: []DeviceFree{
			{Index: 0, UUID: "GPU-a", Model: "A100", Health: "ok", MIG: []MIGFree{
				{UUID: "MIG-a", Profile: "1g.10gb", Memory: 9728 << 20}, {UUID: "MIG-b", Profile: "1g.10gb", Memory: 9728 << 20, Free: true},
			}},
			{Index: 1, UUID: "GPU-b", Model: "A100", Health: "tainted", Reason: "XID 79: fell off the bus", Free: 1000},
		},
		Grants: []GrantMember{{
			Tx: "tx", Unit: "u", Member: 1, State: "held", Held: true,
			Assignment: resource.Assignment{
				CPUs:      []resource.CPUGrant{{ID: 4, Milli: 1000}, {ID: 36, Milli: 1000}},
				Memory:    []resource.MemoryGrant{{Node: 0, Bytes: 1 << 30}},
				Hugepages: []resource.HugepageGrant{{Node: 0, Size: 2 << 20, Bytes: 512 << 20}, {Node: 1, Size: 2 << 20, Bytes: 512 << 20}},
				MIG:       []resource.MIGGrant{{GPU: 0, Instance: 0, UUID: "MIG-a", Profile: "1g.10gb"}},
			},
		}},
	}
}

func TestASnapshotTellsOfHugePagesInstancesAndHealth(t *testing.T) {
	got, err := (&nodeAgent{snapshots: snapshots{s: partitioned()}}).GetResourceSnapshot(t.Context(), &schedulerv1.SnapshotRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := &schedulerv1.ResourceSnapshot{
		NodeId:    "n1",
		Capacity:  map[string]string{"cpu": "64", "hugepages-2Mi": "4Gi", "nvidia.com/mig-1g.10gb": "2"},
		Available: map[string]string{"cpu": "60", "hugepages-2Mi": "3Gi", "nvidia.com/mig-1g.10gb": "1"},
		NumaNodes: []*schedulerv1.NUMASnapshot{{
			FreeCpuMillicores: 60000, FreeMemoryBytes: 8 << 30, FreeWholeCores: 30, FreeHugepagesBytes: map[string]int64{"hugepages-2Mi": 3 << 30},
		}},
		Devices: []*schedulerv1.DeviceSnapshot{
			{Uuid: "GPU-a", Model: "A100", Health: "ok", MigInstances: []*schedulerv1.MIGSnapshot{
				{Uuid: "MIG-a", Profile: "1g.10gb", MemoryBytes: 9728 << 20}, {Uuid: "MIG-b", Profile: "1g.10gb", MemoryBytes: 9728 << 20, Free: true},
			}},
			{Index: 1, Uuid: "GPU-b", Model: "A100", Health: "tainted", HealthReason: "XID 79: fell off the bus", FreeMilli: 1000},
		},
		Allocations: []*schedulerv1.AllocationSnapshot{{
			Transaction: "tx", Unit: "u", Member: 1, State: "held", Cpus: "4,36", MemoryBytes: 1 << 30,
			HugepagesBytes: map[string]int64{"hugepages-2Mi": 1 << 30}, MigUuids: []string{"MIG-a"},
		}},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
}

func TestASnapshotOfAStoppingAgentIsRefused(t *testing.T) {
	n := &nodeAgent{snapshots: snapshots{err: errors.Join(errors.New("view"), ErrStopping)}}
	if _, err := n.GetResourceSnapshot(t.Context(), &schedulerv1.SnapshotRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v, want Unavailable", err)
	}
}

func TestHealthIsToldWithItsReason(t *testing.T) {
	health := []DeviceHealth{{Index: 1, Health: devices.Tainted, Reason: "XID 79: fell off the bus"}}
	want := []*musterv1.DeviceHealth{{Index: 1, Health: "tainted", Reason: "XID 79: fell off the bus"}}
	for name, got := range map[string][]*musterv1.DeviceHealth{
		"a change":      (Envelope{Body: HealthChange{Health: health}}).message().GetHealth().GetDevices(),
		"the occupancy": (Envelope{Body: Occupancy{Health: health}}).message().GetOccupancy().GetHealth(),
		"the welcome":   welcomeMessage(Welcome{Occupancy: Occupancy{Health: health}}).GetHello().GetOccupancy().GetHealth(),
	} {
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAReservationOfCoresHugePagesAndInstancesIsUnderstood(t *testing.T) {
	order, err := orderOf(&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Reserve{Reserve: &musterv1.Reserve{
		Tx: "a", Epoch: 1, Members: []*musterv1.MemberRequest{{Request: &musterv1.Request{
			Cores: 8, Hugepages: 1 << 30, HugepageSize: 2 << 20, Mig: 2, MigProfile: "1g.10gb",
		}}},
	}}})
	want := Order{Command: grant.Reserve{Tx: "a", Epoch: 1, Members: []grant.MemberRequest{{
		Request: resource.Request{Cores: 8, Hugepages: 1 << 30, HugepageSize: 2 << 20, MIG: 2, MIGProfile: "1g.10gb"},
	}}}}
	if diff := cmp.Diff(want, order); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
