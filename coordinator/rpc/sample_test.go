package rpc_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/store/mem"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
)

func of[T any](n T) *T { return &n }

// TestHeartbeatsAreHeard: each heartbeat of a registered node reaches the hook with all
// that it measures, and an unknown value is none.
func TestHeartbeatsAreHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, s := open(t, mem.Options{})
		var heard []history.Heartbeat
		stream := serveAs(t, &rpc.Heartbeats{CoordinatorID: "c1", Store: s, Logger: quiet, Heard: func(h history.Heartbeat) { heard = append(heard, h) }})
		beat(t, stream, alive)
		if len(heard) > 0 {
			t.Errorf("heard a node that is not registered: %+v", heard)
		}
		register(t, server, first)
		beat(t, stream, alive)
		spec, _ := get[record.NodeSpec](t, s, record.NodeSpecKey("n1"))
		beat(t, stream, &schedulerv1.HeartbeatRequest{
			NodeId: "n1", PodStatuses: []*schedulerv1.PodStatus{{AllocationId: "a", Phase: "Running"}, {AllocationId: "b", Phase: "Pending"}, {AllocationId: "c", Phase: "Running"}},
			CurrentUsage: &schedulerv1.ResourceUsage{
				CpuMillicores: 1500, MemoryBytes: 1 << 62, Load_1M: 0.5, DiskBytes: 7, NetworkRxBytes: 8, OomKills: of[int64](0), ContainersRunning: of[int32](2),
				Devices: []*schedulerv1.DeviceUse{{Uuid: "GPU-00000000-0000-0000-0000-000000000001", Percent: of[int32](40)}, {Uuid: "GPU-00000000-0000-0000-0000-000000000002"}},
			},
		})
		if len(heard) != 2 {
			t.Fatalf("%d heartbeats", len(heard))
		}
		want := []history.Heartbeat{
			{Node: "n1", MembersRunning: of[int64](0), MembersPending: of[int64](0)},
			{
				Node: "n1", CPUMillicores: of[int64](1500), MemoryBytes: of(spec.Capacity["memory"]), DiskBytes: of[int64](7), NetworkReceivedBytes: of[int64](8),
				MembersRunning: of[int64](2), MembersPending: of[int64](1), WorkRunning: of[int64](2), OOMKills: of[int64](0), LoadAverageOneMinute: of(0.5), LoadAverageFiveMinutes: of(0.0),
				GPUUtilizationPercent: heard[1].GPUUtilizationPercent,
			},
		}
		if d := cmp.Diff(want, heard, cmpopts.IgnoreFields(history.Heartbeat{}, "At"), cmpopts.EquateNaNs()); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		if g := heard[1].GPUUtilizationPercent; len(g) != 2 || g[0] != 40 || g[1] == g[1] {
			t.Errorf("devices %v, want 40 and unknown", g)
		}
		stream.CloseSend()
	})
}
