package container

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/cgroup"
	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
)

// noRights is a process without rights, in the words of /proc/PID/status.
const noRights = "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n"

// service starts supervisors as systemd does for muster-launch: as the user of the agent, with
// a few ambient capabilities.
type service struct{ program string }

// agentUser is the user of the agent of a service.
const agentUser = 1<<21 + 7

// Place implements run.Launcher.
func (service) Place(run.Start) (string, map[string]string) { return "", nil }

// Launch implements run.Launcher.
func (s service) Launch(_ context.Context, start run.Start, lock *os.File) (int, <-chan struct{}, error) {
	folder := string(start.Folder)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return 0, nil, err
	}
	for _, path := range append([]string{filepath.Dir(folder), folder}, names(folder, entries)...) {
		if err := os.Chown(path, agentUser, agentUser); err != nil {
			return 0, nil, err
		}
	}
	trace, err := os.Create(filepath.Join(folder, "trace"))
	if err != nil {
		return 0, nil, err
	}
	defer trace.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer writer.Close()
	program, err := os.Open(s.program) // in a folder without rights for the user
	if err != nil {
		return 0, nil, err
	}
	defer program.Close()
	args := shim.Service(s.program, start.Folder, member)
	command := &exec.Cmd{Path: "/proc/self/fd/3", ExtraFiles: []*os.File{program}, Args: args, Dir: "/", Stdin: lock, Stdout: writer, Stderr: trace, SysProcAttr: &syscall.SysProcAttr{
		Credential:  &syscall.Credential{Uid: agentUser, Gid: agentUser},
		AmbientCaps: []uintptr{unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_KILL, unix.CAP_SETPCAP},
	}}
	if err := command.Start(); err != nil {
		reader.Close()
		return 0, nil, err
	}
	begun := make(chan struct{})
	go func() {
		defer close(begun)
		_, _ = reader.Read(make([]byte, 1))
		reader.Close()
	}()
	return command.Process.Pid, begun, nil
}

func names(folder string, entries []os.DirEntry) (list []string) {
	for _, e := range entries {
		list = append(list, filepath.Join(folder, e.Name()))
	}
	return list
}

// asRoot makes a program of root with the set-user-id bit, which prints the effective user.
// asRoot skips where the host ignores the bit.
func asRoot(t *testing.T, folder string) string {
	t.Helper()
	id, err := exec.LookPath("id")
	if err != nil {
		t.Skip("no program id")
	}
	from, err := os.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(folder, "as-root")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(to, from)
		to.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Chmod(path, 0o4755); err != nil {
		t.Fatal(err)
	}
	probe := exec.Command(path, "-u")
	probe.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: member.UID, Gid: member.GID}}
	if out, err := probe.CombinedOutput(); err != nil || string(out) != "0\n" {
		t.Skipf("not permitted here: set-user-id programs: %q, %v", out, err)
	}
	return path
}

// memberGroup makes a folder of the unified hierarchy.
func memberGroup(t *testing.T, h *host) *cgroup.Root {
	t.Helper()
	mounted := filepath.Join(h.folder, "cgroup")
	if err := os.Mkdir(mounted, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", mounted, "cgroup2", 0, ""); err != nil {
		t.Skip("not permitted here: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(mounted, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(mounted, fmt.Sprintf("muster-rights-%d", os.Getpid()))
	root, err := cgroup.Open(path, self)
	if err != nil {
		t.Skip("not permitted here: ", err)
	}
	t.Cleanup(func() { _ = os.Remove(path) })
	return root
}

// TestNoWayOfStartingGivesRights: the command of a member, and each further command, neither
// has nor gains a capability, and a set-user-id program runs as its caller. So has a command
// of root.
func TestNoWayOfStartingGivesRights(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		in       bool // in a container
		launcher func(*testing.T, *host) run.Launcher
		change   func(*shim.Spec)
		session  *grant.Exec // the command is that of a session
	}{
		"a command":                          {},
		"a command of root":                  {change: func(s *shim.Spec) { s.User = nil }},
		"a command of root by its number":    {change: func(s *shim.Spec) { s.User = &shim.User{} }},
		"a command with a terminal":          {change: func(s *shim.Spec) { s.TTY = true }},
		"a command in a cgroup":              {launcher: func(t *testing.T, h *host) run.Launcher { return memberGroup(t, h) }},
		"a command of a service":             {launcher: func(*testing.T, *host) run.Launcher { return service{self} }},
		"a session":                          {session: &grant.Exec{}},
		"a session with a terminal":          {session: &grant.Exec{TTY: true}},
		"a session of a service":             {session: &grant.Exec{}, launcher: func(*testing.T, *host) run.Launcher { return service{self} }},
		"a container":                        {in: true},
		"a container with a terminal":        {in: true, change: func(s *shim.Spec) { s.TTY = true }},
		"a container of a service":           {in: true, launcher: func(*testing.T, *host) run.Launcher { return service{self} }},
		"a session in a container":           {in: true, session: &grant.Exec{}},
		"a session in a container, terminal": {in: true, session: &grant.Exec{TTY: true}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			if c.launcher != nil {
				h.launcher = c.launcher(t, h)
				h.restart()
			}
			script, want := "grep -E '^(NoNewPrivs|Cap)' /proc/self/status", noRights
			if !c.in {
				script += "; " + asRoot(t, h.folder) + " -u"
			}
			s := h.spec(script)
			if !c.in {
				s.Container, s.Args[0], s.Env = nil, "/bin/sh", []string{"PATH=/usr/bin:/bin"}
			}
			if c.session != nil {
				s.Args[2] = "echo ready; exec sleep 1000"
			}
			if c.change != nil {
				c.change(&s)
			}
			switch {
			case c.in:
			case s.User == nil || s.User.UID == 0:
				want += "0\n"
			default:
				want += strconv.Itoa(int(member.UID)) + "\n"
			}
			h.attach(s)
			var out string
			if c.session == nil {
				if e := h.ends(); e.Code != 0 {
					t.Errorf("ended as %+v", e)
				}
				out = h.log()
			} else {
				h.prints("ready")
				c.session.Args = []string{"sh", "-c", script}
				var exit grant.ExecExit
				if out, exit = hears(t, h.session(*c.session), ""); exit.Code != 0 {
					t.Errorf("the session ended as %+v", exit)
				}
			}
			if out = strings.ReplaceAll(out, "\r", ""); out != want {
				t.Errorf("the rights of the command:\n%swant\n%s", out, want)
			}
		})
	}
}

// TestACommandIsLookedUpWithTheRightsOfItsUser: the end of a command does not
// depend on the files in a folder without rights for the user.
func TestACommandIsLookedUpWithTheRightsOfItsUser(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		launcher run.Launcher
		change   func(s *shim.Spec, path string) // the folder at path has a program, or is missing
		message  string
	}{
		"a working directory":                   {nil, func(s *shim.Spec, path string) { s.Dir = path }, "not a directory that can be entered"},
		"a folder of PATH":                      {nil, func(s *shim.Spec, path string) { s.Args, s.Env = []string{"program"}, []string{"PATH=" + path} }, "is in no folder of PATH"},
		"a program":                             {nil, func(s *shim.Spec, path string) { s.Args = []string{path + "/program"} }, "permission denied"},
		"a working directory, in a service":     {service{self}, func(s *shim.Spec, path string) { s.Dir = path }, "not a directory that can be entered"},
		"a folder of PATH, in a service":        {service{self}, func(s *shim.Spec, path string) { s.Args, s.Env = []string{"program"}, []string{"PATH=" + path} }, "is in no folder of PATH"},
		"a program, in a service":               {service{self}, func(s *shim.Spec, path string) { s.Args = []string{path + "/program"} }, "permission denied"},
		"a folder without rights, in a service": {service{self}, func(s *shim.Spec, path string) { s.Dir = filepath.Dir(path) }, "not a directory that can be entered"},
	} {
		t.Run(name, func(t *testing.T) {
			var ends []grant.WorkState
			for _, there := range []bool{true, false} {
				h := newHost(t)
				h.launcher = c.launcher
				h.restart()
				secret := filepath.Join(h.folder, "secret")
				path := filepath.Join(secret, "x")
				if err := os.Mkdir(secret, 0o700); err != nil {
					t.Fatal(err)
				}
				if there {
					if err := os.Mkdir(path, 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(path, "program"), []byte("#!/bin/sh\n"), 0o755); err != nil {
						t.Fatal(err)
					}
				}
				s := shim.Spec{Args: []string{"/bin/true"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", User: &member}
				c.change(&s, path)
				h.attach(s)
				e := h.ends()
				e.Message = strings.ReplaceAll(e.Message, h.folder, "")
				ends = append(ends, e)
			}
			if ends[0] != ends[1] || ends[0].Reason != string(shim.NotStarted) || !strings.Contains(ends[0].Message, c.message) {
				t.Errorf("with the file: %+v\nwithout: %+v\nwant the same, with %q", ends[0], ends[1], c.message)
			}
		})
	}
}
