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
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/numa/sysfs"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestRenderings(t *testing.T) {
	for name, report := range map[string]Report{
		"gpu-host": gpuHost(), "plain-host": plainHost(), "odd-host": oddHost(),
		"dgx": dgx(), "hybrid-laptop": hybridLaptop(), "power9": power9(), "wide-host": wideHost(),
	} {
		for suffix, render := range map[string]func(io.Writer) error{".json": report.JSON, ".txt": report.Text} {
			if suffix == ".json" && len(report.NUMA.CPUs) > 24 {
				continue // as long as it is monotonous
			}
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
		.numa.cpus .numa.cpus.id .numa.cpus.socket .numa.cpus.core .numa.cpus.l3 .numa.cpus.numa .numa.cpus.online .numa.cpus.siblings .numa.cpus.isolated
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

func TestAHostWhoseDriverHangsSaysWhichCallAndCard(t *testing.T) {
	host := gpuHost().With([]devices.Unknown{{Position: 4, Why: "nvmlDeviceGetName of GPU 4 at 0000:87:00.0 has not returned for 5s"}},
		"nvmlDeviceGetName of GPU 4 at 0000:87:00.0 has not returned for 27s")
	var text, document bytes.Buffer
	if err := errors.Join(host.Text(&text), host.JSON(&document)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"the NVIDIA driver hangs: nvmlDeviceGetName of GPU 4 at 0000:87:00.0 has not returned for 27s", "4 GPUs, and 1 unknown, NVIDIA driver 550.54.15",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	for _, want := range []string{`"position": 4`, `"hung": "nvmlDeviceGetName of GPU 4`} {
		if !strings.Contains(document.String(), want) {
			t.Errorf("no %q in\n%s", want, document.String())
		}
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

// A host whose processor is not hybrid has none, and CPUs that are handed out
// are not marked.
func TestKindAndIsolatedAreThereOnlyWhereTheySaySomething(t *testing.T) {
	for name, test := range map[string]struct {
		report         Report
		kind, isolated int
	}{"gpu-host": {gpuHost(), 0, 1}, "hybrid-laptop": {hybridLaptop(), 21, 0}, "plain-host": {plainHost(), 0, 0}} {
		var text bytes.Buffer
		if err := test.report.JSON(&text); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(text.String(), `"kind"`); got != test.kind {
			t.Errorf("%s: %d kinds, want %d", name, got, test.kind)
		}
		if got := strings.Count(text.String(), `"isolated": true`); got != test.isolated || strings.Contains(text.String(), `"isolated": false`) {
			t.Errorf("%s: %d isolated CPUs, want %d and no word of others", name, got, test.isolated)
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
	lines := wrap("L3 0", words, 80)
	for i, line := range lines {
		if len(line) > 80 || i > 0 && !strings.HasPrefix(line, "     [") {
			t.Errorf("line %d: %q", i, line)
		}
	}
	if n := strings.Count(strings.Join(lines, ""), "[0,48]"); n != 40 {
		t.Errorf("%d cores are shown, want 40", n)
	}
}

func TestAListIsBrokenBetweenItsElements(t *testing.T) {
	var set bitset.Set
	for i := range 100 {
		set.Add(3 * i)
	}
	lines := wrap("cpus", elements(set), 40)
	var joined strings.Builder
	for i, line := range lines {
		if len(line) > 40 || i > 0 && !strings.HasPrefix(line, "     ") {
			t.Errorf("line %d: %q", i, line)
		}
		joined.WriteString(strings.TrimSpace(strings.TrimPrefix(line, "cpus")))
	}
	if joined.String() != set.String() {
		t.Errorf("the list reads %s, want %s", joined.String(), set)
	}
}

// No host, however odd, leaves the terminal or sends it commands.
func TestThePictureStaysInTheTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		report := anyReport(t)
		var text strings.Builder
		if err := report.Text(&text); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > columns || strings.TrimRight(line, " ") != line {
				t.Fatalf("%d columns: %q", n, line)
			}
			if strings.ContainsFunc(line, func(c rune) bool { return !unicode.IsPrint(c) }) {
				t.Fatalf("a character that a terminal could obey: %q", line)
			}
		}
	})
}

func anyReport(t *rapid.T) Report {
	word := rapid.OneOf(rapid.StringN(0, 150, -1), rapid.Just("\x1b[2J"), rapid.Just("NVIDIA"))
	nodes := rapid.IntRange(1, 40).Draw(t, "nodes")
	topology := &numa.Topology{}
	for id := range nodes {
		topology.Nodes = append(topology.Nodes, numa.Node{
			ID: id, Memory: resource.Bytes(rapid.Int64Range(0, 1<<50).Draw(t, "memory")), MemoryOnly: rapid.Bool().Draw(t, "memory only"),
			Hugepages: rapid.MapOf(rapid.IntRange(1, 1<<30), rapid.Int64Range(0, 1<<40)).Draw(t, "pages"),
		})
	}
	for id := range rapid.IntRange(0, 300).Draw(t, "cpus") {
		c := numa.CPU{
			ID: id, Socket: rapid.IntRange(-1, 1<<31-1).Draw(t, "socket"), L3: rapid.IntRange(-1, 9).Draw(t, "l3"),
			NUMA: rapid.IntRange(-1, nodes-1).Draw(t, "node"), Kind: numa.CoreKind(rapid.IntRange(0, 3).Draw(t, "kind")),
			Online: rapid.Bool().Draw(t, "online"), Isolated: rapid.Bool().Draw(t, "isolated"), Siblings: bitset.Of(id),
		}
		if c.NUMA != numa.Unknown {
			topology.Nodes[c.NUMA].CPUs.Add(id)
		}
		topology.CPUs = append(topology.CPUs, c)
	}
	if rapid.Bool().Draw(t, "distances") {
		for range nodes {
			topology.Distances = append(topology.Distances, make([]int, nodes))
		}
	}
	inv := &devices.Inventory{Driver: word.Draw(t, "driver")}
	gpus := rapid.IntRange(0, 20).Draw(t, "gpus")
	links := []devices.Link{devices.LinkNone, devices.LinkSYS, devices.LinkPIX, devices.NVLink(4), devices.NVLink(32)}
	for i := range gpus {
		inv.Devices = append(inv.Devices, devices.Device{
			Index: i, UUID: word.Draw(t, "uuid"), Model: word.Draw(t, "model"), PCIBusID: word.Draw(t, "bus"), NUMANode: rapid.IntRange(-1, nodes+1).Draw(t, "gpu node"),
			MIG: devices.MIG{Enabled: true, Instances: []devices.MIGInstance{{UUID: word.Draw(t, "instance"), Profile: word.Draw(t, "profile")}}},
		})
		inv.Links = append(inv.Links, make([]devices.Link, gpus))
		for j := range i {
			inv.Links[i][j] = rapid.SampledFrom(links).Draw(t, "link")
			inv.Links[j][i] = inv.Links[i][j]
		}
	}
	return New(sysfs.Host{Hostname: word.Draw(t, "host")}, topology, inv, rapid.SliceOf(word).Draw(t, "warnings"))
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
