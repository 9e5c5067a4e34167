package rpc_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/mem"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
)

func TestTheUseOfMembersIsWrittenInOrder(t *testing.T) {
	server, s := open(t, mem.Options{})
	register(t, server, first)
	kills := int64(2)
	beat(t, serve(t, s), &schedulerv1.HeartbeatRequest{NodeId: "n1", PodStatuses: []*schedulerv1.PodStatus{
		{AllocationId: "b", Phase: "Running", Uses: []*schedulerv1.MemberUse{{Member: 1, Use: &musterv1.WorkUse{
			CpuMillis: 1500, MemoryBytes: 1, PeakMemoryBytes: 2, OomKills: &kills,
			Devices: []*musterv1.WorkDevice{{Uuid: "GPU-b", BusyMillis: 7, MeasuredMillis: 11, MemoryBytes: 8, PeakMemoryBytes: 9}, {Uuid: "GPU-a"}},
		}}, {Member: 0}, {Member: 1}}},
		{AllocationId: "a", Phase: "Pending"},
		{AllocationId: "a", Phase: "Running", Uses: []*schedulerv1.MemberUse{{Member: 3, Use: &musterv1.WorkUse{CpuMillis: 9}}}},
	}})
	got, _ := get[record.NodeStatus](t, s, record.NodeStatusKey("n1"))
	want := []record.MemberUse{
		{Tx: "a", Member: 3, Use: record.Use{CPUMillis: 9}},
		{Tx: "b", Member: 0},
		{Tx: "b", Member: 1, Use: record.Use{CPUMillis: 1500, Memory: 1, PeakMemory: 2, OOMKills: &kills, Devices: []record.WorkDevice{{UUID: "GPU-b", BusyMillis: 7, MeasuredMillis: 11, Memory: 8, PeakMemory: 9}}}},
	}
	if diff := cmp.Diff(want, got.Work); diff != "" {
		t.Errorf("work (-want +got):\n%s", diff)
	}
	for _, u := range want {
		if diff := cmp.Diff(&u.Use, got.UseOf(u.Tx, u.Member)); diff != "" {
			t.Errorf("use of %s, member %d (-want +got):\n%s", u.Tx, u.Member, diff)
		}
	}
	if got.UseOf("a", 0) != nil || got.UseOf("c", 0) != nil {
		t.Error("a member without a report has a use")
	}
}
