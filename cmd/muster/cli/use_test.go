package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
)

func TestTheTableOfUse(t *testing.T) {
	kills := int64(2)
	got := useTable([]api.JobMember{
		{Name: "train-0", Use: &api.MemberUse{
			CPUMillis: 61250, MemoryBytes: 1 << 29, PeakMemoryBytes: 3 << 29, OOMKills: &kills, Devices: []api.MemberDeviceUse{{UUID: "GPU-a", BusyMillis: 500, PeakMemoryBytes: 1 << 30}, {UUID: "GPU-b", BusyMillis: 250, PeakMemoryBytes: 1 << 30}},
		}},
		{Name: "train-1", Use: &api.MemberUse{PeakMemoryBytes: 100}},
		{Name: "train-2"},
	})
	want := [][]string{
		{"NAME", "CPU", "MEMORY", "PEAK MEMORY", "OOM KILLS", "GPU TIME", "PEAK GPU MEMORY"},
		{"train-0", "1m1.3s", "512Mi", "1.5Gi", "2", "750ms", "2Gi"},
		{"train-1", "0s", "<none>", "100", "<none>", "<none>", "<none>"},
	}
	if diff := cmp.Diff(want, got.rows); diff != "" {
		t.Error(diff)
	}
}
