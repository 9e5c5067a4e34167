package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkBegin runs `muster version`: the processor time that each command takes before it
// does anything.
func BenchmarkBegin(b *testing.B) {
	program := filepath.Join(b.TempDir(), "muster")
	build := exec.Command("go", "build", "-trimpath", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, output)
	}
	var processor time.Duration
	for b.Loop() {
		command := exec.Command(program, "version")
		if err := command.Run(); err != nil {
			b.Fatal(err)
		}
		processor += command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	}
	b.ReportMetric(float64(processor.Microseconds())/1000/float64(b.N), "cpu-ms")
}
