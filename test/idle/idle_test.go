// Package idle_test measures what an agent costs its host while nothing is
// asked of it: the real program, with 8 GPUs behind the fake NVML library, as
// one of 50 members of the rings over loopback.
package idle_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/rpcauth"
	nvmltest "github.com/musterd/muster/test/nvml"
)

const (
	// members of the rings: this agent, a coordinator and the other agents.
	members = 50
	// settle passes before the first window: digests, tags and health checks
	// of the start are then through.
	settle = 15 * time.Second
	// window is how long CPU time is counted. The kernel counts it in steps of
	// 10 ms: 0.03 % of a window.
	window = 30 * time.Second
)

// BenchmarkAgentInRingOf50 reports the CPU time in percent of one core and the
// resident memory at the window's end; an iteration is one window.
func BenchmarkAgentInRingOf50(b *testing.B) {
	r := start(b, members-2)
	p := launch(b, r)
	r.awaitReady(b, members-1)
	p.wait(b, settle)
	var used, passed time.Duration
	for b.Loop() {
		before, began := p.cpu(b), time.Now()
		p.wait(b, window)
		used += p.cpu(b) - before
		passed += time.Since(began)
	}
	b.ReportMetric(100*used.Seconds()/passed.Seconds(), "cpu-%")
	b.ReportMetric(p.memory(b, "VmRSS"), "rss-MiB")
	b.ReportMetric(p.memory(b, "VmHWM"), "peak-rss-MiB")
	b.ReportMetric(0, "ns/op")
}

// process is the agent's program. It is killed when its benchmark ends.
type process struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ended  chan struct{} // closed once it was waited for
}

// launch builds the program and starts it with default settings but for
// addresses and folders.
func launch(b *testing.B, r *ring) *process {
	b.Helper()
	dir := b.TempDir()
	program := filepath.Join(dir, "muster-agent")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/musterd/muster/cmd/muster-agent").CombinedOutput(); err != nil {
		b.Fatalf("build muster-agent: %v\n%s", err, out)
	}
	machine, err := fake.Lookup(profile)
	if err != nil {
		b.Fatal(err)
	}
	token := filepath.Join(dir, "token")
	if err := rpcauth.WriteFile(token, r.token); err != nil {
		b.Fatal(err)
	}
	library := nvmltest.Build(b)
	p := &process{ended: make(chan struct{})}
	p.cmd = exec.Command(program,
		"--cluster", cluster, "--node-id", "measured", "--data-dir", filepath.Join(dir, "data"), "--token-file", token,
		"--listen", free, "--metrics-listen", free, "--serf-bind", free, "--capacity-bind", free, "--serf-rpc-addr", free,
		"--join", r.daemon.SerfAddr(), "--nvml-library", filepath.Join(library, nvmltest.LibraryName),
	)
	p.cmd.Env = append(os.Environ(), nvmltest.Environ(library, nvmltest.WriteScript(b, dir, machine, "measured"))...)
	p.cmd.Stderr = &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // ProcessState says how it ended
	}()
	b.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
		if b.Failed() {
			b.Logf("muster-agent (%s) wrote:\n%s", p.cmd.ProcessState, p.stderr.String())
		}
	})
	return p
}

// wait lets time pass while the program runs.
func (p *process) wait(b *testing.B, d time.Duration) {
	b.Helper()
	select {
	case <-p.ended:
		b.Fatalf("muster-agent ended: %s", p.cmd.ProcessState)
	case <-time.After(d):
	}
}

// cpu is the time that the process has spent on processors, user and system:
// fields 14 and 15 of /proc/PID/stat (proc_pid_stat(5)), in hundredths of a
// second on every Linux architecture that Go knows.
func (p *process) cpu(b *testing.B) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	// The second field is the name in parentheses, which may hold blanks.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatalf("/proc/%d/stat: %q: %v", p.cmd.Process.Pid, text, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// memory is a line of /proc/PID/status in MiB.
func (p *process) memory(b *testing.B, name string) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			if err != nil {
				b.Fatalf("%s: %v", line, err)
			}
			return float64(kib) / 1024
		}
	}
	b.Fatalf("/proc/%d/status has no %s", p.cmd.Process.Pid, name)
	return 0
}
