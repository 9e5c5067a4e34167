package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// inside is set in the test program's own mount namespace.
const inside = "MUSTER_TEST_MOUNTS"

// TestMain makes this test program the program of the supervisors too. A host with both
// hierarchies of cgroups, which crun refuses, looks like one with the first alone.
func TestMain(m *testing.M) {
	shim.Become(os.Args)
	if os.Getenv(inside) == "" {
		if err := hideHybrid(); err != nil {
			fmt.Fprintln(os.Stderr, "own mount namespace:", err) // the tests skip
		}
	}
	os.Exit(m.Run())
}

const unified = "/sys/fs/cgroup/unified"

// hideHybrid starts this program again without the second hierarchy, if there is one.
func hideHybrid() error {
	var stat unix.Statfs_t
	if err := unix.Statfs(unified, &stat); err != nil || stat.Type != unix.CGROUP2_SUPER_MAGIC {
		return nil
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Unmount(unified, unix.MNT_DETACH); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, append(os.Environ(), inside+"=1"))
}

// patience bounds waits that end at once when all is well.
const patience = 2 * time.Minute

// tool is the host's crun, or the test skips.
func tool(t testing.TB) string {
	t.Helper()
	var stat unix.Statfs_t
	switch {
	case os.Geteuid() != 0:
		t.Skip("not permitted here: users of other numbers")
	case unix.Statfs(unified, &stat) == nil && stat.Type == unix.CGROUP2_SUPER_MAGIC:
		t.Skip("not permitted here: a mount namespace")
	}
	path, err := exec.LookPath("crun")
	if err != nil {
		t.Skip("no crun (apt-get install crun)")
	}
	probe := exec.Command("/bin/true")
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	if err := probe.Run(); err != nil {
		t.Skip("not permitted here: user namespaces: ", err)
	}
	return path
}

// imageFolders are those of a root file system.
var imageFolders = []string{"bin", "dev", "etc", "mnt", "proc", "run", "sys", "tmp"}

// rootfs makes a root file system of busybox alone, which the given folder has.
func rootfs(t testing.TB, folder string) string {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("no busybox (apt-get install busybox-static)")
	}
	if text, err := exec.Command("ldd", busybox).CombinedOutput(); err == nil && strings.Contains(string(text), "=>") {
		t.Skip("busybox is not static (apt-get install busybox-static)")
	}
	root := filepath.Join(folder, "tiny")
	for _, name := range imageFolders {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	from, err := os.Open(busybox)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(root, "bin/busybox"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cat", "env", "grep", "id", "ls", "mkdir", "sh", "sleep", "sort", "stty", "touch", "tr", "tty"} {
		if err := os.Symlink("busybox", filepath.Join(root, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "etc/inside"), []byte("the image\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

// supervisor is the program muster-shim as `make build` makes the program: without libraries.
var supervisor = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "muster-shim-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, shim.Name)
	command := exec.Command("go", "build", "-trimpath", "-o", path, "github.com/musterd/muster/cmd/muster-shim")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", command, err, output)
	}
	return os.ReadFile(path)
})

// initOf puts the first process of containers into a folder.
func initOf(t testing.TB, folder string) string {
	t.Helper()
	data, err := supervisor()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, shim.Name)
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// open makes a folder that all users may enter, with all above it.
func open(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "muster-container-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

// member is the user of the members, of this test program alone. The host needs no such user.
var member = shim.User{UID: 1<<20 + uint32(os.Getpid()), GID: 1<<20 + uint32(os.Getpid()), Groups: []uint32{44}}

// memberID is the number of the user.
var memberID = strconv.Itoa(int(member.UID))

// host is a folder of work with a runner that may be replaced.
type host struct {
	t      testing.TB
	folder string // of the images, and of the work
	boot   string
	image  *shim.Container

	runner  *run.Runner
	stop    func()
	changed chan struct{}
	// launcher starts the supervisors; nil: the runner does.
	launcher run.Launcher
}

func newHost(t testing.TB) *host {
	t.Helper()
	boot, err := shim.BootID()
	if err != nil {
		t.Skip("not permitted here: ", err)
	}
	crun := tool(t)
	h := &host{t: t, folder: open(t), boot: boot}
	h.image = &shim.Container{Tool: crun, Rootfs: rootfs(t, h.folder), Within: []string{h.folder}, Init: initOf(t, h.folder)}
	t.Cleanup(h.end)
	h.start()
	return h
}

// start starts a runner on the folder.
func (h *host) start() {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	h.changed = make(chan struct{}, 1)
	changed := h.changed
	r, err := run.Open(run.Config{
		Root: filepath.Join(h.folder, "run"), Program: self, BootID: h.boot, Log: slog.New(slog.DiscardHandler), Now: time.Now, Launcher: h.launcher,
		Changed: func(context.Context, resource.TxID) {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	h.runner, h.stop = r, func() { cancel(); running.Wait() }
}

// restart replaces the runner, as an upgrade of the agent does.
func (h *host) restart() {
	h.t.Helper()
	h.stop()
	h.start()
}

// end kills everything that the test has started.
func (h *host) end() {
	h.stop()
	entries, _ := os.ReadDir(filepath.Join(h.folder, "run"))
	for _, e := range entries {
		f := shim.Folder(filepath.Join(h.folder, "run", e.Name()))
		if p, err := f.Begun(); err == nil && p.IsAlive(h.boot) {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
		_, _ = f.KillRemains(h.boot, 100)
	}
}

const tx = resource.TxID("a")

func (h *host) work() shim.Folder { return shim.Folder(filepath.Join(h.folder, "run", "a.0.0")) }

// spec is a member with a script of the image's shell.
func (h *host) spec(script string) shim.Spec {
	image := *h.image
	return shim.Spec{Args: []string{"sh", "-c", script}, Env: []string{"PATH=/bin"}, Dir: "/", User: &member, Container: &image}
}

// attach starts the member.
func (h *host) attach(s shim.Spec) { h.runner.Attach(tx, []run.Member{{Spec: s}}) }

// await waits until a condition holds.
func (h *host) await(what string, holds func() bool) {
	h.t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			trace, _ := os.ReadFile(filepath.Join(string(h.work()), "trace"))
			h.t.Fatalf("%s: not within %s; states %+v, log %q, trace %q", what, patience, h.runner.States(tx), h.log(), trace)
		}
		select {
		case <-h.changed:
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// log is the output of the member.
func (h *host) log() string {
	piece := make([]byte, 64<<10)
	_, n, err := h.work().ReadLog(0, piece)
	if err != nil {
		return ""
	}
	return string(piece[:n])
}

// prints waits for a text in the output of the member.
func (h *host) prints(text string) {
	h.t.Helper()
	h.await(fmt.Sprintf("output %q", text), func() bool { return strings.Contains(h.log(), text) })
}

// ends waits for the end of the member.
func (h *host) ends() grant.WorkState {
	h.t.Helper()
	var s grant.WorkState
	h.await("the end", func() bool {
		states := h.runner.States(tx)
		if len(states) == 1 {
			s = states[0]
		}
		return s.Phase == grant.WorkEnded
	})
	return s
}
