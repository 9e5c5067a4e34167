package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// screen is what a program prints, readable while it runs.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

const (
	free     = "127.0.0.1:0"
	patience = time.Minute // for what a program has to do
)

// arguments run an agent on free ports in dir.
func arguments(t *testing.T, dir string, more ...string) []string {
	return append([]string{
		"--data-dir", dir, "--token-file", write(t, "token", testToken), "--node-id", "n1", "--listen", free, "--metrics-listen", free,
		"--serf-bind", free, "--capacity-bind", free, "--serf-rpc-addr", free,
	}, more...)
}

// background runs the program until stop, which returns its exit code.
func background(t *testing.T, args []string) (out *screen, stop func() int) {
	t.Helper()
	out = &screen{}
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	go func() { code <- Run(ctx, args, out, out) }()
	t.Cleanup(cancel)
	return out, func() int {
		cancel()
		select {
		case c := <-code:
			return c
		case <-time.After(patience):
			t.Fatalf("does not stop:\n%s", out)
			return -1
		}
	}
}

func waitText(t *testing.T, out *screen, want string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(out.String(), want) {
		if time.Now().After(deadline) {
			t.Fatalf("no %q in\n%s", want, out)
		}
		<-tick.C
	}
}

func TestAnAgentStartsOnThisHostAndStopsCleanly(t *testing.T) {
	dir := t.TempDir()
	out, stop := background(t, arguments(t, dir))
	waitText(t, out, "msg=serving")
	if n := strings.Count(out.String(), "host_discovered"); n != 1 {
		t.Errorf("%d lines of what was found in\n%s", n, out)
	}
	var second bytes.Buffer
	if code := Run(t.Context(), arguments(t, dir), &second, &second); code != exitFailed || !strings.Contains(second.String(), "in use by another process") || !strings.Contains(second.String(), dir) {
		t.Errorf("a second agent: exit %d\n%s", code, second.String())
	}
	if code := stop(); code != exitDone {
		t.Errorf("exit %d\n%s", code, out)
	}
	if strings.Contains(out.String(), testToken) {
		t.Error("the log shows the token")
	}
}

func TestAPortInUseIsNamedWithItsField(t *testing.T) {
	taken, err := net.Listen("tcp", free)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, flag := range []string{"--listen", "--metrics-listen", "--serf-rpc-addr"} {
		t.Run(flag, func(t *testing.T) {
			var out bytes.Buffer
			code := Run(t.Context(), arguments(t, t.TempDir(), flag, taken.Addr().String()), &out, &out)
			if code != exitFailed || !strings.Contains(out.String(), taken.Addr().String()) {
				t.Errorf("exit %d\n%s", code, out.String())
			}
		})
	}
}

func TestAStopDuringTheStartIsClean(t *testing.T) {
	for name, reached := range map[string]string{
		"at once":                     "",
		"once the host is discovered": "host_discovered",
		"once the journal is open":    "journal_created",
	} {
		t.Run(name, func(t *testing.T) {
			out, stop := background(t, arguments(t, t.TempDir()))
			waitText(t, out, reached)
			if code := stop(); code != exitDone {
				t.Errorf("exit %d, want %d\n%s", code, exitDone, out)
			}
		})
	}
}

func TestACorruptJournalIsRefusedWithTheWayOn(t *testing.T) {
	dir := t.TempDir()
	out, stop := background(t, arguments(t, dir))
	waitText(t, out, "msg=serving")
	path := filepath.Join(dir, "journal", "journal")
	if code := stop(); code != exitDone {
		t.Fatalf("exit %d\n%s", code, out)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("garbage ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	var refused bytes.Buffer
	if code := Run(t.Context(), arguments(t, dir), &refused, &refused); code != exitFailed || !strings.Contains(refused.String(), path) ||
		!strings.Contains(refused.String(), "offset") || !strings.Contains(refused.String(), "--new-journal") {
		t.Errorf("exit %d\n%s", code, refused.String())
	}
	again, stop := background(t, arguments(t, dir, "--new-journal"))
	waitText(t, again, "msg=serving")
	if code := stop(); code != exitDone {
		t.Errorf("exit %d\n%s", code, again)
	}
}

func TestWrongUsageAndABadConfigurationExitWithTwo(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"an unknown flag":      {[]string{"--bogus"}, exitUsage, "unknown flag: --bogus"},
		"an argument":          {[]string{"inspect", "me"}, exitUsage, `takes no arguments, got ["me"]`},
		"an unknown command":   {[]string{"inspekt"}, exitUsage, `["inspekt"]`},
		"a bad duration":       {[]string{"--heartbeat", "soon"}, exitUsage, `"soon"`},
		"a bad output format":  {[]string{"inspect", "-o", "xml"}, exitUsage, `--output: "xml"`},
		"no token":             {[]string{"--data-dir", "/tmp/x"}, exitUsage, "tokenFile: not set"},
		"a missing config":     {[]string{"--config", "/nowhere.yaml"}, exitUsage, "/nowhere.yaml"},
		"a bad config":         {[]string{"--config", write(t, "c.yaml", "bogus: 1")}, exitUsage, `unknown field "bogus"`},
		"a public address":     {arguments(t, t.TempDir(), "--listen", "0.0.0.0:1"), exitUsage, "not on the loopback"},
		"a flag over the file": {[]string{"--config", write(t, "c.yaml", "listen: 127.0.0.1:1"), "--listen", "nonsense"}, exitUsage, `--listen: "nonsense"`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if code := Run(t.Context(), c.args, &out, &out); code != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("exit %d, want %d and %q in\n%s", code, c.code, c.want, out.String())
			}
		})
	}
}

func TestInspectPrintsThisHost(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"inspect", "-o", "json"}, &out, &errs); code != exitDone {
		t.Fatalf("exit %d\n%s", code, errs.String())
	}
	var report struct {
		NUMA struct{ Threads int }
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || report.NUMA.Threads < 1 {
		t.Errorf("%v, %+v", err, report)
	}
	out.Reset()
	if code := Run(t.Context(), []string{"inspect", "--sysfs-root", "/nowhere"}, &out, &out); code != exitFailed || !strings.Contains(out.String(), "/nowhere") {
		t.Errorf("exit %d\n%s", code, out.String())
	}
	out.Reset()
	if code := Run(t.Context(), []string{"inspect", "--nvml-library", "/nowhere/lib.so"}, &out, &out); code != exitFailed || !strings.Contains(out.String(), "/nowhere/lib.so") {
		t.Errorf("exit %d\n%s", code, out.String())
	}
}

func TestVersionAndCompletion(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--version"}, {"completion", "bash"}, {"--help"}} {
		var out bytes.Buffer
		if code := Run(t.Context(), args, &out, &out); code != exitDone || !strings.Contains(out.String(), "muster-agent") {
			t.Errorf("%v: exit %d\n%s", args, code, out.String())
		}
	}
}
