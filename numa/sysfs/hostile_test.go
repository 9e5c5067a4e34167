//go:build unix

package sysfs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write puts a tree on the disk, where links can lead in circles and pipes
// can block.
func (t tree) write(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	for path, content := range t {
		to := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			tb.Fatal(err)
		}
		var err error
		if link, ok := strings.CutPrefix(content, "-> "); ok {
			err = os.Symlink(link, to)
		} else {
			err = os.WriteFile(to, []byte(content), 0o644)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

func TestFaultsOfARealFileSystemEndInWarnings(t *testing.T) {
	dir := twoNodes().with(tree{
		cpuDir + "/isolated":      "-> loop",
		cpuDir + "/loop":          "-> isolated",
		cpuDir + "/possible":      "-> /dev/zero",
		nodePath(1, "/distance"):  "-> /nowhere",
		nodePath(0, "/hugepages"): "-> ..",
	}, nodePath(0, "/hugepages"), cpuDir+"/offline").write(t)
	if err := syscall.Mkfifo(filepath.Join(dir, cpuDir, "offline"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := []string{
		cpuDir + "/possible", cpuDir + "/offline", cpuDir + "/isolated", nodePath(1, "/distance"),
	}
	for name, fsys := range map[string]fs.FS{"os.DirFS": os.DirFS(dir), "os.Root": rootFS(t, dir)} {
		topology, warnings, err := Read(fsys)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var warned []string
		for _, w := range warnings {
			warned = append(warned, w.Path)
		}
		if diff := cmp.Diff(want, warned); diff != "" {
			t.Errorf("%s: warned paths (-want +got):\n%s\n%v", name, diff, warnings)
		}
		if len(topology.CPUs) != 8 || topology.Distances != nil {
			t.Errorf("%s: %d CPUs and distances %v, want 8 and none", name, len(topology.CPUs), topology.Distances)
		}
	}
}

// denying refuses to open some paths, as the kernel would to a user without
// rights; tests may run as root, whom file modes do not stop.
type denying struct {
	fs.FS
	paths map[string]bool
}

func (d denying) Open(name string) (fs.File, error) {
	if d.paths[name] {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return d.FS.Open(name)
}

func TestPermissionDenied(t *testing.T) {
	deny := func(paths ...string) fs.FS {
		d := denying{twoNodes().fs(), map[string]bool{}}
		for _, path := range paths {
			d.paths[path] = true
		}
		return d
	}
	topology, warnings, err := Read(deny(nodePath(1, "/meminfo"), nodePath(1, "/hugepages"), cpuPath(3, "/topology/core_id")))
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 3 || len(topology.CPUs) != 8 {
		t.Errorf("%d CPUs, warnings %v, want 8 and three", len(topology.CPUs), warnings)
	}
	for _, w := range warnings {
		if !strings.Contains(w.Problem, "permission denied") {
			t.Errorf("warning %v does not tell the cause", w)
		}
	}
	if _, warnings, err = Read(deny(cpuDir)); err != nil || len(warnings) == 0 {
		t.Errorf("a CPU folder that cannot be listed: %v, warnings %v", err, warnings)
	}
	if _, _, err = Read(deny(cpuDir, cpuDir+"/present")); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("nothing readable: error %v, want the cause", err)
	}
}

func TestHugeTreesAreBounded(t *testing.T) {
	everyone := "0-" + strconv.Itoa(maxCPU) + "\n"
	host := tree{cpuDir + "/present": "0-65535\n", cpuDir + "/possible": "0-65535\n", cpuDir + "/online": "0-65535\n", cpuDir + "/offline": "\n"}
	for cpu := range 1024 {
		// Every CPU is in many cores; the other CPUs have no folder.
		host[cpuPath(cpu, "/topology/core_cpus_list")] = strconv.Itoa(cpu) + everyone[1:]
	}
	topology, warnings, err := Read(host.fs())
	if err != nil {
		t.Fatal(err)
	}
	if len(topology.CPUs) != maxCPU+1 {
		t.Errorf("%d CPUs, want %d", len(topology.CPUs), maxCPU+1)
	}
	if last := warnings[len(warnings)-1]; len(warnings) != maxWarnings+1 || !strings.Contains(last.Problem, "more faults are not shown") {
		t.Errorf("%d warnings, the last %v", len(warnings), last)
	}
}

func TestRefusesATreeOfMoreThan64MiB(t *testing.T) {
	host := twoNodes()
	padding := strings.Repeat("\n", maxFileBytes-1)
	host[cpuDir+"/present"] = "0-1999\n"
	for cpu := range 2000 {
		host[cpuPath(cpu, "/topology/physical_package_id")] = "0" + padding
	}
	host[cpuDir+"/online"] = "0-1999\n"
	if _, _, err := Read(host.fs()); err == nil || !strings.Contains(err.Error(), fmt.Sprint(maxTotalBytes)) {
		t.Errorf("error %v, want one that names the bound", err)
	}
}
