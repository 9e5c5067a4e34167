package launch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/agent/bounds"
	"github.com/musterd/muster/agent/launch"
	runner "github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/agent/users"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestMain makes this test program the shim's program too.
func TestMain(m *testing.M) {
	shim.Become(os.Args)
	os.Exit(m.Run())
}

// worker is the user of tenant ml: this process's own, where it is not root.
func worker() shim.User {
	if os.Geteuid() == 0 {
		return shim.User{UID: 65534, GID: 65534, Groups: []uint32{44}}
	}
	return shim.User{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
}

func lookup(name string) (users.Account, error) {
	if name != "worker" {
		return users.Account{}, user.UnknownUserError(name)
	}
	return users.Account{Name: name, Home: "/", ID: worker()}, nil
}

// host is a runner whose starts go through the helper to a fake systemd.
type host struct {
	systemd *fakeSystemd
	client  *launch.Client
	work    string
	runner  *runner.Runner
	changed chan resource.TxID
}

// serve starts a helper, and returns its socket.
func serve(t *testing.T, s *launch.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	table, err := users.NewTable(map[string]string{"ml": "worker"}, false, lookup)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.Users, s.Program, s.Log = table, self, slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); serving.Wait() })
	return path
}

func newHost(t *testing.T) *host {
	if os.Geteuid() == 0 { // the shim's user would have to be able to run this program
		t.Helper()
	}
	boot, err := shim.BootID()
	if err != nil {
		t.Skip("not permitted here: ", err)
	}
	h := &host{systemd: newFakeSystemd(t), work: filepath.Join(t.TempDir(), "run"), changed: make(chan resource.TxID, 64)}
	socket := serve(t, &launch.Server{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Starter: &launch.Systemd{Connect: h.systemd.connect}})
	if h.client, err = launch.Dial(context.Background(), socket); err != nil {
		t.Fatal(err)
	}
	h.runner, err = runner.Open(runner.Config{
		Root: h.work, Program: "/no/program", BootID: boot, Log: slog.New(slog.DiscardHandler), Now: time.Now, Launcher: h.client,
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
		h.await("a")
		cancel()
		running.Wait()
	})
	return h
}

func (h *host) start(tenant resource.TenantID, script string) {
	spec := shim.Spec{Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/"}
	h.runner.Attach("a", []runner.Member{{Spec: spec, Tenant: tenant}})
}

func (h *host) await(tx resource.TxID) {
	for h.runner.Runs(tx) {
		<-h.changed
	}
}

func (h *host) folder() shim.Folder { return shim.Folder(filepath.Join(h.work, "a.0.0")) }

// TestTheHelperSignalsProcessesOfTheTablesAlone: an agent without rights ends attached work
// through the helper.
func TestTheHelperSignalsProcessesOfTheTablesAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not permitted here: another user's process needs root")
	}
	boot, err := shim.BootID()
	if err != nil {
		t.Skip("not permitted here: ", err)
	}
	attachers, err := users.NewTable(map[string]string{"vision": "attacher"}, false, func(name string) (users.Account, error) {
		return users.Account{Name: name, ID: shim.User{UID: 65533}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &launch.Server{Starter: &launch.Systemd{Connect: newFakeSystemd(t).connect}, Attachers: attachers}
	client, err := launch.Dial(t.Context(), serve(t, s))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		uid   uint32
		sent  bool
		again bool // the number is that of another process by now
	}{
		"a user of work.users":   {65534, true, false},
		"a user of attach.users": {65533, true, false},
		"root":                   {0, false, false},
		"another user":           {65532, false, false},
		"a process that ended":   {65534, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			child := exec.Command("/bin/sleep", "1000")
			child.Dir, child.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.uid, Gid: c.uid}}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
			p, err := shim.Identify(child.Process.Pid, boot)
			if err != nil {
				t.Fatal(err)
			}
			if c.again {
				p.Start--
			}
			if err := client.Signal(t.Context(), p, syscall.SIGTERM); (err == nil) != (c.sent || c.again) || err != nil && !errors.Is(err, runner.ErrRefused) {
				t.Errorf("error %v", err)
			}
			if c.sent {
				_ = child.Wait()
				if got := child.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != syscall.SIGTERM {
					t.Errorf("the process has ended by %s", got)
				}
			} else if !p.IsAlive(boot) && !c.again {
				t.Error("the process has ended")
			} else if c.again && child.Process.Signal(syscall.Signal(0)) != nil {
				t.Error("another process has ended")
			}
		})
	}
}

// TestAMemberRunsAsAServiceOfItsTenantsUser goes the whole way: the runner, the helper, the
// service manager, the shim.
func TestAMemberRunsAsAServiceOfItsTenantsUser(t *testing.T) {
	h := newHost(t)
	h.start("ml", "id -u; id -g; ls /proc/self/fd | head -1; exit 7")
	h.await("a")
	if e := h.runner.States("a")[0]; e.Code != 7 || e.Reason != string(shim.Completed) {
		t.Fatalf("ended as %+v", e)
	}
	p := make([]byte, 100)
	_, n, err := h.folder().ReadLog(0, p)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d\n%d\n0\n", worker().UID, worker().GID); string(p[:n]) != want {
		t.Errorf("output %q, want %q", p[:n], want)
	}
	unit := h.systemd.properties("muster-work-a.0.0.service")
	if unit == nil {
		t.Fatal("no unit of that name was started")
	}
	if slice := unit["Slice"].Value(); slice != "muster.slice" {
		t.Errorf("slice %v", slice)
	}
}

// TestAServiceOutlivesTheRunner: a runner that starts anew follows it, and it is stopped.
func TestAServiceIsStopped(t *testing.T) {
	h := newHost(t)
	h.start("ml", "sleep 3600")
	for h.runner.States("a")[0].Phase != grant.WorkRunning {
		<-h.changed
	}
	h.runner.Stop("a", time.Now().Add(time.Hour))
	h.await("a")
	if e := h.runner.States("a")[0]; e.Signal != 15 || e.Reason != string(shim.Stopped) {
		t.Errorf("ended as %+v", e)
	}
}

func TestATenantWithoutAUserHasNoService(t *testing.T) {
	h := newHost(t)
	h.start("vision", "exit 0")
	h.await("a")
	e := h.runner.States("a")[0]
	if e.Reason != string(shim.NotStarted) || !strings.Contains(e.Message, `no user for the work of tenant "vision"`) {
		t.Errorf("ended as %+v", e)
	}
	if len(h.systemd.units) > 0 {
		t.Errorf("units %v were started", h.systemd.units)
	}
}

// TestAScriptOfTheHostIsRunByTheService: the operator's file has its path, and the agent
// chooses the variables that Muster sets alone.
func TestAScriptOfTheHostIsRunByTheService(t *testing.T) {
	f := newFakeSystemd(t)
	note, path := filepath.Join(t.TempDir(), "note"), filepath.Join(t.TempDir(), "prolog")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho \"$MUSTER_MEMBER\" >"+note+"\nexit $MUSTER_CODE\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	socket := serve(t, &launch.Server{UID: uint32(os.Getuid()), Starter: &launch.Systemd{Connect: f.connect}, Scripts: map[string]string{launch.Prolog: path}})
	c, err := launch.Dial(context.Background(), socket)
	if err != nil {
		t.Fatal(err)
	}
	folder := shim.Folder("/var/lib/muster-agent/run/a.3.0")
	if err := c.Run(context.Background(), launch.Prolog, folder, []string{"MUSTER_MEMBER=3", "MUSTER_CODE=0"}, time.Minute); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(note); err != nil || string(text) != "3\n" {
		t.Errorf("the script has noted %q: %v", text, err)
	}
	unit := f.properties("muster-prolog-a.3.0.service")
	if unit["Type"].Value() != "oneshot" || unit["TimeoutStartUSec"].Value() != uint64(60e6) || unit["User"].Value() != nil {
		t.Errorf("the unit has %v", unit)
	}
	for want, err := range map[string]error{
		`"failed": see journalctl -u muster-prolog-a.3.0.service`: c.Run(context.Background(), launch.Prolog, folder, []string{"MUSTER_CODE=4"}, time.Minute),
		"work.epilog: the helper's configuration names no script": c.Run(context.Background(), launch.Epilog, folder, nil, time.Minute),
		`script "/bin/sh": want prolog or epilog`:                 c.Run(context.Background(), "/bin/sh", folder, nil, time.Minute),
		`"LD_PRELOAD=/tmp/x" is no variable that Muster sets`:     c.Run(context.Background(), launch.Prolog, folder, []string{"LD_PRELOAD=/tmp/x"}, time.Minute),
		"limitMillis 3600000 is outside 1..600000":                c.Run(context.Background(), launch.Prolog, folder, nil, time.Hour),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestAnotherUserIsNotServed(t *testing.T) {
	socket := serve(t, &launch.Server{UID: uint32(os.Getuid()) + 1, Starter: &launch.Systemd{}})
	_, err := launch.Dial(context.Background(), socket)
	if !errors.Is(err, runner.ErrRefused) || !strings.Contains(err.Error(), "is not the agent's") {
		t.Errorf("%v, want a refusal", err)
	}
}

func TestAJobThatFailsSaysWhereToLook(t *testing.T) {
	f := newFakeSystemd(t)
	f.result = "failed"
	s := &launch.Systemd{Connect: f.connect}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	err = s.Start(context.Background(), launch.Unit{Name: "muster-work-x.service", Args: []string{"/bin/true"}, Files: [3]*os.File{null, null, null}})
	if err == nil || !strings.Contains(err.Error(), `"failed": see journalctl -u muster-work-x.service`) {
		t.Errorf("%v", err)
	}
}

// TestTheBoundsAreTheLimitsOfTheService: systemd takes each property with exactly one type.
func TestTheBoundsAreTheLimitsOfTheService(t *testing.T) {
	f := newFakeSystemd(t)
	s := &launch.Systemd{Connect: f.connect, Hierarchy: t.TempDir()}
	for _, file := range []string{"cgroup.controllers", "cgroup.subtree_control"} {
		if err := os.WriteFile(filepath.Join(s.Hierarchy, file), []byte("cpuset cpu io memory hugetlb pids rdma\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if has, err := s.Controllers(); err != nil || !reflect.DeepEqual(has, bounds.Controllers{"cpu", "cpuset", "hugetlb", "memory", "pids"}) {
		t.Errorf("controllers %v: %v", has, err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	u := launch.Unit{Name: "muster-work-x.service", UID: 998, GID: 997, Args: []string{"/bin/true"}, Files: [3]*os.File{null, null, null}, Bounds: bounds.Bounds{
		CPUs: []int{0, 9}, Nodes: []int{1}, Millicores: 1500, Memory: 1 << 30, Tasks: 100, Devices: []string{"/dev/nvidia0"},
	}}
	if err := s.Start(context.Background(), u); err != nil {
		t.Fatal(err)
	}
	unit := f.properties(u.Name)
	for name, want := range map[string]string{
		"User": `"998"`, "Group": `"997"`, "AllowedCPUs": "@ay [0x1, 0x2, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0]", "AllowedMemoryNodes": "@ay [0x2, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0]",
		"CPUQuotaPerSecUSec": "@t 1500000", "MemoryMax": "@t 1090519040", "TasksMax": "@t 132", "DevicePolicy": `"closed"`, "DeviceAllow": `[["/dev/nvidia0", "rwm"]]`,
		"Delegate": "true", "NoNewPrivileges": "true", "KillMode": `"mixed"`, "AmbientCapabilities": "@t 480", "CapabilityBoundingSet": "@t 480", "OOMPolicy": `"continue"`, "CollectMode": `"inactive-or-failed"`,
		"ExecStart": `[["/bin/true", ["/bin/true"], false]]`,
	} {
		if got := unit[name].String(); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{"DeviceAllow": "a(ss)", "ExecStart": "a(sasb)", "StandardInputFileDescriptor": "h", "Environment": "as", "UMask": "u"} {
		if got := unit[name].Signature().String(); got != want {
			t.Errorf("%s has the type %s, want %s", name, got, want)
		}
	}
	if data, err := os.ReadFile(filepath.Join(s.Hierarchy, "cgroup.subtree_control")); err != nil || string(data) != "+hugetlb" {
		t.Errorf("the hierarchy's controllers: %q, %v", data, err)
	}
}

func TestEachFolderHasAUnitOfItsOwn(t *testing.T) {
	long := strings.Repeat("x", 220)
	for folder, want := range map[string]string{
		"/var/lib/muster-agent/run/7f3a.0.0": "muster-work-7f3a.0.0.service",
		"/run/a%2Fb.1.0":                     `muster-work-a\x25 2Fb.1.0.service`,
	} {
		if got := launch.UnitOf(shim.Folder(folder)); got != strings.ReplaceAll(want, " ", "") {
			t.Errorf("%s has %q, want %q", folder, got, want)
		}
	}
	a, b := launch.UnitOf(shim.Folder("/run/"+long+"a.0.0")), launch.UnitOf(shim.Folder("/run/"+long+"b.0.0"))
	if a == b || len(a) > 255 {
		t.Errorf("two long names: %q, %q", a, b)
	}
}
