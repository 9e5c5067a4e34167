package run_test

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// launched is work that the test has started as a launcher outside of the runner.
type launched struct {
	t     *testing.T
	cmd   *exec.Cmd
	input io.Writer
	lines *bufio.Reader
	ended chan struct{}
}

// launch starts a script in a session of its own.
func (h *host) launch(script string) *launched {
	h.t.Helper()
	l := &launched{t: h.t.(*testing.T), cmd: exec.Command("/bin/sh", "-c", script), ended: make(chan struct{})}
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var err error
	if l.input, err = l.cmd.StdinPipe(); err != nil { // open as long as the test
		h.t.Fatal(err)
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	l.lines = bufio.NewReader(out)
	if err := l.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		_ = syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL)
		<-l.ended
	})
	go func() { _, _ = l.cmd.Process.Wait(); close(l.ended) }()
	return l
}

// says waits for the next line of the script.
func (l *launched) says() string {
	l.t.Helper()
	line, err := l.lines.ReadString('\n')
	if err != nil {
		l.t.Fatalf("the script has said nothing more: %v", err)
	}
	return strings.TrimSpace(line)
}

// hears gives the script a line.
func (l *launched) hears() {
	l.t.Helper()
	if _, err := io.WriteString(l.input, "\n"); err != nil {
		l.t.Fatal(err)
	}
}

func (l *launched) number() int {
	l.t.Helper()
	n, err := strconv.Atoi(l.says())
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

// attach attaches a process to member 0 of transaction a.
func (h *host) attach(pid int) {
	h.t.Helper()
	p, _, err := shim.Judge(pid, h.boot)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.change(run.Attachment{Process: &p}); err != nil {
		h.t.Fatal(err)
	}
}

// change makes a change of member 0 of transaction a, and waits until it is durable.
func (h *host) change(a run.Attachment) error {
	made, err := h.runner.AttachExternal("a", 0, a)
	if err != nil {
		return err
	}
	return <-made
}

func (h *host) done(code int) error { return h.change(run.Attachment{Code: &code}) }

// TestAttachedWorkEndsWithItsCode: the code counts once nothing of the work runs.
func TestAttachedWorkEndsWithItsCode(t *testing.T) {
	h := newHost(t)
	h.start()
	l := h.launch("echo up; read line; exit 3")
	l.says()
	h.attach(l.cmd.Process.Pid)
	h.until(grant.WorkRunning)
	if err := h.done(3); err != nil {
		t.Fatal(err)
	}
	if !h.runner.Runs("a") {
		t.Error("the work has ended while its process runs")
	}
	if err := l.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := h.until(grant.WorkEnded)[0]; got.Code != 3 || got.Reason != "Completed" {
		t.Errorf("ended as %+v", got)
	}
	if err := h.done(3); err != nil {
		t.Errorf("the same code again: %v", err)
	}
	if err := h.done(4); !errors.Is(err, run.ErrDone) {
		t.Errorf("another code: %v", err)
	}
	p, _, err := shim.Judge(syscall.Getpid(), h.boot)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.change(run.Attachment{Process: &p}); !errors.Is(err, run.ErrDone) {
		t.Errorf("a process after the end: %v", err)
	}
}

// TestACodeWithoutProcessesIsAnEnd: a launcher that attaches nothing may report the end.
func TestACodeWithoutProcessesIsAnEnd(t *testing.T) {
	h := newHost(t)
	h.start()
	if err := h.done(0); err != nil {
		t.Fatal(err)
	}
	if got := h.until(grant.WorkEnded)[0]; !got.IsSuccess() {
		t.Errorf("ended as %+v", got)
	}
}

// TestWhatAttachedWorkStartsKeepsTheGrant: a process whose parents have ended counts on,
// also for the next runner.
func TestWhatAttachedWorkStartsKeepsTheGrant(t *testing.T) {
	h := newHost(t)
	h.start()
	// The grandchild leaves the session, and its parents end once the test says so.
	l := h.launch(`exec 3<&0; setsid sh -c 'echo $$; exec sleep 1000' & read line <&3; exit 0`)
	child := l.number()
	h.attach(l.cmd.Process.Pid)
	h.attach(l.cmd.Process.Pid)       // its answer comes after the look that has found the child
	if err := h.done(0); err != nil { // from now on it is looked at often
		t.Fatal(err)
	}
	notes := func() (pids []int) {
		a, err := h.folder(0).Attached()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range a.Processes {
			pids = append(pids, p.PID)
		}
		return pids
	}
	if err := l.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for got := notes(); len(got) != 1 || got[0] != child; got = notes() {
		time.Sleep(10 * time.Millisecond)
	}
	h.leave()
	h.start()
	if h.until(grant.WorkRunning); !h.runner.Runs("a") {
		t.Error("the work has ended while the child runs")
	}
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := h.until(grant.WorkEnded)[0]; !got.IsSuccess() {
		t.Errorf("ended as %+v", got)
	}
}

// TestAStopOfAttachedWork: SIGTERM, the grace, SIGKILL, for all that the work has started.
func TestAStopOfAttachedWork(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		grace  time.Duration
		code   *int // that the launcher reports once the work has ended
		want   string
		number int
	}{
		"ends by SIGTERM":            {"sleep 1000 & trap 'exit 0' TERM; echo up; wait", time.Hour, new(int), "Stopped", 0},
		"reports no code":            {"sleep 1000 & trap 'exit 0' TERM; echo up; wait", time.Hour, nil, "Stopped", 255},
		"outlives SIGTERM":           {"trap '' TERM; echo up; while :; do sleep 0.05; done", 200 * time.Millisecond, nil, "Killed", 255},
		"has no grace":               {"trap '' TERM; echo up; while :; do sleep 0.05; done", 0, nil, "Killed", 255},
		"has left a child that runs": {"setsid sh -c 'trap \"\" TERM; echo up; while :; do sleep 0.05; done' & wait", 300 * time.Millisecond, nil, "Killed", 255},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.start()
			l := h.launch(c.script)
			l.says()
			h.attach(l.cmd.Process.Pid)
			h.until(grant.WorkRunning)
			h.runner.Stop("a", time.Now().Add(c.grace))
			<-l.ended
			if c.code != nil {
				if err := h.done(*c.code); err != nil {
					t.Error(err)
				}
			}
			if got := h.until(grant.WorkEnded)[0]; got.Code != c.number || got.Reason != c.want {
				t.Errorf("ended as %+v, want %s with code %d", got, c.want, c.number)
			}
		})
	}
}

// TestAStopSparesWhatTheWorkStartsOnItsWayToTheEnd: a command of a handler runs to its end.
func TestAStopSparesWhatTheWorkStartsOnItsWayToTheEnd(t *testing.T) {
	h := newHost(t)
	h.start()
	// The shell forks a command that outlives several looks.
	l := h.launch("trap 'sh -c \"sleep 0.5; exit 5\"; echo $?; exit 0' TERM; echo up; while :; do sleep 0.05; done")
	l.says()
	h.attach(l.cmd.Process.Pid)
	h.runner.Stop("a", time.Now().Add(time.Hour))
	if got := l.number(); got != 5 {
		t.Errorf("the command of the handler has ended with %d, want 5", got)
	}
	h.until(grant.WorkEnded)
}

// TestAStopOfWorkThatHasEndedWaitsForNobody: nothing has got a signal, so no code is awaited.
func TestAStopOfWorkThatHasEndedWaitsForNobody(t *testing.T) {
	h := newHost(t)
	h.start()
	l := h.launch("read line")
	h.attach(l.cmd.Process.Pid)
	h.until(grant.WorkRunning)
	if err := l.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-l.ended
	begun := time.Now()
	h.runner.Stop("a", begun.Add(time.Hour))
	h.until(grant.WorkEnded)
	if took := time.Since(begun); took > time.Second {
		t.Errorf("the end has taken %s", took)
	}
}

// TestAttachedWorkOutlivesTheRunner: the next runner stops it.
func TestAttachedWorkOutlivesTheRunner(t *testing.T) {
	h := newHost(t)
	h.start()
	l := h.launch("echo up; exec sleep 1000")
	l.says()
	h.attach(l.cmd.Process.Pid)
	h.leave()
	h.start()
	h.until(grant.WorkRunning)
	h.runner.Attach("a", []run.Member{h.shell(0, "touch $T/started")}) // of a leader that has not heard of it
	h.attach(l.cmd.Process.Pid)                                        // the launcher had no answer
	h.runner.Stop("a", time.Now().Add(time.Hour))
	<-l.ended
	if got := h.until(grant.WorkEnded)[0]; got.Reason != "Stopped" {
		t.Errorf("ended as %+v", got)
	}
	if _, err := h.folder(0).Begun(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the runner has started the member: %v", err)
	}
}

// TestAttachedWorkWithoutAGrantIsLeftAlone: it ends without a signal.
func TestAttachedWorkWithoutAGrantIsLeftAlone(t *testing.T) {
	h := newHost(t)
	h.start()
	l := h.launch("trap 'echo signaled' TERM; echo up; read line")
	l.says()
	h.attach(l.cmd.Process.Pid)
	h.until(grant.WorkRunning)
	none := func(resource.TxID) bool { return false }
	h.runner.Retain(none)
	if !h.runner.Runs("a") {
		t.Error("the work has ended while its process runs")
	}
	if err := l.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	h.until(grant.WorkEnded)
	h.runner.Retain(none)
	if h.runner.Has("a") {
		t.Error("the work is still reported")
	}
}

// TestAMemberWithACommandTakesNoAttachment.
func TestAMemberWithACommandTakesNoAttachment(t *testing.T) {
	h := newHost(t)
	h.start()
	h.runner.Attach("a", []run.Member{h.shell(0, "sleep 1000")})
	h.until(grant.WorkRunning)
	if err := h.done(0); !errors.Is(err, run.ErrStarted) {
		t.Errorf("error %v", err)
	}
}

// TestTheAttachedProcessesAreBounded.
func TestTheAttachedProcessesAreBounded(t *testing.T) {
	h := newHost(t)
	h.start()
	l := h.launch("i=0; while [ $i -le 64 ]; do sleep 1000 & echo $!; i=$((i+1)); done; wait")
	for range shim.MaxAttached {
		h.attach(l.number())
	}
	p, _, err := shim.Judge(l.number(), h.boot)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.change(run.Attachment{Process: &p}); !errors.Is(err, run.ErrMany) {
		t.Errorf("one more: %v", err)
	}
	if err := h.done(0); err != nil {
		t.Errorf("the end: %v", err)
	}
}

// TestAFolderOfAnotherBootHasNoProcesses: a number of this boot that is in a note of an
// earlier one is another process.
func TestAFolderOfAnotherBootHasNoProcesses(t *testing.T) {
	h := newHost(t)
	l := h.launch("trap 'echo signaled' TERM; echo up; read line")
	l.says()
	p, _, err := shim.Judge(l.cmd.Process.Pid, h.boot)
	if err != nil {
		t.Fatal(err)
	}
	p.BootID = "earlier"
	h.start() // makes the folder of all starts
	h.leave()
	if _, err := h.folder(0).Make(); err != nil {
		t.Fatal(err)
	}
	if err := h.folder(0).WriteAttached(shim.Attached{Processes: []shim.Process{p}}); err != nil {
		t.Fatal(err)
	}
	h.start()
	h.until(grant.WorkRunning) // its launcher may attach anew
	h.runner.Stop("a", time.Now())
	h.until(grant.WorkEnded)
	select {
	case <-l.ended:
		t.Error("a process of this boot was killed")
	default:
	}
}
