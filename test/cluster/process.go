package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/musterd/muster/test/canary"
)

// tailLines is how much of a program's log a failed test shows.
const tailLines = 60

// Process is a program on a host, which runs at most once at a time. It is
// killed when its test ends. A process that ends although nobody asked fails
// its test.
type Process struct {
	Name string
	*Host

	t       testing.TB
	log     string // file
	program string
	args    []string
	env     []string
	// hide puts files over others, by path, as the program sees them.
	hide map[string]string

	mu    sync.Mutex
	run   *run // nil before the first start
	count int
}

// run is one life of a process.
type run struct {
	cmd   *exec.Cmd
	ended chan struct{}
	asked bool // to end
}

func newProcess(t testing.TB, h *Host, dir, program string, env []string, args ...string) *Process {
	t.Helper()
	p := &Process{Name: h.Name, Host: h, t: t, log: filepath.Join(dir, "log"), program: program, args: args, env: env}
	t.Cleanup(func() {
		p.Kill()
		p.judge()
		if t.Failed() {
			p.keep()
			t.Logf("%s (%s, started %d times) wrote:\n%s", p.Name, p.IP, p.count, p.Tail())
		}
	})
	return p
}

// Start runs it. It must not run already.
func (p *Process) Start() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil && !p.run.over() {
		p.t.Fatalf("start %s: it runs", p.Name)
	}
	path, err := exec.LookPath(p.program)
	if err != nil {
		p.t.Fatal(err)
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	cmd := p.behind(path)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(p.log)}, p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	r := &run{cmd: cmd, ended: make(chan struct{})}
	p.run, p.count = r, p.count+1
	go p.await(r)
}

// behind is the program's command, with other files where some are hidden.
func (p *Process) behind(path string) *exec.Cmd {
	if len(p.hide) == 0 {
		return p.command(path, p.args...)
	}
	script := ""
	for over, file := range p.hide {
		script += fmt.Sprintf("mount --bind '%s' '%s' && ", file, over)
	}
	// ip netns exec gives the program a mount namespace of its own.
	return p.command("sh", append([]string{"-c", script + `exec "$0" "$@"`, path}, p.args...)...)
}

// await waits for the end of a life.
func (p *Process) await(r *run) {
	defer close(r.ended)
	_ = r.cmd.Wait() // ProcessState says how it ended
	p.mu.Lock()
	defer p.mu.Unlock()
	if !r.asked {
		p.t.Errorf("%s ended by itself: %s", p.Name, r.cmd.ProcessState)
	}
}

func (r *run) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// Alive reports whether it runs, or is paused.
func (p *Process) Alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run != nil && !p.run.over()
}

// Kill ends it with SIGKILL, paused or not, and waits for the end.
func (p *Process) Kill() { p.end(syscall.SIGKILL) }

// Stop ends it as systemd does, with SIGTERM, and returns its exit code. It
// waits as long as it takes; the test's own deadline ends it.
func (p *Process) Stop() int { return p.end(syscall.SIGTERM) }

func (p *Process) end(s syscall.Signal) int {
	p.mu.Lock()
	r := p.run
	if r == nil {
		p.mu.Unlock()
		return 0
	}
	r.asked = true
	p.mu.Unlock()
	p.signal(r, s)
	<-r.ended
	return r.cmd.ProcessState.ExitCode()
}

// Pause stops it where it is, as a hypervisor does.
func (p *Process) Pause() { p.toRun(syscall.SIGSTOP) }

// Resume lets it go on. One that is not paused goes on anyway.
func (p *Process) Resume() { p.toRun(syscall.SIGCONT) }

func (p *Process) toRun(s syscall.Signal) {
	p.mu.Lock()
	r := p.run
	p.mu.Unlock()
	if r != nil {
		p.signal(r, s)
	}
}

// signal sends a signal; a process that has ended takes none.
func (p *Process) signal(r *run, s syscall.Signal) {
	if err := r.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("%s: %s: %v", p.Name, s, err)
	}
}

// Restart starts it if it does not run, and lets it go on if it is paused.
func (p *Process) Restart() {
	p.t.Helper()
	if p.Alive() {
		p.Resume()
		return
	}
	p.Start()
}

// Log is what it wrote so far, over all its lives.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Error(err)
	}
	return string(text)
}

// Tail returns the last lines of the log.
func (p *Process) Tail() string {
	lines := strings.Split(strings.TrimRight(p.Log(), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// LogsVariable names a folder, if set, that the whole logs of failed tests are
// copied to.
const LogsVariable = "MUSTER_CLUSTER_LOGS"

func (p *Process) keep() {
	dir := os.Getenv(LogsVariable)
	if dir == "" {
		return
	}
	dir = filepath.Join(dir, strings.ReplaceAll(p.t.Name(), "/", "-"))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, p.Name), []byte(p.Log()), 0o600); err != nil {
		p.t.Error(err)
	}
}

// never is what no program may write.
var never = []string{"WARNING: DATA RACE", "panic:", "protocol_alarm", "goroutine 1 ["}

// judge fails the test for each text that no program may write, and for each secret.
func (p *Process) judge() {
	text := []byte(p.Log())
	canary.Judge(p.t, "the log of "+p.Name, string(text))
	for _, bad := range never {
		if at := bytes.Index(text, []byte(bad)); at >= 0 {
			p.t.Errorf("%s wrote %q:\n%s", p.Name, bad, text[at:min(len(text), at+4000)])
		}
	}
}
