package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exec is a session in a member that runs. It has a further command: with the user, the
// CPUs, the memory nodes, the cgroup, the folder and the environment of the member's own
// command. Its output goes to the person who asked for it, and not into the log. Or the
// session is attached to the member's own command.
type Exec struct {
	Args []string `json:"args,omitempty"`
	// Attach: the session is with the member's own command, without Args and TTY, and the
	// command outlives it.
	Attach bool `json:"attach,omitempty"`
	// From, with Attach, is the offset in the output at which the session begins, or the
	// next one that is kept; nil is the end of the present output.
	From *int64 `json:"from,omitempty"`
	// TTY: the command has a terminal, of the size Window and the kind Term.
	TTY    bool   `json:"tty,omitempty"`
	Window Window `json:"window,omitzero"`
	Term   string `json:"term,omitempty"`
	// Input: the person sends the standard input; otherwise there is none.
	Input bool `json:"input,omitempty"`
}

const (
	// MaxExecArgs bounds the arguments, MaxExecBytes the bytes of all of them.
	MaxExecArgs  = 1024
	MaxExecBytes = 16 << 10
	// MaxTerm bounds the name of a kind of terminal, in bytes.
	MaxTerm = 64
	// MaxSessions bounds the sessions in one member at a time.
	MaxSessions = 8
)

// Check returns why an Exec cannot be started. The error names the field.
func (e *Exec) Check() error {
	sum := 0
	for i, arg := range e.Args {
		sum += len(arg)
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("args[%d] has a zero byte", i)
		}
	}
	switch {
	case e.Attach && (len(e.Args) > 0 || e.TTY || e.Term != ""):
		return errors.New("attach: together with args, tty or term, which are of a further command")
	case e.From != nil && (!e.Attach || *e.From < 0):
		return fmt.Errorf("from: %d: want an offset from 0, and attach", *e.From)
	case !e.Attach && (len(e.Args) == 0 || e.Args[0] == ""):
		return errors.New("args: no command")
	case len(e.Args) > MaxExecArgs:
		return fmt.Errorf("args: %d arguments, want at most %d", len(e.Args), MaxExecArgs)
	case sum > MaxExecBytes:
		return fmt.Errorf("args: %d bytes, want at most %d", sum, MaxExecBytes)
	case len(e.Term) > MaxTerm || strings.ContainsFunc(e.Term, notOfTerm):
		return fmt.Errorf("term: %q: want at most %d letters, digits and -+._", e.Term[:min(len(e.Term), MaxTerm)], MaxTerm)
	}
	return nil
}

// notOfTerm reports whether a name of terminfo(5) has no such character.
func notOfTerm(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-+._", r)
}

const (
	// hangUpGrace is the time between SIGHUP and SIGKILL for a command whose person has
	// gone.
	hangUpGrace = time.Second
	// lastWords bounds the time that the sessions have after the end of the member.
	lastWords = time.Second
)

// sessions are the further commands of a member, and what is attached to its own command,
// for as long as that runs. Each session has a goroutine of its own.
type sessions struct {
	folder Folder
	spec   Spec
	work   string     // the cgroup of the commands; "" for none
	inside *container // nil for a member without one
	own    *ownCommand
	// requests take signals for the member's own command while it runs.
	requests chan<- request

	running sync.WaitGroup

	mu     sync.Mutex
	closed bool // the member's own command has ended
	open   int
	// ends has each running command by its process; the capacity of a channel is 1.
	ends map[int]chan unix.WaitStatus
	// setups counts the commands that the container tool is starting; strays are the ends of
	// other processes meanwhile, of which one may be such a command.
	setups int
	strays map[int]unix.WaitStatus
}

func newSessions(f Folder, s Spec, work string, inside *container, own *ownCommand, requests chan<- request) *sessions {
	return &sessions{folder: f, spec: s, work: work, inside: inside, own: own, requests: requests, ends: map[int]chan unix.WaitStatus{}, strays: map[int]unix.WaitStatus{}}
}

// close has no command start any more.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// ended notes the end of a process, and reports whether it was that of a session.
func (s *sessions) ended(pid int, status unix.WaitStatus) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	end, ours := s.ends[pid]
	if ours {
		delete(s.ends, pid)
		end <- status
	} else if s.setups > 0 && len(s.strays) < maxStrays {
		s.strays[pid] = status
	}
	return ours
}

// await gives the sessions time to hand on the ends of their commands.
func (s *sessions) await() {
	over := make(chan struct{})
	go func() { defer close(over); s.running.Wait() }()
	select {
	case <-over:
	case <-time.After(lastWords):
	}
}

// enter counts one more session, or says why there is none.
func (s *sessions) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errors.New(answerEnded)
	case s.open == MaxSessions:
		return errors.New(answerMany)
	}
	s.open++
	s.running.Add(1)
	return nil
}

func (s *sessions) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.running.Done()
}

// serve answers a request for a session, and hands frames on until its end.
func (s *sessions) serve(c net.Conn, e Exec) {
	defer c.Close()
	err := s.enter()
	if err == nil {
		defer s.leave()
		if e.Attach && e.Input {
			if err = s.own.takeInput(); err == nil {
				defer s.own.giveInput()
			}
		}
	}
	if err != nil {
		_, _ = c.Write([]byte(err.Error() + "\n"))
		return
	}
	begin := s.own.begin(e) // before the answer: output after it belongs to the session
	if _, err := c.Write([]byte(answerOK)); err != nil {
		return
	}
	_ = c.SetDeadline(time.Time{})
	to := &frameWriter{to: c}
	var end Exit
	if e.Attach {
		var over bool
		if end, over = s.attach(c, to, e, begin); !over {
			return
		}
	} else {
		end = s.run(c, to, e)
	}
	end.Version = version
	exit, err := json.Marshal(end)
	if err != nil {
		panic(err) // an Exit can always be encoded
	}
	_ = to.write(FrameExit, exit)
}

// run runs a command until its end. The command ends with its person.
func (s *sessions) run(c net.Conn, to *frameWriter, e Exec) Exit {
	var std *streams
	var err error
	if e.TTY && s.inside != nil {
		std, err = nullStreams()
	} else {
		std, err = openStreams(e, s.spec.User)
	}
	if err != nil {
		return notStarted(codeNotStarted, err)
	}
	defer std.close()
	command, end, code, err := s.fork(e, std)
	std.command.close()
	if err != nil {
		return notStarted(code, err)
	}
	gone := make(chan struct{})
	input := newInput(std.in, e.TTY, to)
	go func() {
		defer close(gone)
		defer input.close()
		input.read(c, std, func(n syscall.Signal) { s.signal(command, n) })
	}()
	var copies sync.WaitGroup
	exited := make(chan struct{})
	for _, o := range std.out {
		copies.Go(func() { o.copy(to, exited) })
	}
	var status unix.WaitStatus
	lost := false
	select {
	case status = <-end:
	case <-gone:
		lost = true
		status = hangUp(command.group, end, std)
	}
	signalSession(command.group, syscall.SIGKILL) // what the command has left behind
	close(exited)
	for _, o := range std.out {
		o.wake()
	}
	copies.Wait()
	_ = c.SetReadDeadline(time.Now())
	<-gone
	return exitOf(status, lost, false)
}

// fork starts a command. ended cannot come before the command is among ends.
func (s *sessions) fork(e Exec, std *streams) (command started, end <-chan unix.WaitStatus, code int, err error) {
	if s.inside != nil {
		return s.enterContainer(e, std)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return started{}, nil, codeNotStarted, errors.New(answerEnded)
	}
	pid, code, err := fork(s.spec, s.work, e.Args, s.environment(e), std.command.files, &syscall.SysProcAttr{Setsid: true, Setctty: e.TTY})
	if err != nil {
		return started{}, nil, code, err
	}
	waits := make(chan unix.WaitStatus, 1)
	s.ends[pid] = waits
	return started{pid: pid, group: pid}, waits, 0, nil
}

// environment is that of a command.
func (s *sessions) environment(e Exec) []string {
	var env []string
	if s.inside != nil {
		env = slices.Clone(s.inside.commandEnv)
	} else {
		env = append(append([]string(nil), s.spec.Env...), Marker+"="+string(s.folder))
	}
	if e.Term != "" {
		env = append(env, "TERM="+e.Term)
	}
	return env
}

// signal signals the process group of a command that has not ended.
func (s *sessions) signal(command started, n syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, runs := s.ends[command.pid]; runs {
		_ = unix.Kill(-command.group, n)
	}
}

// hangUp ends a command whose person has gone, as the end of a terminal does, and by force
// after the grace.
func hangUp(leader int, end <-chan unix.WaitStatus, std *streams) unix.WaitStatus {
	std.close()
	signalSession(leader, syscall.SIGHUP)
	wait := hangUpGrace
	for {
		select {
		case status := <-end:
			return status
		case <-time.After(wait):
			signalSession(leader, syscall.SIGKILL)
			wait = killWait
		}
	}
}

// signalSession signals the processes of the session that a process has begun. A process of
// another member may have the number by now, but is not below this shim.
func signalSession(leader int, s syscall.Signal) {
	for _, pid := range descendants(os.Getpid()) {
		if stat, err := readStat(pid); err == nil && stat.session == leader {
			_ = unix.Kill(pid, s)
		}
	}
}

// frameWriter writes frames of several goroutines, up to the exit.
type frameWriter struct {
	mu   sync.Mutex
	to   io.Writer
	last bool // the exit is written
}

func (w *frameWriter) write(kind FrameKind, payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last {
		return io.ErrClosedPipe
	}
	w.last = kind == FrameExit
	return WriteFrame(w.to, kind, payload)
}
