package shim_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/agent/shim"
)

// BenchmarkShim measures one member from the launch of its supervisor, the program that
// packages ship, to its end: the processor time of the supervisor and its command, and the
// time to the first instruction of the command. TestAShimIsSmall of cmd/muster-shim has the
// memory.
func BenchmarkShim(b *testing.B) {
	dir := b.TempDir()
	program := filepath.Join(dir, shim.Name)
	build := exec.Command("go", "build", "-trimpath", "-o", program, "../../cmd/muster-shim")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		b.Fatal(err)
	}
	begun, err := os.OpenFile(pipe, os.O_RDWR, 0) // so that neither side waits for the other
	if err != nil {
		b.Fatal(err)
	}
	defer begun.Close()
	var processor, first time.Duration
	for i := 0; b.Loop(); i++ {
		f := shim.Folder(filepath.Join(dir, fmt.Sprintf("tx.0.%d", i)))
		at := time.Now()
		if _, err := f.Make(); err != nil {
			b.Fatal(err)
		}
		lock, err := f.Lock()
		if err != nil {
			b.Fatal(err)
		}
		if err := f.WriteSpec(shim.Spec{Args: []string{"/bin/sh", "-c", "printf x > " + pipe}, Dir: "/"}); err != nil {
			b.Fatal(err)
		}
		pid, _, err := shim.Launch(program, f, lock)
		lock.Close()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := begun.Read(make([]byte, 1)); err != nil {
			b.Fatal(err)
		}
		first += time.Since(at)
		var use syscall.Rusage
		if _, err := syscall.Wait4(pid, nil, 0, &use); err != nil {
			b.Fatal(err)
		}
		if e, err := f.Exit(); err != nil || e.Reason != shim.Completed || e.Code != 0 {
			b.Fatalf("exit %+v, %v", e, err)
		}
		processor += time.Duration(use.Utime.Nano() + use.Stime.Nano())
	}
	b.ReportMetric(float64(processor.Microseconds())/1000/float64(b.N), "cpu-ms")
	b.ReportMetric(float64(first.Microseconds())/1000/float64(b.N), "first-instruction-ms")
}
