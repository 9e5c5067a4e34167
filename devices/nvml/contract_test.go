//go:build cgo && linux

package nvml_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
	nvmltest "github.com/musterd/muster/test/nvml"
)

// bridged has cards that are wired to each other in pairs, unevenly placed
// below switches, without NUMA nodes, in a large domain.
const bridged = `{
  "name": "bridged", "driver": "418.226.00", "threadsPerCore": 1, "coresPerL3": 0,
  "nodes": [{"socket": 0, "cores": 4, "memory": "8Gi"}],
  "gpus": [
    {"model": "V", "memory": "32510Mi", "pciBusID": "0000:1a:00.0", "numaNode": -1, "path": "rc0/sw0/sw1"},
    {"model": "V", "memory": "32510Mi", "pciBusID": "0000:1b:00.0", "numaNode": -1, "path": "rc0/sw0/sw2"},
    {"model": "V", "memory": "32510Mi", "pciBusID": "0000:1c:00.0", "numaNode": -1, "path": "rc0/sw0/sw2"},
    {"model": "V", "memory": "32510Mi", "pciBusID": "10000:01:00.0", "numaNode": -1, "path": "rc0"}
  ],
  "nvlinks": {"pairs": [{"a": 0, "b": 1, "links": 2}, {"a": 1, "b": 3, "links": 1}, {"a": 0, "b": 3, "links": 3}]}
}`

// profiles are the JSON texts of all machines under test.
func profiles(t *testing.T) map[string][]byte {
	t.Helper()
	texts := map[string][]byte{"bridged": []byte(bridged)}
	for _, name := range fake.Names() {
		text, err := os.ReadFile(filepath.Join("..", "fake", "profiles", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = text
	}
	return texts
}

func parse(t *testing.T, text []byte) fake.Profile {
	t.Helper()
	p, err := fake.ParseProfile(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDiscoveryFindsTheProfile(t *testing.T) {
	libDir := nvmltest.Build(t)
	for name, text := range profiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := parse(t, text)
			c := startChild(t, libDir, nvmltest.WriteScript(t, t.TempDir(), p, "n1"), "plain")
			c.must("open")
			got := c.must("discover")
			if diff := cmp.Diff(p.Inventory("n1"), got.Inventory); diff != "" {
				t.Errorf("inventory (-profile +discovered):\n%s", diff)
			}
			if len(got.Warnings) > 0 {
				t.Errorf("warnings: %q", got.Warnings)
			}
		})
	}
}

// asOldDriverKnows is the profile as a driver without NVSwitches, MIG and NUMA
// affinity sees it.
func asOldDriverKnows(t *testing.T, text []byte) *devices.Inventory {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if wires, ok := m["nvlinks"].(map[string]any); ok {
		delete(wires, "switched")
	}
	for _, gpu := range m["gpus"].([]any) {
		delete(gpu.(map[string]any), "mig")
	}
	older, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	inv := parse(t, older).Inventory("n1")
	for i := range inv.Devices {
		inv.Devices[i].NUMANode = devices.UnknownNode
	}
	return inv
}

func TestDiscoveryThroughAnOldDriverFindsWhatItKnows(t *testing.T) {
	libDir := nvmltest.BuildOld(t)
	for name, text := range profiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := parse(t, text)
			c := startChild(t, libDir, nvmltest.WriteScript(t, t.TempDir(), p, "n1"), "plain")
			c.must("open")
			got := c.must("discover")
			if diff := cmp.Diff(asOldDriverKnows(t, text), got.Inventory); diff != "" {
				t.Errorf("inventory (-known +discovered):\n%s", diff)
			}
			wantWarnings := 0
			if p.Inventory("n1").Link(0, 1).NVLinks() > 2 {
				wantWarnings = len(got.Inventory.Devices) // each has links to something unknown
			}
			if len(got.Warnings) != wantWarnings {
				t.Errorf("%d warnings %q, want %d", len(got.Warnings), got.Warnings, wantWarnings)
			}
		})
	}
}
