//go:build cgo && linux

package nvml

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/devices/fake/fakehost"
	nvmltest "github.com/musterd/muster/test/nvml"
)

// openFake opens the fake library as a DGX H100. It binds the process to the
// library, which no test of this package may do in its own process.
func openFake(b *testing.B) *Source {
	b.Helper()
	p, err := fake.Lookup("dgx-h100")
	if err != nil {
		b.Fatal(err)
	}
	script := filepath.Join(b.TempDir(), "host.script")
	nvmltest.Act(b, script, fakehost.New(p, "n1"))
	b.Setenv(nvmltest.ScriptVariable, script)
	s, err := Open(filepath.Join(nvmltest.Build(b), nvmltest.LibraryName))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

// BenchmarkDiscover is one discovery of 8 GPUs.
func BenchmarkDiscover(b *testing.B) {
	s := openFake(b)
	for b.Loop() {
		if _, _, err := s.Discover(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPoll is one poll of 8 GPUs.
func BenchmarkPoll(b *testing.B) {
	s := openFake(b)
	w := &session{source: s, asking: func(string, *card) {}}
	seen, err := w.connect(nil, skips{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer w.disconnect()
	tracker := newTracker(seen.inventory, outset{})
	for b.Loop() {
		for _, c := range w.cards {
			if told := tracker.read(readCard(w.seen.fork(w.asking), c)); !told.IsZero() {
				b.Fatal(told)
			}
		}
	}
}

// BenchmarkIdleWatch tells how much of a core a watch with default times takes
// of a process while nothing happens to 8 GPUs: cpu-%, of a second each.
func BenchmarkIdleWatch(b *testing.B) {
	s := openFake(b)
	inv, _, err := s.Discover()
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), time.Duration(b.N)*time.Second)
	defer cancel()
	begin := cpuTime(b)
	if err := s.Watch(ctx, inv, WatchOptions{}, func(c devices.Change) { b.Errorf("told %+v", c) }); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(100*(cpuTime(b)-begin).Seconds()/float64(b.N), "cpu-%")
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
