package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
)

// This file runs a member's commands in a root file system of their own. The host's
// container tool (crun) sets the container up as the member's user, in a user namespace
// that has this user alone: it can do nothing there that the user cannot do outside. The
// tool ends once the command runs. The command is a child of the shim then, in the cgroup
// and on the CPUs as without a container: signals, ends, logs, use and kills are those of any other
// command.

// Container is the container of a member.
type Container struct {
	// Tool is the host's container tool, an absolute path.
	Tool string `json:"tool"`
	// Rootfs is the folder of the root file system, an absolute path. It is read-only in the
	// container.
	Rootfs string `json:"rootfs,omitempty"`
	// Bundle is the folder of an OCI bundle, an absolute path, in place of Rootfs. Its
	// configuration has the command and the folder where the spec has none.
	Bundle string `json:"bundle,omitempty"`
	// Within are folders of which one has the root file system, once symbolic links are
	// followed.
	Within []string `json:"within"`
	// Env is the environment that the commands begin with, as NAME=VALUE: variables of the
	// bundle and of the spec win over it, in this order.
	Env []string `json:"env,omitempty"`
	// Init is the path of a program with Become and without libraries: the first process in a
	// process namespace of the container. "" has no such namespace.
	Init string `json:"init,omitempty"`
	// Data are folders and files of the host that the job has mounted, each in one of the
	// folders DataWithin, once symbolic links are followed.
	Data       []Data   `json:"data,omitempty"`
	DataWithin []string `json:"dataWithin,omitempty"`
	// Mounts are further folders and files of the host, those of devices for the most part.
	Mounts []Mount `json:"mounts,omitempty"`
	// Hooks are programs of the host that the tool runs while it sets the container up, by
	// their names in the OCI runtime specification.
	Hooks map[string][]Hook `json:"hooks,omitempty"`
}

// Mount is a folder or a file that the container has.
type Mount struct {
	Source      string   `json:"source"`
	Destination string   `json:"destination"`
	Options     []string `json:"options,omitempty"`
}

// Hook is a program of the host.
type Hook struct {
	Path    string   `json:"path"`
	Args    []string `json:"args,omitempty"`
	Env     []string `json:"env,omitempty"`
	Timeout *int     `json:"timeout,omitempty"` // in seconds
}

// Bounds of a Container.
const (
	maxWithin = 64
	maxMounts = 1024
	maxHooks  = 64
)

// hookNames are the times at which a hook may run.
var hookNames = []string{"prestart", "createRuntime", "createContainer", "startContainer", "poststart"}

// check judges a container. The error names the field.
func (c *Container) check() error {
	if c == nil {
		return nil
	}
	for field, path := range map[string]string{"tool": c.Tool, "rootfs": c.Rootfs, "bundle": c.Bundle, "init": c.Init} {
		if path == "" && field != "tool" {
			continue
		}
		if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
			return fmt.Errorf("spec: container.%s %q: want an absolute path", field, path)
		}
	}
	switch {
	case (c.Rootfs == "") == (c.Bundle == ""):
		return fmt.Errorf("spec: container.rootfs %q and bundle %q: want one of both", c.Rootfs, c.Bundle)
	case len(c.Within) == 0 || len(c.Within) > maxWithin:
		return fmt.Errorf("spec: container.within: %d folders, want 1..%d", len(c.Within), maxWithin)
	case len(c.Mounts) > maxMounts:
		return fmt.Errorf("spec: container.mounts: %d, want at most %d", len(c.Mounts), maxMounts)
	}
	for i, m := range c.Mounts {
		if !filepath.IsAbs(m.Source) || !filepath.IsAbs(m.Destination) {
			return fmt.Errorf("spec: container.mounts[%d]: %q at %q: want absolute paths", i, m.Source, m.Destination)
		}
	}
	count := 0
	for name, hooks := range c.Hooks {
		if !slices.Contains(hookNames, name) {
			return fmt.Errorf("spec: container.hooks: %q: want one of %s", name, strings.Join(hookNames, ", "))
		}
		for i, h := range hooks {
			if !filepath.IsAbs(h.Path) {
				return fmt.Errorf("spec: container.hooks.%s[%d]: path %q: want an absolute path", name, i, h.Path)
			}
		}
		count += len(hooks)
	}
	if count > maxHooks {
		return fmt.Errorf("spec: container.hooks: %d, want at most %d", count, maxHooks)
	}
	return errors.Join(checkVariables("container.env", c.Env), c.checkData())
}

// isBelow reports whether a path is a folder or below it. Both are absolute and clean.
func isBelow(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// container is a Container that runs.
type container struct {
	folder Folder
	spec   Spec
	work   string   // the cgroup of its commands; "" for none
	env    []string // of the tool
	// commandEnv and dir are the environment and the working directory of the commands, from
	// the start of the member's own on.
	args       []string // of the member's own command
	commandEnv []string
	dir        string
	// state is the folder of the tool's own state. It is the user's, and in memory: nothing
	// of the container outlives the host's boot.
	state string
}

// containerID is the name of the one container in a state folder.
const containerID = "member"

// startMost bounds the time in which the tool sets a container up, with its hooks.
const startMost = time.Minute

// newContainer is the container of a spec, nil without one.
func newContainer(f Folder, s Spec, work string) *container {
	if s.Container == nil {
		return nil
	}
	c := &container{folder: f, spec: s, work: work, env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", Marker + "=" + string(f)}}
	c.state = filepath.Join("/dev/shm", ".muster-"+drawName(16))
	c.dir, c.spec.Dir, c.spec.AnyDir = s.Dir, "/", false // the tool itself begins in /
	return c
}

// start sets the container up and starts the member's own command. It returns the process of
// the command, which is below the shim, and the person's end of its terminal, where it has one.
func (c *container) start(std []*os.File) (p started, code int, err error) {
	var config []byte
	err = withRightsOf(c.spec.User, func() (err error) {
		config, err = c.config()
		return err
	})
	if err != nil {
		return started{}, codeNotStarted, err
	}
	if c.spec.Container.Init == "" {
		return c.enter("run", config, std, c.spec.TTY)
	}
	if code, err = c.startInit(config); err != nil {
		return started{}, code, err
	}
	if config, err = json.Marshal(c.process(c.args, c.commandEnv, c.terminal())); err != nil {
		return started{}, codeNotStarted, err
	}
	return c.enter("exec", config, std, c.spec.TTY)
}

// enter has the tool start a process of the container, and waits for the tool.
func (c *container) enter(verb string, config []byte, std []*os.File, tty bool) (p started, code int, err error) {
	t, err := c.ask(verb, config, std, tty)
	if err != nil {
		c.clear()
		return started{}, codeNotStarted, err
	}
	defer t.close()
	alarm := time.AfterFunc(startMost, func() { killAll(c.work) })
	var status unix.WaitStatus
	for {
		if _, err = unix.Wait4(t.pid, &status, 0, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if !alarm.Stop() {
		err = t.late()
	}
	if code = codeNotStarted; err == nil {
		p, code, err = t.result(status)
	}
	if err == nil && !isBelowShim(p.pid) {
		code, err = codeNotStarted, t.stranger(p.pid)
	}
	if err != nil {
		p.close()
		c.clear()
		return started{}, code, err
	}
	p.setGroup()
	return p, 0, nil
}

// started is a command that has just been started.
type started struct {
	pid      int
	group    int      // its process group, and its session where it has one of its own
	terminal *os.File // the person's end; nil without one
}

// setGroup notes the group of a command in a container. The tool may have begun its session in
// a process that has ended.
func (p *started) setGroup() {
	p.group = p.pid
	if stat, err := readStat(p.pid); err != nil || stat.group != stat.session {
		return
	} else if own, err := unix.Getsid(0); err == nil && stat.session > 1 && stat.session != own {
		p.group = stat.session
	}
}

func (p started) close() {
	if p.terminal != nil {
		_ = p.terminal.Close()
	}
}

// isBelowShim reports whether a process, which may have ended, is the shim's child or below
// one. Its user writes the number, which may be any.
func isBelowShim(pid int) bool {
	for range walks {
		for at, steps := pid, 0; steps < maxDepth; steps++ {
			stat, err := readStat(at)
			switch {
			case err != nil && at == pid || err == nil && stat.parent <= 1:
				return false
			case err != nil: // a parent has just ended: its children have another one now
				steps = maxDepth
			case stat.parent == os.Getpid():
				return true
			default:
				at = stat.parent
			}
		}
	}
	return false
}

// walks bounds the tries of isBelowShim, and maxDepth the steps of each.
const (
	walks    = 16
	maxDepth = 64
)

// clear kills what a failed start has left.
func (c *container) clear() {
	for {
		killAll(c.work)
		_, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if errors.Is(err, unix.ECHILD) {
			return
		}
		time.Sleep(killWait)
	}
}

// remove removes the state folder, as its user. There are no children of the shim.
func (c *container) remove() {
	if c == nil {
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	spec := c.spec
	spec.Env = c.env
	pid, _, err := fork(spec, "", []string{"rm", "-rf", "--", c.state}, c.env, []*os.File{null, null, null}, &syscall.SysProcAttr{Setpgid: true})
	for err == nil {
		if _, err = unix.Wait4(pid, nil, 0, nil); errors.Is(err, unix.EINTR) {
			err = nil
			continue
		}
		return
	}
}

// toolRun is one run of the tool, which ends once its command runs.
type toolRun struct {
	tool        string
	pid         int // of the tool
	files       []*os.File
	number, log *os.File // the number of the command's process, and the tool's own errors
	console     *console // nil for a command without a terminal
}

func (t *toolRun) close() {
	closeAll(t.files)
	t.console.close()
}

func (t *toolRun) late() error {
	return fmt.Errorf("%s: the command was not started within %s", t.tool, startMost)
}

func (t *toolRun) stranger(pid int) error {
	return fmt.Errorf("%s: process %d of the container is not below the supervisor", t.tool, pid)
}

// ask starts the tool. The tool reads its configuration from memory: neither it nor its user
// can enter the folder of the start.
func (c *container) ask(verb string, config []byte, std []*os.File, tty bool) (*toolRun, error) {
	t := &toolRun{tool: c.spec.Container.Tool}
	fail := func(err error) (*toolRun, error) {
		t.close()
		return nil, err
	}
	for _, name := range []string{"config", "number", "log"} {
		fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
		if err != nil {
			return fail(os.NewSyscallError("memfd_create", err))
		}
		t.files = append(t.files, os.NewFile(uintptr(fd), name))
	}
	if _, err := t.files[0].Write(config); err != nil {
		return fail(err)
	}
	t.number, t.log = t.files[1], t.files[2]
	fd := func(i int) string { return "/proc/self/fd/" + strconv.Itoa(len(std)+i) }
	args := []string{t.tool, "--root=" + c.state, "--cgroup-manager=disabled", "--log=" + fd(2), "--log-format=json", verb, "--detach", "--pid-file=" + fd(1)}
	if tty {
		var err error
		if t.console, err = openConsole(); err != nil {
			return fail(err)
		}
		t.files = append(t.files, t.console.folder)
		args = append(args, "--console-socket="+fd(3)+"/"+t.console.name)
	}
	if verb == "run" {
		args = append(args, "--bundle=/", "--config="+fd(0), containerID)
	} else {
		args = append(args, "--process="+fd(0), containerID)
	}
	spec := c.spec
	spec.Env = c.env
	var err error
	t.pid, _, err = fork(spec, c.work, args, c.env, append(slices.Clone(std), t.files...), &syscall.SysProcAttr{Setpgid: true})
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the container tool is not there: %w", err)
	}
	if err != nil {
		return fail(err)
	}
	return t, nil
}

// maxToolLog bounds what is read of the tool's errors, in bytes, and maxToolMessage what is
// shown of them.
const (
	maxToolLog     = 64 << 10
	maxToolMessage = 1 << 10
)

// result is the command, once the tool has ended.
func (t *toolRun) result(status unix.WaitStatus) (p started, code int, err error) {
	if status.Exited() && status.ExitStatus() == 0 {
		text, err := readStart(t.number, 32)
		if err != nil {
			return started{}, codeNotStarted, err
		}
		if p.pid, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil || p.pid < 2 {
			return started{}, codeNotStarted, fmt.Errorf("%s: %q is no number of a process", t.tool, text)
		}
		if t.console != nil {
			if p.terminal, err = t.console.take(); err != nil {
				return started{}, codeNotStarted, fmt.Errorf("%s: %w", t.tool, err)
			}
		}
		return p, 0, nil
	}
	log, err := readStart(t.log, maxToolLog)
	if err != nil {
		return started{}, codeNotStarted, err
	}
	message := toolMessage(log)
	if message == "" {
		message = fmt.Sprintf("it has ended with code %d, signal %d", max(status.ExitStatus(), 0), max(int(status.Signal()), 0))
	}
	code = codeNotStarted
	if strings.HasPrefix(message, "executable file ") {
		code = codeNotFound
	}
	return started{}, code, fmt.Errorf("%s: %s", t.tool, message)
}

// readStart reads the first bytes of a file.
func readStart(file *os.File, most int) ([]byte, error) {
	data := make([]byte, most)
	n, err := unix.Pread(int(file.Fd()), data, 0)
	if err != nil {
		return nil, os.NewSyscallError("pread", err)
	}
	return data[:n], nil
}

// toolMessage is the first error in the tool's log, which has a JSON document a line. "" is
// none.
func toolMessage(log []byte) string {
	for line := range strings.Lines(string(log)) {
		var entry struct {
			Message string `json:"msg"`
			Level   string `json:"level"`
		}
		if json.Unmarshal([]byte(line), &entry) != nil || entry.Level != "error" {
			continue
		}
		text := strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, entry.Message)
		return strings.ToValidUTF8(text[:min(len(text), maxToolMessage)], "")
	}
	return ""
}

// drawName draws a name of n bytes, in hexadecimal digits, that nobody can guess. Package
// crypto/rand would test its ciphers at the start of each member.
func drawName(n int) string {
	name := make([]byte, n)
	for filled := 0; filled < n; {
		more, err := unix.Getrandom(name[filled:], 0)
		if err != nil && err != unix.EINTR {
			panic(os.NewSyscallError("getrandom", err)) // the kernel has it since Linux 3.17
		}
		filled += max(0, more)
	}
	return fmt.Sprintf("%x", name)
}
