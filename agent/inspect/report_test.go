package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/numa/sysfs"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

const gib = resource.Bytes(1) << 30

// gpuHost has two sockets, each a node of two cores with two threads, and four
// GPUs: two pairs linked by NVLink, one card in MIG mode.
func gpuHost() Report {
	t := &numa.Topology{
		Nodes: []numa.Node{
			{ID: 0, CPUs: bitset.Of(0, 1, 4, 5), Memory: 256 * gib, Hugepages: map[int]int64{2048: 512, 1048576: 0}},
			{ID: 1, CPUs: bitset.Of(2, 3, 6, 7), Memory: 256*gib + 300<<20},
		},
		Distances: [][]int{{10, 21}, {21, 10}},
	}
	for id := range 8 {
		socket := id % 4 / 2
		t.CPUs = append(t.CPUs, numa.CPU{
			ID: id, Socket: socket, Core: id % 2, L3: socket, NUMA: socket, Online: id != 7, Isolated: id == 3,
			Siblings: bitset.Of(id%4, id%4+4),
		})
	}
	t.CPUs[3].Siblings, t.CPUs[7].Siblings = bitset.Of(3), bitset.Of(7)
	t.CPUs[7].Socket, t.CPUs[7].Core, t.CPUs[7].L3 = numa.Unknown, numa.Unknown, numa.Unknown
	const model = "NVIDIA A100-SXM4-80GB"
	inv := &devices.Inventory{
		Driver: "550.54.15",
		Devices: []devices.Device{
			{Index: 0, UUID: "GPU-00000000-0000-0000-0000-000000000000", Model: model, Memory: 80 * gib, PCIBusID: "0000:07:00.0", NUMANode: 0},
			{Index: 1, UUID: "GPU-11111111-1111-1111-1111-111111111111", Model: model, Memory: 80 * gib, PCIBusID: "0000:0f:00.0", NUMANode: 0, Health: devices.Suspect},
			{Index: 2, UUID: "GPU-22222222-2222-2222-2222-222222222222", Model: model, Memory: 80 * gib, PCIBusID: "0000:47:00.0", NUMANode: 1, Health: devices.Tainted},
			{
				Index: 3, UUID: "GPU-33333333-3333-3333-3333-333333333333", Model: model, Memory: 80 * gib, PCIBusID: "0000:4e:00.0", NUMANode: 1,
				MIG: devices.MIG{Enabled: true, Instances: []devices.MIGInstance{
					{UUID: "MIG-44444444-4444-4444-4444-444444444444", Profile: "3g.40gb", Memory: 40 * gib},
					{UUID: "MIG-55555555-5555-5555-5555-555555555555", Profile: "1g.10gb", Memory: 10 * gib},
				}},
			},
		},
	}
	nv, sys, none := devices.NVLink(12), devices.LinkSYS, devices.LinkNone
	inv.Links = [][]devices.Link{
		{none, nv, sys, sys},
		{nv, none, sys, sys},
		{sys, sys, none, devices.LinkPXB},
		{sys, sys, devices.LinkPXB, none},
	}
	host := sysfs.Host{Hostname: "node-7", BootID: "0d8f2c6e-6a0b-4f0e-9d5b-6b1c7c3f2a10", Kernel: "6.1.0-28-amd64"}
	return New(host, t, inv, []string{"sys/devices/system/node/has_cpu: disagrees with the files of nodes 1, which are believed"})
}

// plainHost has no NUMA, no GPU and no driver.
func plainHost() Report {
	t := &numa.Topology{Nodes: []numa.Node{{ID: 0, CPUs: bitset.Of(0, 1), Memory: 4657991680}}}
	for id := range 2 {
		t.CPUs = append(t.CPUs, numa.CPU{ID: id, Socket: 0, Core: id, L3: numa.Unknown, NUMA: 0, Online: true, Siblings: bitset.Of(id)})
	}
	return New(sysfs.Host{Hostname: "small", Kernel: "6.1.0-28-amd64"}, t, nil, nil)
}

// oddHost has a memory-only node, a CPU without node, a GPU whose node is
// unknown and one whose relation to it is unknown too.
func oddHost() Report {
	t := &numa.Topology{
		Nodes: []numa.Node{
			{ID: 0, CPUs: bitset.Of(0, 1), Memory: 128 * gib},
			{ID: 250, Memory: 15 * gib, MemoryOnly: true},
		},
	}
	for id := range 3 {
		t.CPUs = append(t.CPUs, numa.CPU{ID: id, Socket: id % 2, Core: 0, L3: numa.Unknown, NUMA: 0, Online: true, Siblings: bitset.Of(id)})
	}
	t.CPUs[2].NUMA = numa.Unknown
	inv := &devices.Inventory{
		Devices: []devices.Device{
			{Index: 0, UUID: "GPU-a", Model: "V100\x1b[31m", Memory: 16 * gib, PCIBusID: "0004:04:00.0", NUMANode: 250},
			{Index: 1, UUID: "GPU-b", Model: "V100", Memory: 16 * gib, PCIBusID: "0004:05:00.0", NUMANode: devices.UnknownNode, Health: devices.Probation},
		},
		Links: [][]devices.Link{{devices.LinkNone, devices.LinkNone}, {devices.LinkNone, devices.LinkNone}},
	}
	return New(sysfs.Host{}, t, inv, nil)
}

func TestRenderings(t *testing.T) {
	for name, report := range map[string]Report{"gpu-host": gpuHost(), "plain-host": plainHost(), "odd-host": oddHost()} {
		for suffix, render := range map[string]func(io.Writer) error{".json": report.JSON, ".txt": report.Text} {
			t.Run(name+suffix, func(t *testing.T) {
				var got bytes.Buffer
				if err := render(&got); err != nil {
					t.Fatal(err)
				}
				golden := filepath.Join("testdata", name+suffix)
				if *update {
					if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got.String()); diff != "" {
					t.Errorf("%s (-want +got):\n%s\nrewrite it with: go test ./agent/inspect -update", golden, diff)
				}
			})
		}
	}
}

// The field names are a contract with scripts.
func TestJSONHasExactlyTheFieldsOfItsContract(t *testing.T) {
	var text bytes.Buffer
	if err := gpuHost().JSON(&text); err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal(text.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	fields("", document, got)
	want := map[string]bool{}
	for _, path := range strings.Fields(`
		.host .host.hostname .host.bootID .host.kernel
		.numa .numa.sockets .numa.cores .numa.threads .numa.distances
		.numa.nodes .numa.nodes.id .numa.nodes.cpus .numa.nodes.memoryBytes .numa.nodes.memoryOnly
		.numa.nodes.hugepages .numa.nodes.hugepages.2048 .numa.nodes.hugepages.1048576
		.numa.cpus .numa.cpus.id .numa.cpus.socket .numa.cpus.core .numa.cpus.l3 .numa.cpus.numa .numa.cpus.online .numa.cpus.siblings
		.devices .devices.index .devices.uuid .devices.model .devices.memoryBytes .devices.pciBusID .devices.numaNode .devices.health
		.devices.mig .devices.mig.enabled .devices.mig.instances
		.devices.mig.instances.uuid .devices.mig.instances.profile .devices.mig.instances.memoryBytes
		.links .links.a .links.b .links.class .warnings`) {
		want[path] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func fields(at string, value any, found map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for name, below := range value {
			found[at+"."+name] = true
			fields(at+"."+name, below, found)
		}
	case []any:
		for _, below := range value {
			fields(at, below, found)
		}
	}
}

func TestJSONHasNoNullButUnknownL3(t *testing.T) {
	var text bytes.Buffer
	if err := plainHost().JSON(&text); err != nil {
		t.Fatal(err)
	}
	if rest := strings.ReplaceAll(text.String(), `"l3": null`, ""); strings.Contains(rest, "null") {
		t.Errorf("null in\n%s", text.String())
	}
}

func TestSaysPlainlyWhyThereAreNoGPUs(t *testing.T) {
	topology := &numa.Topology{Nodes: []numa.Node{{ID: 0}}}
	for want, inv := range map[string]*devices.Inventory{
		"no GPUs: no NVIDIA driver was found; this is a CPU-only host":  {},
		"no GPUs: the NVIDIA driver 550.54.15 is loaded and shows none": {Driver: "550.54.15"},
	} {
		var text strings.Builder
		if err := New(sysfs.Host{}, topology, inv, nil).Text(&text); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

func TestALongListOfCoresIsWrapped(t *testing.T) {
	var words []string
	for range 40 {
		words = append(words, "[0,48]")
	}
	lines := wrap("L3 0", words)
	for i, line := range lines {
		if len(line) > 80 || i > 0 && !strings.HasPrefix(line, "      [") {
			t.Errorf("line %d: %q", i, line)
		}
	}
	if n := strings.Count(strings.Join(lines, ""), "[0,48]"); n != 40 {
		t.Errorf("%d cores are shown, want 40", n)
	}
}

func TestSize(t *testing.T) {
	for bytes, want := range map[resource.Bytes]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1 << 20: "1.0 MiB", 1536 << 10: "1.5 MiB", 80 * gib: "80.0 GiB",
		1<<40 - 1: "1023.9 GiB", 1 << 50: "1.0 PiB",
	} {
		if got := size(bytes); got != want {
			t.Errorf("size(%d) = %q, want %q", bytes, got, want)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestRenderingsReturnTheWritersError(t *testing.T) {
	for name, render := range map[string]func(io.Writer) error{"JSON": plainHost().JSON, "Text": plainHost().Text} {
		if err := render(fullDisk{}); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
