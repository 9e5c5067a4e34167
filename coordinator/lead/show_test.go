package lead

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// hardware has huge pages and two GPUs, of which the first is divided.
const hardware = `{
  "name": "partitioned", "driver": "550.54.15", "threadsPerCore": 2, "coresPerL3": 8,
  "nodes": [{"socket": 0, "cores": 32, "memory": "256Gi", "hugepages": {"2048": 2048, "1048576": 0}}],
  "gpus": [
    {"model": "NVIDIA A100 80GB PCIe", "memory": "80Gi", "pciBusID": "0000:01:00.0", "numaNode": 0, "path": "rc0", "mig": {"enabled": true, "instances": [
      {"profile": "3g.40gb", "memory": "40Gi"}, {"profile": "2g.20gb", "memory": "20Gi"},
      {"profile": "1g.10gb", "memory": "10Gi"}, {"profile": "1g.10gb", "memory": "10Gi"}
    ]}},
    {"model": "NVIDIA A100 80GB PCIe", "memory": "80Gi", "pciBusID": "0000:41:00.0", "numaNode": 0, "path": "rc1"}
  ]
}`

// equip gives a node its hardware.
func equip(t *testing.T, n *node, h grant.Host) {
	t.Helper()
	host, err := fit.NewHost(h.Topology, h.Inventory, fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	n.setHost(h, host, quiet())
}

// partitioned is a connected node whose second GPU is sick.
func partitioned(t *testing.T) *node {
	t.Helper()
	profile, err := fake.ParseProfile([]byte(hardware))
	if err != nil {
		t.Fatal(err)
	}
	n := newNode("n1", &cluster.State{}, &occupancyNews{})
	equip(t, n, grant.Host{Hostname: "h", Topology: profile.Topology(), Inventory: profile.Inventory("n1")})
	n.health = map[int]grant.DeviceHealth{1: {Health: devices.Tainted, Reason: "XID 79: fell off the bus"}}
	n.rebuild(quiet())
	return n
}

// fitted is what a request gets on a node.
func fitted(t *testing.T, n *node, r resource.Request) resource.Assignment {
	t.Helper()
	var a resource.Assignment
	if !n.view.Host.Assign(n.view.Free, r, &a) {
		t.Fatalf("no room for %+v: %v", r, n.view.Host.Explain(n.view.Free, r))
	}
	return a
}

// statusOf is what readers are shown of a node with some holders, by the observation
// that the leader writes.
func statusOf(t rapid.TB, n *node, held ...resource.Assignment) api.NodeStatus {
	t.Helper()
	value, err := record.Encode(n.recordOf(n.observeNow()))
	if err != nil {
		t.Fatal(err)
	}
	o, err := record.Decode[record.NodeObserved]("observed", value)
	if err != nil {
		t.Fatal(err)
	}
	m, err := shown.MachineOf(o.Host)
	if err != nil {
		t.Fatal(err)
	}
	s := shown.Node{ID: "n1", Spec: &record.NodeSpec{}, Registered: true, Observed: &o, Machine: m, Held: held}
	return s.Show().Status
}

func TestANodeShowsHugePagesInstancesAndWhyADeviceIsSick(t *testing.T) {
	n := partitioned(t)
	inv := n.host.Inventory
	held := fitted(t, n, resource.Request{Cores: 8, Hugepages: 1 << 30, HugepageSize: 2 << 20, MIG: 1, MIGProfile: "3g.40gb"})
	full := statusOf(t, n, held)
	got := api.NodeStatus{Available: full.Available, NUMANodes: full.NUMANodes, Devices: full.Devices}

	want := api.NodeStatus{
		Available: map[resource.Name]string{
			"cpu": "48", "memory": "252Gi", "hugepages-2Mi": "3Gi", "nvidia.com/mig-1g.10gb": "2", "nvidia.com/mig-2g.20gb": "1",
		},
		NUMANodes: []api.NUMAStatus{{
			ID: 0, CPUs: "0-63", FreeCPU: "48", FreeCores: 24, Memory: "256Gi", FreeMemory: "252Gi",
			FreeHugepages: map[resource.Name]string{"hugepages-2Mi": "3Gi"},
		}},
		Devices: []api.DeviceStatus{
			{Index: 0, UUID: inv.Devices[0].UUID, Model: "NVIDIA A100 80GB PCIe", Memory: "80Gi", NUMANode: 0, Health: "ok", MIG: &api.MIGMode{}},
			{
				Index: 1, UUID: inv.Devices[1].UUID, Model: "NVIDIA A100 80GB PCIe", Memory: "80Gi", NUMANode: 0,
				Health: "tainted", HealthReason: "XID 79: fell off the bus", Free: 1000,
			},
		},
	}
	for k, g := range inv.Devices[0].MIG.Instances {
		want.Devices[0].MIG.Instances = append(want.Devices[0].MIG.Instances, api.MIGInstance{
			UUID: g.UUID, Profile: g.Profile, Memory: resource.FormatBytes(g.Memory), Free: k > 0,
		})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// The free part that readers compute of the facts is the one that placement computes of
// the host, whatever is reserved, held, or held without a record.
func TestTheFactsOfAHostTellItsFreePart(t *testing.T) {
	profile, err := fake.ParseProfile([]byte(hardware))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		reserved := fit.Reserved{Memory: resource.Bytes(rapid.Int64Range(0, 100<<30).Draw(t, "reserved"))}
		for range rapid.IntRange(0, 10).Draw(t, "reserved CPUs") {
			reserved.CPUs.Add(rapid.IntRange(0, 63).Draw(t, "CPU"))
		}
		topology, inventory := profile.Topology(), profile.Inventory("n1")
		host, err := fit.NewHost(topology, inventory, reserved)
		if err != nil {
			t.Fatal(err)
		}
		n := newNode("n1", &cluster.State{}, &occupancyNews{})
		n.setHost(grant.Host{Hostname: "h", Topology: topology, Inventory: inventory}, host, quiet())
		var held []resource.Assignment
		var local []grant.Grant
		for i := range rapid.IntRange(0, 12).Draw(t, "holders") {
			r := resource.Request{
				CPU: resource.Millicores(rapid.IntRange(0, 6000).Draw(t, "cpu")), Memory: resource.Bytes(rapid.Int64Range(0, 20<<30).Draw(t, "memory")),
				GPUShare: resource.Milli(rapid.SampledFrom([]int{0, 0, 250, 400}).Draw(t, "share")),
			}
			if rapid.Bool().Draw(t, "cores") {
				r.CPU, r.Cores = 0, rapid.IntRange(1, 4).Draw(t, "cores")
			}
			if rapid.IntRange(0, 3).Draw(t, "mig") == 0 {
				r.GPUShare, r.MIG, r.MIGProfile = 0, 1, "1g.10gb"
			}
			if rapid.IntRange(0, 3).Draw(t, "pages") == 0 {
				r.Hugepages, r.HugepageSize = 1<<30, 2<<20
			}
			var a resource.Assignment
			if !host.Assign(n.view.Free, r, &a) {
				continue
			}
			a = a.Clone()
			if n.take([]grant.Member{{Assignment: a}}) == nil {
				t.Fatalf("no room for %+v", a)
			}
			if rapid.Bool().Draw(t, "local") {
				local = append(local, grant.Grant{Tx: resource.TxID(fmt.Sprint("l", i)), Origin: "kubelet", State: grant.Held, Members: []grant.Member{{Assignment: a}}})
			} else {
				held = append(held, a)
			}
		}
		n.setGrants(grant.Occupancy{Grants: local})
		got := statusOf(t, n, held...)
		if diff := cmp.Diff(api.Amounts(host.FreeVector(n.view.Free)), got.Available); diff != "" {
			t.Fatalf("available (-placement +readers):\n%s", diff)
		}
		for i := range topology.Nodes {
			cpu := resource.FormatAmount(resource.CPU, int64(host.FreeCPU(n.view.Free, i)))
			if s := got.NUMANodes[i]; s.FreeCPU != cpu || s.FreeCores != host.WholeFreeCores(n.view.Free, i) || s.FreeMemory != resource.FormatBytes(n.view.Free.Memory[i]) {
				t.Fatalf("NUMA node %d: %+v, placement has %s in %d cores and %d bytes", i, s, cpu, host.WholeFreeCores(n.view.Free, i), n.view.Free.Memory[i])
			}
		}
		for i, d := range got.Devices {
			if d.Free != n.view.Free.GPU[i] {
				t.Fatalf("GPU %d: %d is free, placement has %d", i, d.Free, n.view.Free.GPU[i])
			}
			for k, g := range inventory.Devices[i].MIG.Instances {
				if free := n.view.Free.MIG[i]&(1<<k) != 0; d.MIG.Instances[k].Free != free {
					t.Fatalf("instance %s: free is %t, placement has %t", g.UUID, d.MIG.Instances[k].Free, free)
				}
			}
		}
	})
}

func TestADeviceThatIsNotToldSickIsWell(t *testing.T) {
	n := partitioned(t)
	n.host.Inventory.Devices[1].Health = devices.Tainted // as it was when the stream opened
	n.health = nil
	n.applyHealth()
	if got := statusOf(t, n); n.view.Free.Unhealthy != 0 || got.Devices[1].Health != "ok" {
		t.Errorf("unhealthy %b, GPU 1 is %+v", n.view.Free.Unhealthy, got.Devices[1])
	}
}

func TestAnAssignmentShowsEverythingGranted(t *testing.T) {
	n := partitioned(t)
	inv := n.host.Inventory
	a := fitted(t, n, resource.Request{Cores: 2, Memory: 1 << 30, Hugepages: 1 << 30, HugepageSize: 2 << 20, MIG: 2, MIGProfile: "1g.10gb"})
	want := &api.AssignmentStatus{
		CPUs: "0-1,32-33", NUMANodes: []int{0},
		Memory:    []api.MemoryStatus{{Node: 0, Bytes: "1Gi"}},
		Hugepages: []api.HugepageStatus{{Node: 0, PageSize: "2Mi", Bytes: "1Gi"}},
	}
	for _, k := range []int{2, 3} {
		want.MIG = append(want.MIG, api.MIGStatus{
			GPU: 0, Instance: k, UUID: inv.Devices[0].MIG.Instances[k].UUID, Profile: "1g.10gb", Model: "NVIDIA A100 80GB PCIe",
		})
	}
	hardware := shown.Hardware{Summary: &record.TopologySummary{
		NUMACPUs: map[int]string{0: "0-63"}, GPUModels: []string{"NVIDIA A100 80GB PCIe"}, GPUModel: []int{0, 0},
	}}
	got := hardware.Assignment(a)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("assignment (-want +got):\n%s", diff)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var back api.AssignmentStatus
	if err := json.Unmarshal(text, &back); err != nil || !cmp.Equal(got, &back) {
		t.Errorf("%s reads back as %+v, %v", text, back, err)
	}
}

func TestAConfirmationOfOtherPagesOrInstancesIsTakenOver(t *testing.T) {
	n := partitioned(t)
	planned := fitted(t, n, resource.Request{Hugepages: 1 << 30, HugepageSize: 2 << 20, MIG: 1, MIGProfile: "1g.10gb"})
	confirmed := planned.Clone()
	confirmed.MIG[0].Instance, confirmed.MIG[0].UUID = 3, n.host.Inventory.Devices[0].MIG.Instances[3].UUID
	plan := []grant.Member{{Assignment: planned}}
	n.reservations["tx"] = &reservation{members: plan, taken: n.take(plan)}
	n.confirm("tx", []grant.Member{{Assignment: confirmed}}, nil, false, nil)
	if n.view.Free.MIG[0] != 0b0111 {
		t.Errorf("instances %04b are free, want 0111", n.view.Free.MIG[0])
	}
	n.drop("tx")
	if n.view.Free.MIG[0] != 0b1111 || n.view.Host.FreeHugepages(n.view.Free, 2<<20) != 4<<30 {
		t.Errorf("after the end %04b and %d are free", n.view.Free.MIG[0], n.view.Host.FreeHugepages(n.view.Free, 2<<20))
	}
}

func TestOfAGrantCountsWhatTheHostStillHas(t *testing.T) {
	n := partitioned(t)
	log := quiet()
	n.health = nil
	n.applyHealth()
	full := n.view.Host.FreeVector(n.view.Free)
	held := fitted(t, n, resource.Request{Cores: 8, Memory: 1 << 30, Hugepages: 1 << 30, HugepageSize: 2 << 20, MIG: 1, MIGProfile: "1g.10gb"})
	lost := held.Clone()
	lost.GPUs = []resource.GPUGrant{{Index: 2, UUID: "GPU-gone", Milli: 1000}} // numbered behind those that are there
	lost.MIG = append(lost.MIG, resource.MIGGrant{GPU: 2, Instance: 0, UUID: "MIG-gone", Profile: "1g.10gb"})
	lost.Memory[0].Bytes = 300 << 30 // more than the node has now
	members := []grant.Member{{Assignment: lost}}
	n.confirm("tx", members, nil, false, log)
	n.confirm("tx", members, nil, false, log) // the same again changes nothing
	want := resource.Vector{
		resource.CPU: full[resource.CPU] - 16_000, resource.GPU: full[resource.GPU], "hugepages-2Mi": full["hugepages-2Mi"] - 1<<30,
		"nvidia.com/mig-1g.10gb": 1, "nvidia.com/mig-2g.20gb": 1, "nvidia.com/mig-3g.40gb": 1,
	}
	if diff := cmp.Diff(want, n.view.Host.FreeVector(n.view.Free)); diff != "" {
		t.Errorf("free while it is held (-want +got):\n%s", diff)
	}
	n.drop("tx")
	if diff := cmp.Diff(full, n.view.Host.FreeVector(n.view.Free)); diff != "" {
		t.Errorf("free after it has ended (-want +got):\n%s", diff)
	}
}
