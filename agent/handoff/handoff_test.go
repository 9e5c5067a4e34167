package handoff_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/handoff"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

func twoGPUs() resource.Assignment {
	return resource.Assignment{
		CPUs:   []resource.CPUGrant{{ID: 0, Milli: 1000}, {ID: 1, Milli: 1000}, {ID: 8, Milli: 500}},
		Memory: []resource.MemoryGrant{{Node: 0, Bytes: 1 << 30}, {Node: 1, Bytes: 1 << 20}},
		GPUs:   []resource.GPUGrant{{Index: 0, UUID: "GPU-a", Milli: 1000}, {Index: 3, UUID: "GPU-b", Milli: 1000}},
	}
}

// partitioned is two whole cores of two threads, huge pages on two nodes and
// two MIG instances.
func partitioned() resource.Assignment {
	return resource.Assignment{
		CPUs:      []resource.CPUGrant{{ID: 4, Milli: 1000}, {ID: 5, Milli: 1000}, {ID: 36, Milli: 1000}, {ID: 37, Milli: 1000}},
		Memory:    []resource.MemoryGrant{{Node: 0, Bytes: 1 << 30}},
		Hugepages: []resource.HugepageGrant{{Node: 0, Size: 2 << 20, Bytes: 4 << 20}, {Node: 1, Size: 2 << 20, Bytes: 2 << 20}},
		MIG:       []resource.MIGGrant{{GPU: 0, Instance: 2, UUID: "MIG-a", Profile: "1g.10gb"}, {GPU: 1, Instance: 0, UUID: "MIG-b", Profile: "1g.10gb"}},
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
		"MIG instances, whole cores and huge pages": {partitioned(), map[string]string{
			"CUDA_VISIBLE_DEVICES": "MIG-a,MIG-b", "MUSTER_CPUS": "4-5,36-37", "MUSTER_NUMA_NODES": "0-1", "MUSTER_MEMORY_BYTES": "1073741824",
			"MUSTER_HUGEPAGES_2Mi": "6291456", "MUSTER_CDI_DEVICES": "nvidia.com/gpu=MIG-a,nvidia.com/gpu=MIG-b",
		}},
		"huge pages of two sizes": {
			resource.Assignment{Hugepages: []resource.HugepageGrant{{Node: 2, Size: 64 << 10, Bytes: 1 << 20}, {Node: 2, Size: 1 << 30, Bytes: 1 << 30}}},
			map[string]string{
				"CUDA_VISIBLE_DEVICES": "", "MUSTER_CPUS": "", "MUSTER_NUMA_NODES": "2", "MUSTER_MEMORY_BYTES": "0", "MUSTER_CDI_DEVICES": "",
				"MUSTER_HUGEPAGES_64Ki": "1048576", "MUSTER_HUGEPAGES_1Gi": "1073741824",
			},
		},
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

// TestTheDocumentedExampleIsWhatIsWritten compares the files with
// docs/assignments.md. Rewrite the golden files with UPDATE_GOLDEN=1.
func TestTheDocumentedExampleIsWhatIsWritten(t *testing.T) {
	d, err := handoff.Open(t.TempDir(), handoff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := handoff.Grant{Tx: "u-3.7.1.00000000000000000000000000000000", Unit: "u-3", Name: "default/alloc/notebook/1", Tenant: "team-a", Node: "gpu-01", Members: []grant.Member{{Assignment: resource.Assignment{
		CPUs:      []resource.CPUGrant{{ID: 4, Milli: 1000}, {ID: 36, Milli: 1000}},
		Memory:    []resource.MemoryGrant{{Node: 0, Bytes: 4 << 30}},
		Hugepages: []resource.HugepageGrant{{Node: 0, Size: 2 << 20, Bytes: 1 << 30}},
		MIG:       []resource.MIGGrant{{GPU: 0, Instance: 2, UUID: "MIG-5c0f1d2e-8a41-5b7c-9d3e-0f6a7b8c9d01", Profile: "1g.10gb"}},
	}}}}
	if err := d.Write(g); err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "assignments.md"))
	if err != nil {
		t.Fatal(err)
	}
	for golden, written := range map[string]string{"mig.json": d.JSONPath(g.Tx), "mig.env": d.EnvPath(g, 0)} {
		got, err := os.ReadFile(written)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", golden)
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got), a change of what readers know needs a new version:\n%s", golden, diff)
		}
		if !strings.Contains(string(document), string(want)) {
			t.Errorf("docs/assignments.md does not show %s", path)
		}
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
	d, err := handoff.Open(path, handoff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	one := handoff.Grant{Tx: "u.1.0.ab", Unit: "u", Node: "n", Members: []grant.Member{{Index: 0, Assignment: twoGPUs()}}}
	two := handoff.Grant{Tx: "../v/2", Unit: "v", Node: "n", Members: []grant.Member{{Index: 0, Assignment: twoGPUs()}, {Index: 3, Assignment: twoGPUs()}}}
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
	d, err := handoff.Open(path, handoff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	old := handoff.Grant{Tx: "old", Members: []grant.Member{{Assignment: twoGPUs()}}}
	live := handoff.Grant{Tx: "live", Members: []grant.Member{{Assignment: twoGPUs()}}}
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
	d, err := handoff.Open(path, handoff.Options{})
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

// failing is the operating system's, but one change fails, half done if it can
// be.
type failing struct{ left int } // changes before that one; negative once it is over

var errChange = errors.New("this change fails")

func (f *failing) fails() bool {
	f.left--
	return f.left == -1
}

func (f *failing) WriteFile(path string, data []byte, mode fs.FileMode) error {
	if f.fails() {
		return errors.Join(errChange, os.WriteFile(path, data[:len(data)/2], mode))
	}
	return os.WriteFile(path, data, mode)
}

func (f *failing) Allocate(string, int64) error { return nil }

func (f *failing) Rename(from, to string) error {
	if f.fails() {
		return errChange
	}
	return os.Rename(from, to)
}

func (f *failing) Remove(path string) error {
	if f.fails() {
		return errChange
	}
	return os.Remove(path)
}

// TestAFailureAtEveryChangeIsToldAndCanBeRepeated: and no file is ever there in
// part.
func TestAFailureAtEveryChangeIsToldAndCanBeRepeated(t *testing.T) {
	old := handoff.Grant{Tx: "old", Members: []grant.Member{{Assignment: twoGPUs()}}}
	live := handoff.Grant{Tx: "live", Members: []grant.Member{{Index: 0, Assignment: twoGPUs()}, {Index: 1, Assignment: twoGPUs()}}}
	act := func(d *handoff.Dir) error {
		return errors.Join(d.Write(old), d.Write(live), d.Remove(old), d.Prune([]handoff.Grant{live}))
	}
	const changes = 12 // five files written and renamed, two removed
	for at := range changes + 1 {
		path := t.TempDir()
		disk := &failing{at}
		d, err := handoff.Open(path, handoff.Options{FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		if err := act(d); errors.Is(err, errChange) != (at < changes) {
			t.Errorf("change %d: %v", at, err)
		}
		for _, name := range names(t, path) {
			data, err := os.ReadFile(filepath.Join(path, name))
			if filepath.Ext(name) == ".json" && (err != nil || !json.Valid(data)) {
				t.Errorf("change %d leaves %s as %q, %v", at, name, data, err)
			}
		}
		disk.left = -2 // nothing fails any more
		if err := act(d); err != nil {
			t.Errorf("change %d, again: %v", at, err)
		}
		if diff := cmp.Diff([]string{"live.0.env", "live.1.env", "live.json"}, names(t, path)); diff != "" {
			t.Errorf("change %d: %s", at, diff)
		}
	}
}

// TestNobodyElseReadsAnAssignment: the files of before are made private as well,
// and a folder that gives its files a group goes on to do so.
func TestNobodyElseReadsAnAssignment(t *testing.T) {
	g := handoff.Grant{Tx: "a", Members: []grant.Member{{Assignment: twoGPUs()}}}
	for name, c := range map[string]struct {
		options              handoff.Options
		before               fs.FileMode // of a folder that is there; 0: none is
		wantFolder, wantFile fs.FileMode
	}{
		"a new folder":                    {handoff.Options{}, 0, 0o750, 0o640},
		"a folder that everybody entered": {handoff.Options{}, 0o755, 0o750, 0o640},
		"a folder with a group":           {handoff.Options{}, 0o777 | fs.ModeSetgid, 0o750 | fs.ModeSetgid, 0o640},
		"for the agent's user alone":      {handoff.Options{Mode: 0o600}, 0o755, 0o700, 0o600},
		"for everybody":                   {handoff.Options{Mode: 0o644}, 0, 0o755, 0o644},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "assignments")
			if c.before != 0 {
				if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, c.before)); err != nil {
					t.Fatal(err)
				}
			}
			everybody, err := handoff.Open(path, handoff.Options{Mode: 0o644})
			if err != nil {
				t.Fatal(err)
			}
			d, openErr := handoff.Open(path, c.options)
			if err := errors.Join(everybody.Write(g), openErr, d.Write(g)); err != nil {
				t.Fatal(err)
			}
			if got := mode(t, path); got != c.wantFolder {
				t.Errorf("the folder is %v, want %v", got, c.wantFolder)
			}
			for _, file := range d.Paths(g) {
				if got := mode(t, file); got != c.wantFile {
					t.Errorf("%s is %v, want %v", file, got, c.wantFile)
				}
			}
		})
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode() & (fs.ModePerm | fs.ModeSetgid)
}

// TestReserveTakesRealRoom: the file system's own count of blocks, and that the
// room is no assignment.
func TestReserveTakesRealRoom(t *testing.T) {
	path := t.TempDir()
	d, err := handoff.Open(path, handoff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Reserve(), d.Reserve(), d.Prune(nil)); err != nil || !d.Reserved() {
		t.Fatalf("reserve: %v, reserved %t", err, d.Reserved())
	}
	var s unix.Stat_t
	if err := unix.Stat(filepath.Join(path, handoff.RoomFile), &s); err != nil || s.Size < handoff.DefaultRoom || s.Blocks*512 < handoff.DefaultRoom {
		t.Errorf("%d bytes in %d blocks (%v), want %d bytes", s.Size, s.Blocks, err, handoff.DefaultRoom)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := d.Reserve(); !errors.Is(err, handoff.ErrNoRoom) || d.Reserved() {
		t.Errorf("reserve in a folder that is gone: %v, reserved %t", err, d.Reserved())
	}
}
