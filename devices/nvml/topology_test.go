//go:build cgo && linux

package nvml_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/devices"
	nvmltest "github.com/musterd/muster/test/nvml"
)

// sharedData is a file of the reference data beside the repository. The test is
// skipped where there is none.
func sharedData(t *testing.T, path ...string) []byte {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(root) == root {
			t.Fatal("no folder above holds go.mod")
		}
		root = filepath.Dir(root)
	}
	file := filepath.Join(append([]string{root, "..", "shared", "data"}, path...)...)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Skipf("no reference material: %v", err)
	}
	return text
}

// topology is what `nvidia-smi topo -m` prints of the GPUs.
type topology struct {
	links [][]devices.Link
	nodes []int
}

func parseTopology(t *testing.T, text string) topology {
	t.Helper()
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	columns := strings.Split(lines[0], "\t")
	affinity := -1
	for i, name := range columns {
		if name == "NUMA Affinity" {
			affinity = i
		}
	}
	var top topology
	for _, line := range lines[1:] {
		cells := strings.Split(line, "\t")
		if !strings.HasPrefix(cells[0], "GPU") {
			continue
		}
		var row []devices.Link
		for i, name := range columns {
			if !strings.HasPrefix(name, "GPU") || strings.Contains(name, " ") {
				continue
			}
			link, err := devices.ParseLink(strings.TrimSpace(cells[i]))
			if err != nil {
				t.Fatalf("%s: %v", cells[0], err)
			}
			row = append(row, link)
		}
		node, err := strconv.Atoi(cells[affinity])
		if err != nil {
			t.Fatalf("%s: %v", cells[0], err)
		}
		top.links, top.nodes = append(top.links, row), append(top.nodes, node)
	}
	return top
}

// profile is a machine with this topology. Its NVLinks go to switches, since
// each pair has as many.
func (top topology) profile(t *testing.T) []byte {
	t.Helper()
	type object = map[string]any
	m := object{
		"name": "reference", "driver": "570.211.01", "threadsPerCore": 2, "coresPerL3": 0,
		"nodes":   []object{{"socket": 0, "cores": 64, "memory": "1Ti"}, {"socket": 1, "cores": 64, "memory": "1Ti"}},
		"nvlinks": object{"switched": top.links[0][1].NVLinks()},
	}
	var gpus []object
	for i, node := range top.nodes {
		gpus = append(gpus, object{
			"model": "NVIDIA H100 80GB HBM3", "memory": "81559Mi", "numaNode": node,
			"pciBusID": fmt.Sprintf("0000:%02x:00.0", 16*(i+1)), "path": fmt.Sprintf("rc%d/sw0", i),
		})
	}
	m["gpus"] = gpus
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// names are the links as nvidia-smi prints them.
func names(links [][]devices.Link) [][]string {
	rows := make([][]string, len(links))
	for i, row := range links {
		for _, l := range row {
			rows[i] = append(rows[i], l.String())
		}
	}
	return rows
}

func TestDiscoveryFindsTheTopologyThatARealHostPrints(t *testing.T) {
	want := parseTopology(t, string(sharedData(t, "nvml-topo", "hgx-8gpu-8nic-2numa.txt")))
	if len(want.nodes) != 8 {
		t.Fatalf("%d GPUs in the reference", len(want.nodes))
	}
	script := nvmltest.WriteScript(t, t.TempDir(), parse(t, want.profile(t)), "n1")
	c := startChild(t, nvmltest.Build(t), script, "plain")
	c.must("open")
	inv := c.must("discover").Inventory
	if diff := cmp.Diff(names(want.links), names(inv.Links)); diff != "" {
		t.Errorf("links (-nvidia-smi +discovered):\n%s", diff)
	}
	var nodes []int
	for _, d := range inv.Devices {
		nodes = append(nodes, d.NUMANode)
	}
	if diff := cmp.Diff(want.nodes, nodes); diff != "" {
		t.Errorf("nodes (-nvidia-smi +discovered):\n%s", diff)
	}
}

// TestDiscoveryFindsAPassedThroughH100: a virtual machine with one H100, as
// driver 580.159.04 described it on real hardware. It has no NVLink calls, and
// its sysfs knows no NUMA node of the card (-1); the driver knows one. Memory
// pages are remapped by rows, and no retired page is known.
func TestDiscoveryFindsAPassedThroughH100(t *testing.T) {
	script := filepath.Join(t.TempDir(), "host.script")
	nvmltest.ReplaceScript(t, script, []byte(`driver 580.159.04
gpu 0000:00:06.0
uuid GPU-6b7cf75e-64f8-6dfc-898b-000000000001
name NVIDIA H100 80GB HBM3
memory 85520809984
numa 0
mig off
ecc 0 0
rows 0 0
`))
	child := startChild(t, nvmltest.Build(t), script, "plain")
	child.must("open")
	got := child.must("discover")
	want := &devices.Inventory{
		Driver: "580.159.04",
		Devices: []devices.Device{{
			UUID: "GPU-6b7cf75e-64f8-6dfc-898b-000000000001", Model: "NVIDIA H100 80GB HBM3", Memory: 85520809984, PCIBusID: "0000:00:06.0",
		}},
		Links: [][]devices.Link{{devices.LinkNone}},
	}
	if diff := cmp.Diff(want, got.Inventory); diff != "" || len(got.Warnings) > 0 {
		t.Errorf("warnings %v; inventory (-want +got):\n%s", got.Warnings, diff)
	}
}
