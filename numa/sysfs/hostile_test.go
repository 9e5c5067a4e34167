//go:build unix

package sysfs

import (
	"errors"
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
	opened, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, fsys := range map[string]fs.FS{"os.DirFS": os.DirFS(dir), "Open": opened} {
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

// Every file and every folder of a healthy host becomes in turn what should not
// be there. A pipe that is opened would block for ever.
func TestAnythingInPlaceOfAnything(t *testing.T) {
	host := twoNodes().with(tree{
		cpuPath(2, "/topology/book_id"): "0\n", cpuPath(2, "/cpu_capacity"): "1024\n", "sys/devices/cpu_core/cpus": "0-7\n",
		"proc/self/cgroup": "0::/a\n", "proc/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "sys/fs/cgroup/a/cpuset.cpus.effective": "0-3\n",
		"proc/stat": "cpu0 1\n", "proc/cmdline": "isolcpus=3\n", "proc/version": "Linux version 6.1.0 x\n",
		globalHugepages + "/hugepages-2048kB/nr_hugepages": "1\n",
		"sys/bus/pci/devices/0000:07:00.0/numa_node":       "1\n",
	})
	dir := host.write(t)
	place := map[string]func(path string) error{
		"a pipe":              func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"a folder":            func(path string) error { return os.Mkdir(path, 0o755) },
		"an empty file":       func(path string) error { return os.WriteFile(path, nil, 0o644) },
		"a link to itself":    func(path string) error { return os.Symlink(filepath.Base(path), path) },
		"a link to its own":   func(path string) error { return os.Symlink(".", path) },
		"a device":            func(path string) error { return os.Symlink("/dev/zero", path) },
		"bytes of no text":    func(path string) error { return os.WriteFile(path, []byte("\xff\xfe\x00\x80"), 0o644) },
		"a list without end":  func(path string) error { return os.WriteFile(path, []byte("0-4294967295\n"), 0o644) },
		"a list of all":       func(path string) error { return os.WriteFile(path, []byte("0-65535\n"), 0o644) },
		"a great many zeroes": func(path string) error { return os.WriteFile(path, make([]byte, maxFileBytes+1), 0o644) },
	}
	paths := map[string]bool{}
	for path := range host {
		// One CPU and one node stand for all.
		if strings.Contains(path, "/cpu/cpu") && !strings.Contains(path, "/cpu/cpu2/") || strings.Contains(path, "/node/node0/") {
			continue
		}
		for ; path != "."; path = filepath.Dir(path) {
			paths[path] = true
		}
	}
	fsys := os.DirFS(dir)
	for path := range paths {
		full := filepath.Join(dir, path)
		if err := os.Rename(full, full+".kept"); err != nil {
			t.Fatal(err)
		}
		for what, put := range place {
			if err := put(full); err != nil {
				t.Fatal(err)
			}
			checkRead(t, fsys, what+" at "+path)
			if err := os.Remove(full); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Rename(full+".kept", full); err != nil {
			t.Fatal(err)
		}
	}
}

// endless is a file system whose file at path has no end.
type endless struct {
	fs.FS
	path string
}

func (e endless) Open(name string) (fs.File, error) {
	f, err := e.FS.Open(name)
	if err == nil && name == e.path {
		return endlessFile{f}, nil
	}
	return f, err
}

type endlessFile struct{ fs.File }

func (endlessFile) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "0-1,"[i%4]
	}
	return len(p), nil
}

func TestFilesWithoutEnd(t *testing.T) {
	for _, path := range []string{
		cpuDir + "/online", nodeDir + "/online", nodePath(1, "/meminfo"), nodePath(1, "/distance"), cpuPath(2, "/topology/core_cpus_list"),
	} {
		_, warnings, err := Read(endless{twoNodes().fs(), path})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if len(warnings) == 0 || !strings.Contains(fmt.Sprint(warnings), path+": "+errTooLong.Error()) {
			t.Errorf("%s: warnings %v, want one about its length", path, warnings)
		}
	}
	if _, _, warnings := AllowedCPUs(endless{twoNodes().fs(), "proc/self/status"}); len(warnings) == 0 {
		t.Error("an endless status gives no warning")
	}
}

// crowded is a file system whose folder at path has no last entry: cpu0, cpu1
// and so on.
type crowded struct {
	fs.FS
	path string
}

func (c crowded) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	if folder, ok := f.(fs.ReadDirFile); ok && name == c.path {
		return &crowdedFolder{ReadDirFile: folder}, nil
	}
	return f, err
}

type crowdedFolder struct {
	fs.ReadDirFile
	next int
}

func (f *crowdedFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		return nil, errors.New("a folder without end was listed as a whole")
	}
	entries := make([]fs.DirEntry, n)
	for i := range entries {
		entries[i] = entry("cpu" + strconv.Itoa(f.next))
		f.next++
	}
	return entries, nil
}

type entry string

func (e entry) Name() string               { return string(e) }
func (e entry) IsDir() bool                { return true }
func (e entry) Type() fs.FileMode          { return fs.ModeDir }
func (e entry) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }

func TestAFolderWithoutEnd(t *testing.T) {
	topology, warnings, err := Read(crowded{twoNodes().with(nil, cpuDir+"/present").fs(), cpuDir})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(topology.CPUs); n != maxCPU+1 {
		t.Errorf("%d CPUs, want %d", n, maxCPU+1)
	}
	if !strings.Contains(fmt.Sprint(warnings), "entries or more; the rest is ignored") || len(warnings) > maxWarnings+1 {
		t.Errorf("%d warnings, want one about the folder's length: %.500v", len(warnings), warnings)
	}
}

func TestListsThatNameAllIntegers(t *testing.T) {
	host := twoNodes()
	for path := range host {
		if strings.HasSuffix(path, "list") || filepath.Dir(path) == cpuDir || filepath.Dir(path) == nodeDir {
			host[path] = "0-4294967295\n"
		}
	}
	topology, warnings, err := Read(host.fs())
	if err != nil {
		t.Fatal(err)
	}
	if len(topology.CPUs) != 8 || topology.Nodes[0].ID != 0 || len(warnings) < 5 {
		t.Errorf("%d CPUs, nodes %v, %d warnings, want the eight CPUs and two nodes that have folders", len(topology.CPUs), topology.Nodes, len(warnings))
	}
}
