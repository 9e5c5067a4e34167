package integration

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/test/canary"
)

const (
	// patience bounds what takes well under a second on an idle machine.
	patience = 30 * time.Second
	// tailLines is how much of a program's log a failed test shows.
	tailLines = 120
)

// output keeps what a program writes. It is safe for concurrent use.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (r *output) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

// String returns what was written so far.
func (r *output) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// process is one started program. It is killed when its test ends.
type process struct {
	name           string
	cmd            *exec.Cmd
	stdout, stderr output
	ended          chan struct{} // closed once it was waited for
	restored       bool          // its store is restored, which it may sound alarms for
}

// launch starts a program of PATH with exactly this environment (and PATH).
// Its log is shown when the test fails, and read for what must never be in it.
func launch(t *testing.T, name string, env []string, program string, args ...string) *process {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{name: name, cmd: exec.Command(path, args...), ended: make(chan struct{})}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // ProcessState says how it ended
	}()
	t.Cleanup(func() {
		p.kill(t)
		p.judge(t)
		if t.Failed() {
			t.Logf("%s (pid %d, %s) wrote:\n%s", p.name, p.cmd.Process.Pid, p.cmd.ProcessState, tail(p.stdout.String()+p.stderr.String()))
		}
	})
	return p
}

// aged are the alarms of an agent whose store is restored: that it is in
// quarantine, and what it has seen of records that came back before it was.
var aged = regexp.MustCompile(`protocol_alarm node=\S+ alarm="(quarantine: the store (is at|was restored)|transaction \S+ is COMMITTED at revision \d+ and (NONE|TOMBSTONE) here)`)

// judge fails the test for what no program may ever write.
func (p *process) judge(t *testing.T) {
	t.Helper()
	text := p.stderr.String()
	canary.Judge(t, "the log of "+p.name, text)
	if p.restored {
		text = aged.ReplaceAllString(text, "")
	}
	for _, never := range []string{"WARNING: DATA RACE", "panic:", "protocol_alarm", "goroutine 1 ["} {
		if at := strings.Index(text, never); at >= 0 {
			t.Errorf("%s wrote %q:\n%s", p.name, never, text[at:min(len(text), at+4000)])
		}
	}
}

// tail returns the last lines of a text.
func tail(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// alive reports whether it has not ended.
func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill ends it with SIGKILL and waits for the end.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	<-p.ended
}

// signal sends a signal; a process that has ended takes none.
func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("%s: %s: %v", p.name, s, err)
	}
}

// wait returns the exit code, and fails the test if it does not end in time.
func (p *process) wait(t *testing.T, within time.Duration) int {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	select {
	case <-p.ended:
	case <-deadline.C:
		p.signal(t, syscall.SIGQUIT) // its log then shows where it hangs
		<-p.ended
		t.Fatalf("%s did not end within %s", p.name, within)
	}
	return p.cmd.ProcessState.ExitCode()
}

// mustStop asks for a clean end and checks that it comes, with exit code 0.
func (p *process) mustStop(t *testing.T, s syscall.Signal) {
	t.Helper()
	p.signal(t, s)
	if code := p.wait(t, patience); code != 0 {
		t.Errorf("%s ended with %s after %s, want exit code 0", p.name, p.cmd.ProcessState, s)
	}
}

// execute runs a program to its end.
func execute(t *testing.T, env []string, program string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	p := launch(t, program, env, program, args...)
	code = p.wait(t, patience)
	return p.stdout.String(), p.stderr.String(), code
}

// taken are the ports that tests of this run have got.
var taken struct {
	sync.Mutex
	ports map[int]bool
}

// freePorts returns loopback ports that are free for TCP and UDP and lie
// outside the range from which the kernel gives ports to clients, so that a
// daemon which is killed finds its own free again.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	const low, high = 12000, 32000
	taken.Lock()
	defer taken.Unlock()
	if taken.ports == nil {
		taken.ports = map[int]bool{}
	}
	var ports []int
	const apart = 7919 // runs that begin one after the other begin far from each other
	for i := range high - low {
		port := low + (os.Getpid()*apart+i)%(high-low)
		if taken.ports[port] || !portIsFree(port) {
			continue
		}
		taken.ports[port] = true
		if ports = append(ports, port); len(ports) == n {
			return ports
		}
	}
	t.Fatalf("no %d free ports from %d to %d", n, low, high)
	return nil
}

// loopback is a port's address.
func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// sorted returns the keys of a map in order.
func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
