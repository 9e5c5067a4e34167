package handoff_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/agent/handoff"
	"github.com/musterd/muster/resource"
)

func twoGPUs() resource.Assignment {
	return resource.Assignment{
		CPUs:   []resource.CPUGrant{{ID: 0, Milli: 1000}, {ID: 1, Milli: 1000}, {ID: 8, Milli: 500}},
		Memory: []resource.MemoryGrant{{Node: 0, Bytes: 1 << 30}, {Node: 1, Bytes: 1 << 20}},
		GPUs:   []resource.GPUGrant{{Index: 0, UUID: "GPU-a", Milli: 1000}, {Index: 3, UUID: "GPU-b", Milli: 1000}},
	}
}

func TestEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		assignment resource.Assignment
		want       map[string]string
	}{
		"whole GPUs, CPUs and memory of two nodes": {twoGPUs(), map[string]string{
			"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b", "MUSTER_CPUS": "0-1,8", "MUSTER_NUMA_NODES": "0-1",
			"MUSTER_MEMORY_BYTES": "1074790400", "MUSTER_CDI_DEVICES": "nvidia.com/gpu=GPU-a,nvidia.com/gpu=GPU-b",
		}},
		"a share of one GPU": {resource.Assignment{GPUs: []resource.GPUGrant{{Index: 1, UUID: "GPU-c", Milli: 250}}}, map[string]string{
			"CUDA_VISIBLE_DEVICES": "GPU-c", "MUSTER_CPUS": "", "MUSTER_NUMA_NODES": "", "MUSTER_MEMORY_BYTES": "0",
			"MUSTER_CDI_DEVICES": "nvidia.com/gpu=GPU-c", "MUSTER_GPU_MILLI": "250",
		}},
		"no GPU hides all of them": {resource.Assignment{CPUs: []resource.CPUGrant{{ID: 4, Milli: 1000}}}, map[string]string{
			"CUDA_VISIBLE_DEVICES": "", "MUSTER_CPUS": "4", "MUSTER_NUMA_NODES": "", "MUSTER_MEMORY_BYTES": "0", "MUSTER_CDI_DEVICES": "",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, handoff.Environment(c.assignment)); d != "" {
				t.Error(d)
			}
		})
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestFilesFollowTheGrants(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assignments")
	d, err := handoff.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	one := handoff.Grant{Tx: "u.1.0.ab", Unit: "u", Node: "n", Members: []handoff.Member{{Index: 0, Assignment: twoGPUs()}}}
	two := handoff.Grant{Tx: "../v/2", Unit: "v", Node: "n", Members: []handoff.Member{{Index: 0, Assignment: twoGPUs()}, {Index: 3, Assignment: twoGPUs()}}}
	for _, g := range []handoff.Grant{one, two, one} {
		if err := d.Write(g); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"..%2Fv%2F2.0.env", "..%2Fv%2F2.3.env", "..%2Fv%2F2.json", "u.1.0.ab.env", "u.1.0.ab.json"}
	if diff := cmp.Diff(want, names(t, path)); diff != "" {
		t.Error(diff)
	}
	env, err := os.ReadFile(d.EnvPath(one, 0))
	if err != nil || !strings.Contains(string(env), "CUDA_VISIBLE_DEVICES=GPU-a,GPU-b\n") {
		t.Errorf("environment file %q, %v", env, err)
	}
	for range 2 { // removing twice is no error
		if err := d.Remove(two); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want[3:], names(t, path)); diff != "" {
		t.Error(diff)
	}
}

func TestSyncLeavesOnlyTheFilesOfLiveGrants(t *testing.T) {
	path := t.TempDir()
	d, err := handoff.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	old := handoff.Grant{Tx: "old", Members: []handoff.Member{{Assignment: twoGPUs()}}}
	live := handoff.Grant{Tx: "live", Members: []handoff.Member{{Assignment: twoGPUs()}}}
	if err := d.Write(old); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"live.json.tmp", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(path, f), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(d.Write(live), d.Prune([]handoff.Grant{live})); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"live.env", "live.json", "notes.txt"}, names(t, path)); diff != "" {
		t.Error(diff)
	}
}

func TestAMissingFolderIsNamed(t *testing.T) {
	path := t.TempDir()
	d, err := handoff.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := d.Write(handoff.Grant{Tx: "x"}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want the folder named", err)
	}
}
