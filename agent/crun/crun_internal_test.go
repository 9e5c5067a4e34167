package crun

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// typeOf is the type of the file system at a folder.
func typeOf(t *testing.T, folder string) int64 {
	t.Helper()
	var stat unix.Statfs_t
	if err := unix.Statfs(folder, &stat); err != nil {
		return 0
	}
	return stat.Type
}

func TestCrunNeedsItsHierarchiesOfCgroups(t *testing.T) {
	memory, err := os.MkdirTemp("/dev/shm", "muster-cgroups-")
	if err != nil {
		t.Skip("not permitted here: ", err)
	}
	defer os.RemoveAll(memory)
	disk := "/proc" // a file system of another kind, on each host
	for name, c := range map[string]struct {
		folder string
		kind   int64 // the case needs this file system at the folder; 0: any
		want   string
	}{
		"hierarchies of the first version": {memory, unix.TMPFS_MAGIC, ""},
		"the unified hierarchy":            {"/sys/fs/cgroup/unified", unix.CGROUP2_SUPER_MAGIC, ""},
		"both":                             {"/sys/fs/cgroup", unix.TMPFS_MAGIC, "two hierarchies"},
		"no hierarchy":                     {disk, 0, "needs cgroup2 or a tmpfs"},
		"no folder":                        {filepath.Join(memory, "missing"), 0, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.kind != 0 && typeOf(t, c.folder) != c.kind || name == "both" && typeOf(t, c.folder+"/unified") != unix.CGROUP2_SUPER_MAGIC {
				t.Skipf("not permitted here: the host has another file system at %s", c.folder)
			}
			err := cgroupRefusal(c.folder)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestCrunSaysThatItRefusesTheCgroups: an error about cgroups keeps the label from the node,
// another error of an agent without rights does not.
func TestCrunSaysThatItRefusesTheCgroups(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   bool
	}{
		"cgroups":       {"echo 'cgroups in hybrid mode not supported' >&2; exit 1", true},
		"no namespaces": {"echo 'unshare: Operation not permitted' >&2; exit 1", false},
		"a success":     {"exit 0", false},
		"a warning":     {"echo 'cgroup: a warning' >&2; exit 0", false},
	} {
		t.Run(name, func(t *testing.T) {
			tool := filepath.Join(t.TempDir(), "crun")
			if err := os.WriteFile(tool, []byte("#!/bin/sh\n"+c.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := probe(tool); (err != nil) != c.want {
				t.Errorf("probe: %v, want an error: %t", err, c.want)
			}
		})
	}
}

// TestTheFirstProcessOfAContainerNeedsNoLibrary: an image has no library of the host, and the
// user of a command has no right to a private program.
func TestTheFirstProcessOfAContainerNeedsNoLibrary(t *testing.T) {
	folder, err := os.MkdirTemp("/tmp", "muster-init-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	code := filepath.Join(folder, "main.go")
	if err := os.WriteFile(code, []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "static")
	build := exec.Command("go", "build", "-o", program, code)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if got := InitOf(program); got != program {
		t.Errorf("a program without libraries: %q", got)
	}
	for name, path := range map[string]string{"a program with libraries": "/bin/sh", "a text": code, "no file": folder + "/none", "a folder": folder} {
		if got := InitOf(path); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, mode := range map[string]os.FileMode{folder: 0o700, program: 0o750} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		if got := InitOf(program); got != "" {
			t.Errorf("with the mode %s of %s: %q", mode, name, got)
		}
		if err := os.Chmod(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
