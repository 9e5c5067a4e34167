package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/agent/shim"
)

// mostResident bounds the memory of one shim, in bytes, with the pages of its program.
const mostResident = 10 << 20

// build compiles the program as `make build` does.
func build(t testing.TB) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), shim.Name)
	command := exec.Command("go", "build", "-trimpath", "-o", program, ".")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
	return program
}

// TestAShimIsSmall reads the resident memory of a shim whose command has written output
// and takes signals, while the shim runs and at its greatest.
func TestAShimIsSmall(t *testing.T) {
	boot, err := shim.BootID()
	if err != nil {
		t.Skip("not permitted here: ", err)
	}
	f := shim.Folder(filepath.Join(t.TempDir(), "a.0.0"))
	pipe := filepath.Join(t.TempDir(), "pipe")
	_, err = f.Make()
	err = errors.Join(err, syscall.Mkfifo(pipe, 0o600), f.WriteSpec(shim.Spec{
		Args: []string{"/bin/sh", "-c", `yes | head -c 3000000; trap ': > "$P"' USR1; : > "$P"; while :; do sleep 0.01; done`},
		Env:  []string{"PATH=/usr/bin:/bin", "P=" + pipe}, Dir: "/",
	}))
	if err != nil {
		t.Fatal(err)
	}
	lock, err := f.Lock()
	if err != nil {
		t.Fatal(err)
	}
	pid, begun, err := shim.Launch(build(t), f, lock)
	if err = errors.Join(err, lock.Close()); err != nil {
		t.Fatal(err)
	}
	<-begun
	if p, err := f.Begun(); err != nil || p.PID != pid {
		t.Errorf("the shim says that it has begun, and its folder %+v: %v", p, err)
	}
	await := func() { // until the command opens the pipe
		file, err := os.Open(pipe)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, file)
		file.Close()
	}
	await()
	if err := f.Signal(syscall.SIGUSR1); err != nil {
		t.Error(err)
	}
	await()
	for _, field := range []string{"VmRSS", "VmHWM"} {
		if got := status(t, pid, field); got > mostResident || got < 1<<20 {
			t.Errorf("%s of a shim is %d kB, want at most %d kB", field, got>>10, mostResident>>10)
		} else {
			t.Logf("%s of a shim: %d kB", field, got>>10)
		}
	}
	if p, err := f.Begun(); err != nil || p.PID != pid || !p.IsAlive(boot) {
		t.Errorf("begun %+v: %v, want process %d", p, err, pid)
	}
	if err := f.Stop(0); err != nil {
		t.Error(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || status.ExitStatus() != 0 {
		t.Errorf("the shim ended with %d: %v", status.ExitStatus(), err)
	}
	if e, err := f.Exit(); err != nil || e.IsSuccess() {
		t.Errorf("exit %+v: %v, want an end that was asked for", e, err)
	}
}

// TestAShimThatEndsBeforeItBeginsSaysSo launches one without its lock.
func TestAShimThatEndsBeforeItBeginsSaysSo(t *testing.T) {
	f := shim.Folder(filepath.Join(t.TempDir(), "a.0.0"))
	if _, err := f.Make(); err != nil {
		t.Fatal(err)
	}
	other, err := os.CreateTemp(t.TempDir(), "lock")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	pid, begun, err := shim.Launch(build(t), f, other) // and there is no specification
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || status.ExitStatus() != 1 {
		t.Errorf("the shim ended with %d: %v, want 1", status.ExitStatus(), err)
	}
	if _, err := f.Begun(); err == nil {
		t.Error("a shim without a specification has begun")
	}
}

// status is a field of /proc/PID/status, in bytes.
func status(t *testing.T, pid int, field string) int64 {
	t.Helper()
	file, err := os.Open("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 3 && words[0] == field+":" {
			kB, err := strconv.ParseInt(words[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kB << 10
		}
	}
	t.Fatalf("process %d has no %s", pid, field)
	return 0
}

// TestTheProgramSaysThatOnlyTheAgentStartsIt: a person who tries the program is not left
// without an answer.
func TestTheProgramSaysThatOnlyTheAgentStartsIt(t *testing.T) {
	program := build(t)
	for name, args := range map[string][]string{"nothing": nil, "a question": {"--help"}, "a relative folder": {"shim", "here"}} {
		t.Run(name, func(t *testing.T) {
			output, err := exec.Command(program, args...).CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(output), "only the agent starts this program") {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
}

// TestTheProgramImportsNearlyNothing: each package counts once for each member of a host.
func TestTheProgramImportsNearlyNothing(t *testing.T) {
	output, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{.Standard}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/musterd/muster/"
	slow := []string{"regexp", "crypto/rand", "text/template", "math/big"} // they take a millisecond to begin
	for line := range strings.Lines(string(output)) {
		path, standard, _ := strings.Cut(strings.TrimSpace(line), " ")
		if standard == "true" {
			if slices.Contains(slow, path) {
				t.Errorf("the program imports %s", path)
			}
			continue
		}
		if path != module+"agent/shim" && path != module+"cmd/muster-shim" && !strings.HasPrefix(path, "golang.org/x/sys/") {
			t.Errorf("the program imports %s", path)
		}
	}
}

// BenchmarkBegin has the program begin and refuse to work without an agent: the processor time
// that each member costs before its supervisor does anything.
func BenchmarkBegin(b *testing.B) {
	program := build(b)
	var processor time.Duration
	for b.Loop() {
		command := exec.Command(program)
		_ = command.Run() // 2: only the agent starts the program
		processor += command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	}
	b.ReportMetric(float64(processor.Microseconds())/1000/float64(b.N), "cpu-ms")
}
