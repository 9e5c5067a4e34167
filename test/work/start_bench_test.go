package work

import (
	"cmp"
	"fmt"
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

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// BenchmarkSubmitToFirstInstruction measures the time from the call that submits a job to
// the first instruction of its commands, which open a pipe: of one member, and of a gang
// of 64 until the last one has begun.
func BenchmarkSubmitToFirstInstruction(b *testing.B) {
	program := filepath.Join(b.TempDir(), shim.Name) // the one that packages ship
	build := exec.Command("go", "build", "-trimpath", "-o", program, "../../cmd/muster-shim")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for _, members := range []int{1, 64} {
		b.Run(fmt.Sprintf("members-%d", members), func(b *testing.B) {
			w := openWith(b, 8, agent.RunConfig{Program: program})
			pipe := filepath.Join(b.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				b.Fatal(err)
			}
			begun, err := os.OpenFile(pipe, os.O_RDWR, 0) // so that neither side waits for the other
			if err != nil {
				b.Fatal(err)
			}
			defer begun.Close()
			var took []time.Duration
			cluster, work := cpu(b, syscall.RUSAGE_SELF), cpu(b, syscall.RUSAGE_CHILDREN)
			for i := 0; b.Loop(); i++ {
				doc := fmt.Sprintf(`{"metadata":{"name":"start-%d"},"spec":{"parallelism":%d,"template":{"spec":{"gangScheduling":{"minMembers":%d},`+
					`"resources":{"requests":{"cpu":"100m","memory":"1Mi"}},"command":["/bin/sh","-c","printf x > %s"]}}}}`, i, members, members, pipe)
				j, status := api.DecodeJob([]byte(doc))
				if status != nil {
					b.Fatal(status)
				}
				at := time.Now()
				if _, err := w.cluster.Client.Jobs("default").Create(w.ctx, j, sdk.CreateOptions{}); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(begun, make([]byte, members)); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(at))
				b.StopTimer()
				w.phase("start-"+strconv.Itoa(i), api.Succeeded)
				b.StartTimer()
			}
			slices.SortFunc(took, func(x, y time.Duration) int { return cmp.Compare(x, y) })
			b.ReportMetric(float64((cpu(b, syscall.RUSAGE_SELF)-cluster).Microseconds())/1000/float64(len(took)), "cpu-ms-cluster")
			b.ReportMetric(float64((cpu(b, syscall.RUSAGE_CHILDREN)-work).Microseconds())/1000/float64(len(took)), "cpu-ms-work")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			if text, err := os.ReadFile("/proc/loadavg"); err == nil {
				b.Log("load ", strings.TrimSpace(string(text)))
			}
		})
	}
}

// cpu is the processor time that this process has taken, or the children that it has
// waited for: supervisors with their commands.
func cpu(b *testing.B, whose int) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(whose, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
