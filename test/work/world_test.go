package work

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/cli"
	"github.com/musterd/muster/cmd/muster/dev"
)

// TestMain makes this test program the program of the supervisors too.
func TestMain(m *testing.M) {
	shim.Become(os.Args)
	os.Exit(m.Run())
}

// patience bounds waits that end at once when all is well.
const patience = 2 * time.Minute

// world is a cluster of one process that starts processes.
type world struct {
	t       testing.TB
	cluster *dev.Cluster
	ctx     context.Context
}

// open starts a cluster of so many nodes, whose supervisors are this test program.
func open(t testing.TB, nodes int) *world {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return openWith(t, nodes, agent.RunConfig{Program: self})
}

// openWith starts a cluster of so many nodes whose agents start work in this way.
func openWith(t testing.TB, nodes int, run agent.RunConfig) *world {
	t.Helper()
	if _, err := shim.BootID(); err != nil {
		t.Skip("not permitted here: ", err)
	}
	run.Env, run.Dir = []string{"PATH=/usr/bin:/bin"}, "/"
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cluster, err := dev.Start(ctx, dev.Config{
		Nodes: nodes, Profile: "dgx-a100", DataDir: t.TempDir(), Listen: "127.0.0.1:0", Version: "v0.0.0-test",
		Logger: slog.New(slog.DiscardHandler), Progress: func(int, int) {},
		Work: &run,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &world{t: t, cluster: cluster, ctx: ctx}
}

// muster is one run of the program.
type muster struct {
	w         *world
	out       *screen
	errors    *screen
	interrupt context.CancelFunc // Ctrl-C
	code      chan int
}

// muster starts the program.
func (w *world) muster(args ...string) *muster {
	w.t.Helper()
	return w.start(nil, args...)
}

// start starts the program with other streams where change sets them.
func (w *world) start(change func(*cli.Program), args ...string) *muster {
	w.t.Helper()
	ctx, interrupt := context.WithCancel(w.ctx)
	m := &muster{w: w, out: newScreen(), errors: newScreen(), interrupt: interrupt, code: make(chan int, 1)}
	env := map[string]string{"MUSTER_ADDR": w.cluster.Addresses.REST, "MUSTER_TOKEN": w.cluster.Token, "MUSTER_CONTEXT": w.t.TempDir() + "/context.json"}
	program := cli.Program{
		Stdin: strings.NewReader(""), Stdout: m.out, Stderr: m.errors, Env: func(name string) string { return env[name] }, Args: args, Version: "v0.0.0-test",
	}
	if change != nil {
		change(&program)
	}
	go func() { m.code <- program.Run(ctx) }()
	w.t.Cleanup(interrupt)
	return m
}

// ends waits until the program has ended, and checks its exit code.
func (m *muster) ends(want int) (stdout, stderr string) {
	m.w.t.Helper()
	select {
	case code := <-m.code:
		if code != want {
			m.w.t.Errorf("exit code %d, want %d\n%s%s", code, want, m.out, m.errors)
		}
	case <-m.w.ctx.Done():
		m.w.t.Fatalf("the program has not ended:\n%s%s", m.out, m.errors)
	}
	return m.out.String(), m.errors.String()
}

// screen is a stream that a test waits on.
type screen struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newScreen() *screen { return &screen{changed: make(chan struct{})} }

// Write implements io.Writer.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	return s.text.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// shows waits until the output has a text, says until the notes for people have it.
func (m *muster) shows(text string) { m.w.t.Helper(); m.await(m.out, text) }
func (m *muster) says(text string)  { m.w.t.Helper(); m.await(m.errors, text) }

func (m *muster) await(s *screen, text string) {
	m.w.t.Helper()
	for {
		s.mu.Lock()
		has, changed := strings.Contains(s.text.String(), text), s.changed
		s.mu.Unlock()
		if has {
			return
		}
		select {
		case <-changed:
		case code := <-m.code:
			m.w.t.Fatalf("the program has ended with %d and has not shown %q:\n%s%s", code, text, m.out, m.errors)
		case <-m.w.ctx.Done():
			m.w.t.Fatalf("the program has not shown %q:\n%s%s", text, m.out, m.errors)
		}
	}
}

// phase waits until a job is in a phase.
func (w *world) phase(name string, phase api.Phase) *api.Job {
	w.t.Helper()
	j, err := w.cluster.Client.Jobs("default").WaitFor(w.ctx, name, func(j *api.Job) (bool, error) { return j != nil && j.Status.Phase == phase, nil })
	if err != nil {
		w.t.Fatalf("job %s never is %s: %v", name, phase, err)
	}
	return j
}
