package container

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
)

func TestACommandRunsInItsRootFileSystem(t *testing.T) {
	h := newHost(t)
	before := states(t)
	s := h.spec("cat /etc/inside; id -u; id -g; grep NoNewPrivs /proc/self/status; grep CapEff /proc/self/status; touch /written; echo 1 > /tmp/x && cat /tmp/x; echo $A; exit 7")
	s.Env = append(s.Env, "A=set")
	h.attach(s)
	e := h.ends()
	if e.Code != 7 || e.Signal != 0 || e.Reason != string(shim.Completed) {
		t.Errorf("end %+v, want code 7", e)
	}
	want := "the image\n" + memberID + "\n" + memberID + "\nNoNewPrivs:\t1\nCapEff:\t0000000000000000\ntouch: /written: Read-only file system\n1\nset\n"
	if got := h.log(); got != want {
		t.Errorf("output %q, want %q", got, want)
	}
	if after := states(t); !slices.Equal(before, after) {
		t.Errorf("state folders %q, before the start %q", after, before)
	}
}

// states are the folders of the container tool's states, of the members of this test program.
func states(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("/dev/shm/.muster-*")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list, func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || info.Sys().(*syscall.Stat_t).Uid != member.UID
	})
}

func TestTheEndOfACommandInAContainer(t *testing.T) {
	for name, c := range map[string]struct {
		script       string
		code, signal int
	}{
		"a success":             {"exit 0", 0, 0},
		"a code":                {"exit 41", 41, 0},
		"a signal":              {"kill -KILL $$", 137, 9},
		"something left behind": {"sleep 1000 & exit 3", 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.attach(h.spec(c.script))
			if e := h.ends(); e.Code != c.code || e.Signal != c.signal || e.Reason != string(shim.Completed) {
				t.Errorf("end %+v, want code %d and signal %d", e, c.code, c.signal)
			}
		})
	}
}

func TestAContainerThatCannotStart(t *testing.T) {
	for name, c := range map[string]struct {
		change func(h *host, s *shim.Spec)
		code   int
		want   string
	}{
		"a command that is not in the image": {func(_ *host, s *shim.Spec) { s.Args = []string{"/usr/bin/env"} }, 127, "/usr/bin/env"},
		"no container tool":                  {func(_ *host, s *shim.Spec) { s.Container.Tool = "/nowhere/crun" }, 126, "the container tool is not there: start /nowhere/crun"},
		"no root file system":                {func(h *host, s *shim.Spec) { s.Container.Rootfs = h.folder + "/none" }, 126, "rootfs "},
		"a root file system elsewhere":       {func(h *host, s *shim.Spec) { s.Container.Within = []string{h.folder + "/run"} }, 126, "it lies in none of the folders that this host permits"},
		"a link to elsewhere": {func(h *host, s *shim.Spec) {
			if err := os.Symlink("/", h.folder+"/tiny/way"); err != nil {
				h.t.Fatal(err)
			}
			s.Container.Rootfs, s.Container.Within = h.folder+"/tiny/way", []string{h.folder + "/tiny"}
		}, 126, "it lies in none of the folders"},
		"a folder that is no root file system": {func(h *host, s *shim.Spec) { s.Container.Rootfs = h.folder }, 126, "it has no folder /proc"},
		"a mount of nothing": {func(h *host, s *shim.Spec) {
			s.Container.Mounts = []shim.Mount{{Source: "/nowhere", Destination: "/tmp/x", Options: []string{"bind"}}}
		}, 126, "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			s := h.spec("exit 0")
			c.change(h, &s)
			h.attach(s)
			if e := h.ends(); e.Code != c.code || e.Reason != string(shim.NotStarted) || !strings.Contains(e.Message, c.want) {
				t.Errorf("end %+v, want code %d and %q", e, c.code, c.want)
			}
		})
	}
}

func TestAStopReachesTheContainer(t *testing.T) {
	h := newHost(t)
	h.attach(h.spec("trap 'echo asked; exit 5' TERM; echo ready; while :; do sleep 0.1; done"))
	h.prints("ready")
	h.restart() // the agent's part is replaced; the container goes on
	h.runner.Stop(tx, time.Now().Add(patience))
	if e := h.ends(); e.Code != 5 || e.Reason != string(shim.Stopped) || !strings.HasSuffix(h.log(), "asked\n") {
		t.Errorf("end %+v, output %q; want code 5 after its stop", e, h.log())
	}
}

func TestAPlainCommandInAContainerEndsWithSIGTERM(t *testing.T) {
	h := newHost(t)
	h.attach(h.spec("echo ready; exec sleep 1000"))
	h.prints("ready")
	h.runner.Stop(tx, time.Now().Add(patience))
	if e := h.ends(); e.Signal != int(unix.SIGTERM) || e.Reason != string(shim.Stopped) {
		t.Errorf("end %+v, want SIGTERM", e)
	}
}

func TestAContainerThatDoesNotEndIsKilledAfterItsGrace(t *testing.T) {
	h := newHost(t)
	h.attach(h.spec("trap '' TERM; sleep 1000 & echo ready; while :; do sleep 0.1; done"))
	h.prints("ready")
	h.runner.Stop(tx, time.Now().Add(50*time.Millisecond))
	if e := h.ends(); e.Signal != int(unix.SIGKILL) || e.Reason != string(shim.Killed) {
		t.Errorf("end %+v, want SIGKILL", e)
	}
}

func TestAKilledSupervisorTakesItsContainerAlong(t *testing.T) {
	h := newHost(t)
	h.attach(h.spec("sleep 1000 & echo ready; sleep 1000"))
	h.prints("ready")
	started, err := h.work().Started()
	if err != nil {
		t.Fatal(err)
	}
	begun, err := h.work().Begun()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(begun.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := h.ends(); e.Reason != string(shim.SupervisorLost) || e.Code != shim.UnknownCode {
		t.Errorf("end %+v, want SupervisorLost", e)
	}
	if started.IsAlive(h.boot) {
		t.Errorf("process %d of the container has outlived its supervisor", started.PID)
	}
}

func TestTheCPUsOfAContainer(t *testing.T) {
	h := newHost(t)
	s := h.spec("grep Cpus_allowed_list /proc/self/status")
	s.CPUs = []int{0}
	h.attach(s)
	if e := h.ends(); e.Code != 0 || h.log() != "Cpus_allowed_list:\t0\n" {
		t.Errorf("end %+v, output %q; want CPU 0 alone", e, h.log())
	}
}

func TestAContainerIsInTheCgroupOfItsMember(t *testing.T) {
	h := newHost(t)
	mounted := filepath.Join(h.folder, "cgroup")
	if err := os.Mkdir(mounted, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", mounted, "cgroup2", 0, ""); err != nil {
		t.Skip("not permitted here: ", err)
	}
	defer func() {
		if err := unix.Unmount(mounted, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	group := filepath.Join(mounted, "muster-container-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skip("not permitted here: ", err)
	}
	s := h.spec("echo ready; sleep 1000")
	s.Cgroup = group
	h.attach(s)
	h.prints("ready")
	started, err := h.work().Started()
	if err != nil {
		t.Fatal(err)
	}
	if procs, err := os.ReadFile(group + "/work/cgroup.procs"); err != nil || !strings.Contains("\n"+string(procs), "\n"+strconv.Itoa(started.PID)+"\n") {
		t.Errorf("processes %q (%v) of the cgroup, want %d among them", procs, err, started.PID)
	}
	if err := os.WriteFile(group+"/work/cgroup.kill", []byte("1"), 0); errors.Is(err, os.ErrNotExist) {
		t.Skip("not permitted here: cgroup.kill")
	} else if err != nil {
		t.Fatal(err)
	}
	if e := h.ends(); e.Signal != int(unix.SIGKILL) || e.Phase != grant.WorkEnded {
		t.Errorf("end %+v, want SIGKILL", e)
	}
	if _, err := os.Stat(group); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cgroup is left: %v", err)
	}
}
