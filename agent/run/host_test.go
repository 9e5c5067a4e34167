package run_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// host is a folder of work with a runner that may be replaced.
type host struct {
	t    testing.TB
	root string
	boot string

	runner  *run.Runner
	stop    func()
	changed chan resource.TxID
	devices func(context.Context) map[string]run.DeviceNow
	keep    run.Kept
	// prolog and epilog are scripts of the host; nil for none.
	prolog, epilog func(context.Context, shim.Folder, []string) error
	// measureEvery is the time between two measurements; 0 is the default.
	measureEvery time.Duration
}

func newHost(t testing.TB) *host {
	boot, err := shim.BootID()
	if err != nil {
		t.Skip("not permitted here: ", err)
	}
	h := &host{t: t, root: filepath.Join(t.TempDir(), "run"), boot: boot}
	t.Cleanup(h.end)
	return h
}

// start starts a runner on the folder.
func (h *host) start() {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	h.changed = make(chan resource.TxID, 64)
	changed := h.changed
	r, err := run.Open(run.Config{
		Root: h.root, Program: self, BootID: h.boot, Log: slog.New(slog.DiscardHandler), Now: time.Now, Devices: h.devices, Kept: h.keep, Prolog: h.prolog, Epilog: h.epilog,
		Changed: func(ctx context.Context, tx resource.TxID) {
			select {
			case changed <- tx:
			case <-ctx.Done():
			}
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if h.measureEvery > 0 {
		r.SetMeasureEvery(h.measureEvery)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	h.runner, h.stop = r, func() { cancel(); running.Wait() }
}

// leave ends the runner, and nothing else.
func (h *host) leave() {
	if h.stop != nil {
		h.stop()
		h.stop, h.runner = nil, nil
	}
}

// end kills everything that the test has started.
func (h *host) end() {
	h.leave()
	entries, _ := os.ReadDir(h.root)
	for _, e := range entries {
		f := shim.Folder(filepath.Join(h.root, e.Name()))
		if p, err := f.Begun(); err == nil && p.IsAlive(h.boot) {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
		_, _ = f.KillRemains(h.boot, 100)
	}
}

func (h *host) folder(member int) shim.Folder {
	return shim.Folder(filepath.Join(h.root, "a."+strconv.Itoa(member)+".0"))
}

// shell is a member that runs a script.
func (h *host) shell(member int, script string) run.Member {
	return run.Member{Index: member, Spec: shim.Spec{Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin", "T=" + h.root}, Dir: "/tmp"}}
}

// until waits until all states of transaction a are in a phase.
func (h *host) until(want grant.WorkPhase) []grant.WorkState {
	h.t.Helper()
	for {
		states := h.runner.States("a")
		if len(states) > 0 && !slices.ContainsFunc(states, func(s grant.WorkState) bool { return s.Phase < want }) {
			return states
		}
		<-h.changed
	}
}

// output is all output of a member.
func (h *host) output(member int) string {
	h.t.Helper()
	var b strings.Builder
	p := make([]byte, 1000)
	for at := int64(0); ; {
		from, n, err := h.folder(member).ReadLog(at, p)
		if err != nil {
			h.t.Fatal(err)
		}
		if n == 0 {
			return b.String()
		}
		b.Write(p[:n])
		at = from + int64(n)
	}
}

// barrier is a pipe in which a command says that it has come so far.
func (h *host) barrier() (path string, wait func()) {
	h.t.Helper()
	path = filepath.Join(h.t.TempDir(), "barrier")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path, func() {
		h.t.Helper()
		f, err := os.Open(path) // until the command opens it too
		if err != nil {
			h.t.Fatal(err)
		}
		f.Close()
	}
}
