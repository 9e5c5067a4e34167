package fake_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/devices/fake/fakehost"
	"github.com/musterd/muster/resource"
)

func lookup(t testing.TB, name string) fake.Profile {
	t.Helper()
	p, err := fake.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// matrix draws links as `nvidia-smi topo -m` does.
func matrix(inv *devices.Inventory) string {
	var out strings.Builder
	for _, row := range inv.Links {
		for i, link := range row {
			if i > 0 {
				out.WriteByte(' ')
			}
			out.WriteString(link.String())
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func TestBuiltInProfilesAreTheMachinesTheyName(t *testing.T) {
	type facts struct {
		Sockets, Cores, Threads, Nodes int
		Memory                         resource.Bytes
		Model                          string
		GPUNodes                       []int
	}
	const tebibyte = 1 << 40
	want := map[string]facts{
		"dgx-a100":  {2, 128, 256, 8, 2 * tebibyte, "NVIDIA A100-SXM4-80GB", []int{3, 3, 1, 1, 7, 7, 5, 5}},
		"dgx-h100":  {2, 112, 224, 2, 2 * tebibyte, "NVIDIA H100 80GB HBM3", []int{0, 0, 0, 0, 1, 1, 1, 1}},
		"pcie-8x2":  {2, 64, 128, 2, tebibyte, "NVIDIA L40S", []int{0, 0, 0, 0, 1, 1, 1, 1}},
		"gpu2":      {1, 32, 64, 1, tebibyte / 4, "NVIDIA L40S", []int{0, 0}},
		"mig-a100":  {1, 32, 64, 1, tebibyte / 4, "NVIDIA A100 80GB PCIe", []int{0, 0, 0, 0}},
		"asym-3131": {2, 112, 224, 4, 2 * tebibyte, "NVIDIA H100 80GB HBM3", []int{0, 0, 0, 1, 2, 2, 2, 3}},
	}
	got := map[string]facts{}
	for _, name := range fake.Names() {
		p := lookup(t, name)
		topology, inv := p.Topology(), p.Inventory("n1")
		if err := topology.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := inv.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if p.Machine.Name != name {
			t.Errorf("%s calls itself %s", name, p.Machine.Name)
		}
		f := facts{
			topology.Sockets(), topology.Cores(), topology.Threads(), len(topology.Nodes), topology.Memory(), inv.Devices[0].Model, nil,
		}
		for _, d := range inv.Devices {
			f.GPUNodes = append(f.GPUNodes, d.NUMANode)
		}
		got[name] = f
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
}

func TestLinksFollowThePaths(t *testing.T) {
	for name, want := range map[string]string{
		"gpu2": "X PHB\nPHB X\n",
		"pcie-8x2": `
X PIX NODE NODE SYS SYS SYS SYS
PIX X NODE NODE SYS SYS SYS SYS
NODE NODE X PIX SYS SYS SYS SYS
NODE NODE PIX X SYS SYS SYS SYS
SYS SYS SYS SYS X PIX NODE NODE
SYS SYS SYS SYS PIX X NODE NODE
SYS SYS SYS SYS NODE NODE X PIX
SYS SYS SYS SYS NODE NODE PIX X
`,
		"mig-a100": "X NODE NODE NODE\nNODE X NODE NODE\nNODE NODE X NODE\nNODE NODE NODE X\n",
	} {
		if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), matrix(lookup(t, name).Inventory("n1"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, want := range map[string]int{"dgx-a100": 12, "dgx-h100": 18, "asym-3131": 18} {
		inv := lookup(t, name).Inventory("n1")
		for i := range inv.Devices {
			for j := range i {
				if got := inv.Link(i, j); got.NVLinks() != want {
					t.Errorf("%s: link %d-%d is %s, want NV%d", name, i, j, got, want)
				}
			}
		}
	}
}

func TestThreadsOfTheDGXAreNumberedAsOnTheRealOne(t *testing.T) {
	topology := lookup(t, "dgx-a100").Topology()
	// As nvidia-smi prints them: https://github.com/NVIDIA/nccl/issues/1505.
	for node, want := range map[int]string{3: "48-63,176-191", 1: "16-31,144-159", 7: "112-127,240-255"} {
		if got := topology.Nodes[node].CPUs.String(); got != want {
			t.Errorf("node %d has cpus %s, want %s", node, got, want)
		}
	}
	cpu, ok := topology.CPU(177)
	if !ok || cpu.Siblings.String() != "49,177" || cpu.Socket != 0 || cpu.Core != 49 || cpu.L3 != 12 || cpu.NUMA != 3 {
		t.Errorf("cpu 177 is %+v, want the second thread of core 49 in L3 group 12 on node 3", cpu)
	}
}

func TestUUIDsAreStableDistinctAndWellFormed(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"mig-a100", "dgx-a100"} {
		p := lookup(t, name)
		for _, node := range []string{name + "-1", name + "-2", name + "-11"} {
			inv := p.Inventory(node)
			if diff := cmp.Diff(inv, p.Inventory(node)); diff != "" {
				t.Fatalf("two inventories of %s differ:\n%s", node, diff)
			}
			for _, d := range inv.Devices {
				uuids := []string{d.UUID}
				for _, m := range d.MIG.Instances {
					uuids = append(uuids, m.UUID)
				}
				for _, uuid := range uuids {
					if other, dup := seen[uuid]; dup {
						t.Errorf("%s and %s share %s", node, other, uuid)
					}
					seen[uuid] = node
					if len(uuid) != 40 || strings.Count(uuid, "-") != 5 {
						t.Errorf("%s: %q is not a prefix and 36 characters", node, uuid)
					}
				}
			}
		}
	}
}

func TestLookupOfAnUnknownNameListsTheKnownOnes(t *testing.T) {
	_, err := fake.Lookup("dgx-9000")
	if err == nil {
		t.Fatal("profile dgx-9000 was found")
	}
	for _, want := range append(fake.Names(), `"dgx-9000"`) {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not hold %s", err, want)
		}
	}
}

func FuzzParseProfile(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(small))
	f.Add([]byte(strings.Replace(small, `"numaNode": 0`, `"numaNode": -1`, 1)))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := fake.ParseProfile(text)
		if err != nil {
			return
		}
		if err := p.Topology().Validate(); err != nil {
			t.Error(err)
		}
		if err := p.Inventory("n1").Validate(); err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(string(fakehost.NVMLScript(p, "n1"))) {
			if len(line) > 256 {
				t.Errorf("script line of %d bytes: %q", len(line), line)
			}
		}
	})
}
