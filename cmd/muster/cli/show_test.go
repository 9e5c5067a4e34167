package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// partitioned is a node with huge pages, a GPU in MIG mode and one that is
// sick.
func partitioned() *api.Node {
	has := map[resource.Name]string{
		"cpu": "64", "memory": "252Gi", "hugepages-2Mi": "4Gi", "nvidia.com/gpu": "1", "nvidia.com/mig-1g.10gb": "2", "nvidia.com/mig-3g.40gb": "1",
	}
	return &api.Node{
		Metadata: api.ObjectMeta{Name: "gpu-01"},
		Spec:     api.NodeSpec{Capacity: has, Allocatable: has},
		Status: api.NodeStatus{
			Phase: "Ready", Capacity: has, Allocatable: has,
			Conditions: []api.Condition{
				{Type: "Ready", Status: "True", Reason: "AgentReady"},
				{Type: "DiskPressure", Status: "False", Reason: "JournalHasRoom", LastTransitionTime: "2026-02-20T08:00:00Z"},
				{
					Type: "OrphanProcesses", Status: "True", Reason: "NoGrant", LastTransitionTime: "2026-03-01T11:17:00Z",
					Message: "not handed out while these run without a grant: GPU-b: 4711 python3",
				},
				{Type: "GPUHealthy", Status: "False", Reason: "Unhealthy", LastTransitionTime: "2026-03-01T11:59:30Z", Message: "GPU-b is tainted (XID 79: fell off the bus)"},
			},
			Available: map[resource.Name]string{"cpu": "48", "memory": "252Gi", "hugepages-2Mi": "3Gi", "nvidia.com/mig-1g.10gb": "1"},
			NUMANodes: []api.NUMAStatus{{
				ID: 0, CPUs: "0-63", FreeCPU: "48", FreeCores: 24, Memory: "256Gi", FreeMemory: "252Gi",
				FreeHugepages: map[resource.Name]string{"hugepages-1Gi": "0", "hugepages-2Mi": "3Gi"},
			}},
			Devices: []api.DeviceStatus{
				{Index: 0, UUID: "GPU-a", Model: "NVIDIA A100 80GB PCIe", Memory: "80Gi", Health: "ok", MIG: &api.MIGMode{Instances: []api.MIGInstance{
					{UUID: "MIG-a", Profile: "3g.40gb", Memory: "40192Mi", MemoryUsed: "3Gi"},
					{UUID: "MIG-b", Profile: "1g.10gb", Memory: "9728Mi", Free: true},
					{UUID: "MIG-c", Profile: "1g.10gb", Memory: "9728Mi"},
				}}},
				{Index: 1, UUID: "GPU-b", Model: "NVIDIA A100 80GB PCIe", Memory: "80Gi", UsePercent: new(int), MemoryUsed: "12Gi", Health: "tainted", HealthReason: "XID 79: fell off the bus", Free: 1000},
			},
		},
	}
}

func TestAPartitionedNodeIsDescribed(t *testing.T) {
	var out bytes.Buffer
	(&app{Program: Program{Stdout: &out}}).describeNode(partitioned(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	path := filepath.Join("testdata", "partitioned-node.txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("described (-want +got):\n%s", diff)
	}
}

func TestTheTableOfNodesCountsInstances(t *testing.T) {
	if got, want := nodeRow(partitioned(), time.Time{})[5], "0/1 + 1/2 × 1g.10gb + 0/1 × 3g.40gb"; got != want {
		t.Errorf("GPUs are %q, want %q", got, want)
	}
}

func TestAGrantInWords(t *testing.T) {
	for name, c := range map[string]struct {
		amounts    map[resource.Name]string
		assignment api.AssignmentStatus
		want       grant
		wantUUIDs  string
	}{
		"GPUs": {
			map[resource.Name]string{"cpu": "8", "memory": "4Gi", "nvidia.com/gpu": "2"},
			api.AssignmentStatus{CPUs: "0-7", NUMANodes: []int{1}, GPUs: []api.GPUStatus{{Index: 0, UUID: "GPU-a", Milli: 1000}, {Index: 3, UUID: "GPU-b", Milli: 1000}}},
			grant{"8 (0-7)", "1", "4Gi", "2 (0,3)"},
			"GPU-a,GPU-b",
		},
		"whole cores and instances": {
			map[resource.Name]string{"cpu": "16", "muster.io/cores": "8", "nvidia.com/mig-1g.10gb": "2"},
			api.AssignmentStatus{CPUs: "0-7,32-39", NUMANodes: []int{0}, MIG: []api.MIGStatus{
				{GPU: 0, Instance: 2, UUID: "MIG-a", Profile: "1g.10gb"}, {GPU: 1, Instance: 0, UUID: "MIG-b", Profile: "1g.10gb"},
			}},
			grant{"8 cores (0-7,32-39)", "0", "", "2 × 1g.10gb (0:2,1:0)"},
			"MIG-a,MIG-b",
		},
		"one core and huge pages": {
			map[resource.Name]string{"cpu": "2", "muster.io/cores": "1", "memory": "1Gi", "hugepages-2Mi": "4Gi"},
			api.AssignmentStatus{CPUs: "0,32", NUMANodes: []int{0}},
			grant{"1 core (0,32)", "0", "1Gi + 4Gi in 2Mi pages", ""},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &api.Allocation{Status: api.AllocationStatus{AllocatedResources: c.amounts, Assignment: &c.assignment}}
			if got := grantOf(&a.Status); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if got := allocationWide(a)[1]; got != c.wantUUIDs {
				t.Errorf("UUIDs are %q, want %q", got, c.wantUUIDs)
			}
		})
	}
}

func TestAnAllocationOfHugePagesAndInstancesIsDescribed(t *testing.T) {
	var out bytes.Buffer
	(&app{Program: Program{Stdout: &out}}).describeAllocation(&api.Allocation{
		Metadata: api.ObjectMeta{Name: "infer", Namespace: "ml"},
		Status: api.AllocationStatus{
			Phase:              api.Running,
			AllocatedResources: map[resource.Name]string{"cpu": "4", "muster.io/cores": "2", "hugepages-2Mi": "1Gi", "nvidia.com/mig-1g.10gb": "1"},
			Assignment: &api.AssignmentStatus{
				CPUs: "0-1,32-33", NUMANodes: []int{0},
				Hugepages: []api.HugepageStatus{{Node: 0, PageSize: "2Mi", Bytes: "1Gi"}},
				MIG:       []api.MIGStatus{{GPU: 0, Instance: 2, UUID: "MIG-a", Profile: "1g.10gb", Model: "NVIDIA A100 80GB PCIe"}},
			},
		},
	})
	const want = `Name:        infer
Namespace:   ml
Phase:       Running
Priority:    0

Assignment:
  CPUs         2 cores (0-1,32-33)
  NUMA nodes   0
  huge pages   1Gi in 2Mi pages on NUMA node 0
  MIG 0:2      MIG-a 1g.10gb of NVIDIA A100 80GB PCIe
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("described (-want +got):\n%s", diff)
	}
}
