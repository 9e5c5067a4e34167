package cgroup_test

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/bounds"
	"github.com/musterd/muster/agent/cgroup"
	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestMain makes this test program the shim's program too.
func TestMain(m *testing.M) {
	shim.Become(os.Args)
	os.Exit(m.Run())
}

// host is a runner whose starts have cgroups.
type host struct {
	t       *testing.T
	work    string // the folder of the folders of starts
	path    string // of the cgroups
	root    *cgroup.Root
	runner  *run.Runner
	changed chan resource.TxID
}

// unified is where the unified hierarchy is mounted; "" where it is not.
func unified(t *testing.T) string {
	mounts, err := os.Open("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	defer mounts.Close()
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 2 && fields[2] == "cgroup2" {
			return fields[1]
		}
	}
	return ""
}

func newHost(t *testing.T) *host {
	mount := unified(t)
	if mount == "" || os.Geteuid() != 0 || unix.Access(filepath.Join(mount, "cgroup.subtree_control"), unix.W_OK) != nil {
		t.Skip("not permitted here: it needs root, and a unified hierarchy of cgroups that may be written")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	boot, err := shim.BootID()
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, work: filepath.Join(t.TempDir(), "run"), path: filepath.Join(mount, "muster-test-"+strconv.Itoa(os.Getpid())), changed: make(chan resource.TxID, 64)}
	if h.root, err = cgroup.Open(h.path, self); err != nil {
		t.Fatal(err)
	}
	h.runner, err = run.Open(run.Config{
		Root: h.work, Program: self, BootID: boot, Log: slog.New(slog.DiscardHandler), Now: time.Now, Launcher: h.root,
		Changed: func(ctx context.Context, tx resource.TxID) {
			select {
			case h.changed <- tx:
			case <-ctx.Done():
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { h.runner.Run(ctx) })
	t.Cleanup(func() {
		h.runner.StopAll(time.Now())
		for h.runner.Runs("a") {
			<-h.changed
		}
		cancel()
		running.Wait()
		if err := os.Remove(h.path); err != nil { // a cgroup that is left keeps it from going
			t.Errorf("the cgroup of the test: %v", err)
		}
	})
	return h
}

// start starts a script as member 0 of transaction a.
func (h *host) start(script string, b bounds.Bounds) {
	spec := shim.Spec{Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "T=" + h.work}, Dir: "/"}
	h.runner.Attach("a", []run.Member{{Spec: spec, Bounds: b}})
}

func (h *host) folder() shim.Folder { return shim.Folder(filepath.Join(h.work, "a.0.0")) }

func (h *host) ended() grant.WorkState {
	for h.runner.Runs("a") {
		<-h.changed
	}
	return h.runner.States("a")[0]
}

func (h *host) output() string {
	h.t.Helper()
	p := make([]byte, 4000)
	_, n, err := h.folder().ReadLog(0, p)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(p[:n])
}

// TestTheDevicesOfAMemberAreThoseItWasGiven: other device files cannot be opened. A user that
// is root makes no device file, with or without rules.
func TestTheDevicesOfAMemberAreThoseItWasGiven(t *testing.T) {
	random, kmsg := filepath.Join(t.TempDir(), "granted"), filepath.Join(t.TempDir(), "other")
	for path, minor := range map[string]uint32{random: 9, kmsg: 11} {
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))); err != nil {
			t.Skip("not permitted here: mknod: ", err)
		}
	}
	script := `head -c1 /dev/zero >/dev/null && echo zero; for f in ` + random + ` ` + kmsg + `; do (: >>$f) 2>/dev/null && echo "opens $(basename $f)" || echo "not $(basename $f)"; done; mknod $T/made c 1 11 2>/dev/null && echo made; true`
	for name, c := range map[string]struct {
		devices []string
		want    string
	}{
		"no rules":        {nil, "zero\nopens granted\nopens other\n"},
		"no device":       {[]string{}, "zero\nopens granted\nnot other\n"}, // random is one that every program needs
		"one of its own":  {[]string{kmsg}, "zero\nopens granted\nopens other\n"},
		"one that is not": {[]string{"/dev/no-such-device"}, "zero\nopens granted\nnot other\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.start(script, bounds.Bounds{Devices: c.devices})
			if e := h.ended(); e.Code != 0 {
				t.Errorf("ended as %+v", e)
			}
			if out := h.output(); out != c.want {
				t.Errorf("output %q, want %q", out, c.want)
			}
		})
	}
}

func TestThatALimitCannotBeWrittenKeepsAMemberFromStarting(t *testing.T) {
	h := newHost(t)
	if !h.root.Controllers().Has("hugetlb") {
		t.Skip("not permitted here: the unified hierarchy has no controller hugetlb")
	}
	h.start("echo started", bounds.Bounds{Hugepages: []bounds.Hugepages{{Size: 3 << 20, Bytes: 0}}}) // no host has pages of 3 MiB
	e := h.ended()
	if e.Reason != string(shim.NotStarted) || !strings.Contains(e.Message, "hugetlb.3MB.max") {
		t.Errorf("ended as %+v, want that the file is named", e)
	}
}

func TestTheLimitsOfAMemberAreInItsCgroup(t *testing.T) {
	h := newHost(t)
	if !h.root.Controllers().Has("hugetlb") {
		t.Skip("not permitted here: the unified hierarchy has no controller hugetlb")
	}
	sizes, err := filepath.Glob("/sys/kernel/mm/hugepages/hugepages-2048kB")
	if err != nil || len(sizes) == 0 {
		t.Skip("not permitted here: the host has no pages of 2 MiB")
	}
	h.start(`cat /proc/self/cgroup | tail -1; cat `+h.path+`/a.0.0/work/hugetlb.2MB.max`, bounds.Bounds{Hugepages: []bounds.Hugepages{{Size: 2 << 20, Bytes: 6 << 20}}})
	if e := h.ended(); e.Code != 0 {
		t.Errorf("ended as %+v", e)
	}
	if out := h.output(); !strings.HasSuffix(out, "/a.0.0/work\n6291456\n") {
		t.Errorf("output %q, want its cgroup, and the limit there", out)
	}
}

// TestNothingOfAMemberOutlivesItsSupervisor: a process that has left the session and has
// no trace in its environment is found by the cgroup alone.
func TestNothingOfAMemberOutlivesItsSupervisor(t *testing.T) {
	for name, kill := range map[string]bool{"the supervisor is killed": true, "the command ends": false} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			note := filepath.Join(t.TempDir(), "pid")
			if err := syscall.Mkfifo(note, 0o600); err != nil {
				t.Fatal(err)
			}
			script := `env -i setsid sh -c 'echo $$ >` + note + `; trap "" TERM; while :; do sleep 1; done' & `
			if kill {
				script += "wait"
			} else {
				script += `until [ -e $T/go ]; do sleep 0.02; done`
			}
			h.start(script, bounds.Bounds{})
			text, err := os.ReadFile(note)
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			if procs := processesOf(t, filepath.Join(h.path, "a.0.0", "work")); !slices.Contains(procs, pid) {
				t.Errorf("the cgroup has %v, want %d among them", procs, pid)
			}
			want := string(shim.Completed)
			if kill {
				want = string(shim.SupervisorLost)
				begun, err := h.folder().Begun()
				if err != nil {
					t.Fatal(err)
				}
				_ = syscall.Kill(begun.PID, syscall.SIGKILL)
			} else if err := os.WriteFile(filepath.Join(h.work, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if e := h.ended(); e.Reason != want {
				t.Errorf("ended as %+v, want %s", e, want)
			}
			if lives(pid) {
				t.Errorf("process %d of the member lives", pid)
			}
			if _, err := os.Stat(filepath.Join(h.path, "a.0.0")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the cgroup of the member: %v, want that it is removed", err)
			}
		})
	}
}

// lives reports whether a process has not ended; its parent may not have reaped it yet.
func lives(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(data), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

func processesOf(t *testing.T, path string) (pids []int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Fields(string(data)) {
		pid, _ := strconv.Atoi(text)
		pids = append(pids, pid)
	}
	return pids
}

func TestAFolderOutsideTheHierarchyIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ path, want string }{
		"another file system": {filepath.Join(t.TempDir(), "muster"), "no folder of the unified hierarchy"},
		"no such parent":      {"/no/such/muster", "no such file"},
		"a relative path":     {"muster", "absolute"},
	} {
		if _, err := cgroup.Open(c.path, "/bin/true"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// needs skips a test where the host lacks a controller in the unified hierarchy.
func (h *host) needs(controllers ...string) {
	h.t.Helper()
	for _, name := range controllers {
		if !h.root.Controllers().Has(name) {
			h.t.Skipf("not permitted here: the unified hierarchy has no controller %s", name)
		}
	}
}

func TestAMemberThatTakesMoreMemoryIsKilledAndCounted(t *testing.T) {
	h := newHost(t)
	h.needs("memory")
	// tail keeps all of its input, which has no end of a line.
	h.start("head -c 300M /dev/zero | tail -n 1 | wc -c; sleep 0.1; exit 5", bounds.Bounds{Memory: 64 << 20})
	e := h.ended()
	if e.Code != 5 || e.Use == nil || e.Use.OOMKills < 1 {
		t.Errorf("ended as %+v with the use %+v, want a kill for lack of memory", e, e.Use)
	}
	if e.Use != nil && (e.Use.PeakMemory > 64<<20 || e.Use.PeakMemory < 8<<20) {
		t.Errorf("the peak of memory is %d bytes, want at most 64 MiB", e.Use.PeakMemory)
	}
}

func TestAMemberHasNoMoreTasksThanItsBound(t *testing.T) {
	h := newHost(t)
	h.needs("pids")
	h.start("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 5 & done 2>&1; echo all", bounds.Bounds{Tasks: 8})
	h.ended()
	if out := h.output(); !strings.Contains(strings.ToLower(out), "fork") || strings.Contains(out, "all") {
		t.Errorf("output %q, want that the ninth process is refused", out)
	}
}

// TestAMemberRunsOnItsCPUsAlone: also a process that asks for another affinity.
func TestAMemberRunsOnItsCPUsAlone(t *testing.T) {
	h := newHost(t)
	h.needs("cpuset", "cpu")
	h.start("grep Cpus_allowed_list /proc/self/status; grep Mems_allowed_list /proc/self/status; taskset -p 1 $$ >/dev/null 2>&1 || echo refused; cat "+h.path+"/a.0.0/work/cpu.max",
		bounds.Bounds{CPUs: []int{1}, Nodes: []int{0}, Millicores: 500})
	if e := h.ended(); e.Code != 0 {
		t.Errorf("ended as %+v", e)
	}
	if out, want := h.output(), "Cpus_allowed_list:\t1\nMems_allowed_list:\t0\nrefused\n50000 100000\n"; out != want {
		t.Errorf("output %q, want %q", out, want)
	}
}
