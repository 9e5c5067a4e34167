package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exit codes of a command that was not started, as of a shell.
const (
	codeNotFound   = 127
	codeNotStarted = 126
)

// lockDescriptor is the number under which a forked shim inherits the lock,
// begunDescriptor that of the pipe that it closes when it has begun.
const (
	lockDescriptor  = 3
	begunDescriptor = 4
)

// inheritance is what a shim has from the process that has started it.
type inheritance struct {
	lock, begun int   // descriptors
	user        *User // replaces the user of the spec; nil does not
}

// supervise is the life of a shim in a folder whose lock it has inherited. It
// returns once nothing of the member runs and the exit is durable. At most one shim
// ever starts the command: begun is there before the fork, and stays.
func supervise(f Folder, h inheritance) error {
	closeBegun := inheritBegun(h.begun)
	if err := unix.Flock(h.lock, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("%s: the lock was not handed over: %w", f, err)
	}
	unix.CloseOnExec(h.lock)
	if _, err := f.Begun(); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: there was a start before (%v)", f, err)
	}
	spec, err := f.Spec()
	if err != nil {
		return err
	}
	if h.user != nil {
		spec.User = h.user
	}
	boot, err := BootID()
	if err != nil {
		return err
	}
	self, err := Identify(os.Getpid(), boot)
	if err != nil {
		return err
	}
	// Whatever the command starts becomes a child of the shim when its parent ends.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := os.Chdir(string(f)); err != nil { // the socket's path is short then
		return err
	}
	listener, err := net.Listen("unix", socketFile)
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := f.write(begunFile, self); err != nil {
		return err
	}
	closeBegun()
	e := run(f, spec, boot, listener)
	defer f.releaseRoom()
	return f.writeEnd(e, mostTries, time.Second)
}

// mostTries bounds the tries to write an exit.
const mostTries = 60

// writeEnd writes the exit. Where the file system has no room, the output of the member gives
// way. After the last try the supervisor ends, and the agent, which finds no process any more,
// ends the member: the devices of a member are not held for a write.
func (f Folder) writeEnd(e Exit, tries int, wait time.Duration) (err error) {
	for range tries {
		if err = f.WriteExit(e); err == nil {
			return nil
		}
		f.dropLogs()
		if err = f.WriteExit(e); err == nil {
			return nil
		}
		fmt.Fprintln(os.Stderr, "the exit is not durable yet:", err)
		time.Sleep(wait)
	}
	return fmt.Errorf("the exit is not durable: %w", err)
}

// inheritBegun returns what tells the agent that the shim has begun. An agent of an
// older version hands no pipe over; the shim has made none itself yet.
func inheritBegun(descriptor int) (tell func()) {
	var stat unix.Stat_t
	if err := unix.Fstat(descriptor, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
		return func() {}
	}
	unix.CloseOnExec(descriptor)
	return func() { _ = unix.Close(descriptor) }
}

// run starts the command and waits until nothing of it runs.
func run(f Folder, spec Spec, boot string, listener net.Listener) Exit {
	log, err := newOutput(f, spec.logBytes(), spec.logFiles())
	if err != nil {
		return notStarted(codeNotStarted, err)
	}
	own, err := openOwn(spec, f, log)
	if err != nil {
		return notStarted(codeNotStarted, err)
	}
	defer own.close()
	defer removeCgroup(spec.Cgroup)
	work, err := divideCgroup(spec.Cgroup, spec.Limits)
	if err != nil {
		return notStarted(codeNotStarted, fmt.Errorf("limits: %w", err))
	}
	signals := takeSignals()
	c := newContainer(f, spec, work)
	defer c.remove()
	command, code, err := start(f, spec, work, c, own)
	own.streams.command.close()
	if err != nil {
		return notStarted(code, err)
	}
	if child, err := Identify(command.pid, boot); err == nil {
		_ = f.write(startedFile, child) // for people and signals: begun alone is relied on
	}
	drained := make(chan struct{})
	go func() { defer close(drained); own.copy() }()
	requests := make(chan request)
	further := newSessions(f, spec, work, c, own, requests)
	go serve(listener, requests, further)
	go obey(signals, requests)
	e := watch(f, &spec, command, work, requests, further)
	emptyCgroup(work)
	<-drained
	own.end(e)
	further.await()
	log.sync()
	_ = f.writeUse(work) // without it the samples of the agent count
	return e
}

// maxMessage bounds the message of a start that has failed, in bytes.
const maxMessage = 4 << 10

func notStarted(code int, err error) Exit {
	text := err.Error()
	return Exit{Code: code, Reason: NotStarted, Message: strings.ToValidUTF8(text[:min(len(text), maxMessage)], ""), At: time.Now()}
}

// start forks the member's own command into the cgroup work, where there is one, or starts it
// in its container.
func start(f Folder, spec Spec, work string, c *container, own *ownCommand) (p started, code int, err error) {
	std := own.streams.command.files
	if c != nil {
		if p, code, err = c.start(std); p.terminal != nil {
			own.setTerminal(p.terminal)
		}
		return p, code, err
	}
	env := append(append([]string(nil), spec.Env...), Marker+"="+string(f))
	sys := &syscall.SysProcAttr{Setpgid: true}
	if spec.TTY { // a session is a process group, too
		sys = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}
	p.pid, code, err = fork(spec, work, spec.Args, env, std, sys)
	p.group = p.pid
	return p, code, err
}

// fork starts a command with the user, the CPUs, the memory nodes and the folder of a spec, in
// the cgroup work, where there is one. The thread that forks has the command's affinity and
// memory policy, which the command inherits; it ends with the goroutine.
func fork(spec Spec, work string, args, env []string, std []*os.File, sys *syscall.SysProcAttr) (pid, code int, err error) {
	path, code, err := spec.find(args[0])
	if err != nil {
		return 0, code, err
	}
	attr := &syscall.ProcAttr{Dir: spec.Dir, Env: env, Sys: sys}
	for _, file := range std {
		attr.Files = append(attr.Files, file.Fd())
	}
	if u := spec.User; u != nil {
		attr.Sys.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
	}
	if work != "" {
		group, err := os.Open(work)
		if err != nil {
			return 0, codeNotStarted, err
		}
		defer group.Close()
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(group.Fd())
	}
	forked := make(chan struct{})
	go func() {
		defer close(forked)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if len(spec.CPUs) > 0 {
			var set unix.CPUSet
			for _, cpu := range spec.CPUs {
				set.Set(cpu)
			}
			if err = unix.SchedSetaffinity(0, &set); err != nil {
				err = fmt.Errorf("affinity to CPUs %v: %w", spec.CPUs, err)
				return
			}
		}
		preferNodes(spec.NUMANodes)
		if err = giveUpRights(); err != nil {
			return
		}
		pid, err = syscall.ForkExec(path, args, attr)
	}()
	<-forked
	switch {
	case errors.Is(err, fs.ErrNotExist): // as of a shell, also where a script's interpreter is not there
		return 0, codeNotFound, fmt.Errorf("start %s: %w", path, err)
	case err != nil:
		return 0, codeNotStarted, fmt.Errorf("start %s: %w", path, err)
	}
	return pid, 0, nil
}

// ownGrace is the grace of a command whose shim gets a SIGTERM.
const ownGrace = 30 * time.Second

// takeSignals takes the signals that a terminal, a log-out or an operator sends to the
// shim. They are taken before the command starts, and not ignored: a signal that the
// shim ignores, as under nohup, would be ignored by the command too.
func takeSignals() <-chan os.Signal {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	return signals
}

// obey makes a SIGTERM of the shim a stop of the command. The other signals have no
// effect.
func obey(signals <-chan os.Signal, requests chan<- request) {
	for s := range signals {
		if s == syscall.SIGTERM {
			requests <- request{Stop: true, GraceMillis: ownGrace.Milliseconds()}
		}
	}
}

// find sets the folder of a command, and returns the path of the program, with the rights of
// the command: an error shows the user no file of others.
func (s *Spec) find(name string) (path string, code int, err error) {
	code = codeNotStarted // until the user is another one
	err = withRightsOf(s.User, func() (err error) {
		if _, err := os.Stat(strings.TrimSuffix(s.Dir, "/") + "/."); err != nil && !s.AnyDir {
			return fmt.Errorf("working directory %s: not a directory that can be entered", s.Dir)
		} else if err != nil {
			s.Dir = "/"
		}
		code = codeNotFound
		path, err = lookUp(name, s.Env)
		return err
	})
	return path, code, err
}

// lookUp finds a program in the PATH of an environment.
func lookUp(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	dirs := "/usr/local/bin:/usr/bin:/bin"
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			dirs = value
		}
	}
	for _, dir := range filepath.SplitList(dirs) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && filepath.IsAbs(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("command %q is in no folder of PATH %s", name, dirs)
}

// ended is the end of a child.
type ended struct {
	pid    int
	status unix.WaitStatus
}

// reap collects the ends of all children until there are none. Once the member's own
// command, whose process is own, has ended, no session starts a command any more: so there
// are no children after the last.
func reap(own int, further *sessions, ends chan<- ended) {
	defer close(ends)
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD
			return
		case pid == own:
			further.close()
			ends <- ended{pid, status}
		case !further.ended(pid, status):
			ends <- ended{pid, status}
		}
	}
}

// hasChildren reports whether anything is left below the shim. A process whose parent
// has ended is a child of the shim, so no child means that nothing is left. It spares
// most ends the look at all processes of the host, which killAll takes.
func hasChildren() bool {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return !errors.Is(err, unix.ECHILD)
		}
	}
}

// killAll kills everything in the cgroup of the command, and everything below the shim.
func killAll(work string) {
	killCgroup(work)
	for _, pid := range descendants(os.Getpid()) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

func exitOf(status unix.WaitStatus, asked, forced bool) Exit {
	e := Exit{Reason: Completed, At: time.Now()}
	switch {
	case forced:
		e.Reason = Killed
	case asked:
		e.Reason = Stopped
	}
	if status.Signaled() {
		e.Signal = int(status.Signal())
		e.Code = 128 + e.Signal
	} else {
		e.Code = status.ExitStatus()
	}
	return e
}
