package narrate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestUsesOfMembers: a host speaks for the live members of its node alone.
func TestUsesOfMembers(t *testing.T) {
	k := newKeys()
	use := func(millis int64) record.Use {
		return record.Use{CPUMillis: millis, Devices: []record.WorkDevice{{UUID: "a", BusyMillis: 3}, {UUID: "b", BusyMillis: 4}}}
	}
	status := func(node resource.NodeID, second string, work ...record.MemberUse) record.Op {
		return record.MustPutRecord(record.NodeStatusKey(node), record.NodeStatus{HeardAt: "2000-01-01T00:00:" + second + "Z", Work: work})
	}
	u := unit()
	k.write(record.MustPutRecord(u.Path().Key(), u), record.MustPutRecord(record.TxKey(tx), committed(5)))
	k.write(status("n1", "10", record.MemberUse{Tx: tx, Use: use(100)}), status("n2", "10", record.MemberUse{Tx: tx, Use: use(9999)}))
	k.write(status("n1", "20", record.MemberUse{Tx: tx, Use: use(200)}, record.MemberUse{Tx: tx, Member: 1, Use: use(300)}, record.MemberUse{Tx: "unknown", Use: use(1)}))
	busy := int64(7)
	want := []history.Use{{Tx: tx, At: at(20), CPUMillis: 200, BusyMillis: &busy}}
	if d := cmp.Diff(want, k.n.Uses()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if again := k.n.Uses(); len(again) > 0 {
		t.Errorf("uses are told twice: %+v", again)
	}
	rec := committed(5)
	rec.State, rec.Ended, rec.EndedMillis = grant.RecordReleased, "2000-01-01T00:01:05Z", began+65_000
	k.write(record.MustPutRecord(record.TxKey(tx), rec))
	k.write(status("n1", "30", record.MemberUse{Tx: tx, Use: use(400)}))
	if late := k.n.Uses(); len(late) > 0 {
		t.Errorf("uses of a member that has ended: %+v", late)
	}
	if faults := k.n.Faults(); len(faults) > 0 {
		t.Errorf("faults %v", faults)
	}
}

// TestAGPUIsCountedForItsModel: as quotas are charged.
func TestAGPUIsCountedForItsModel(t *testing.T) {
	k := newKeys()
	u := unit()
	k.write(record.MustPutRecord(record.NodeSpecKey("n1"), record.NodeSpec{
		Hostname: "n1", Topology: record.TopologySummary{GPUs: 2, GPUModels: []string{"NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3"}, GPUModel: []int{0, 1}},
	}))
	k.write(record.MustPutRecord(u.Path().Key(), u), record.MustPutRecord(record.TxKey(tx), committed(5)))
	got := k.n.Take().Grants[0].Members[0]
	want := resource.Vector{resource.CPU: 2000, resource.GPU: 2000, "nvidia.com/gpu.a100": 1000, "nvidia.com/gpu.h100": 1000}
	if d := cmp.Diff(want, got.Allocated); d != "" {
		t.Errorf("allocated (-want +got)\n%s", d)
	}
	if d := cmp.Diff(want, got.Requested); d != "" {
		t.Errorf("requested (-want +got)\n%s", d)
	}
}
