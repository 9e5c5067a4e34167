package script_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/agent/script"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAScriptEndsWithItsLastWord(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"success":                        {"exit 0", ""},
		"its environment alone":          {`test "$A$HOME" = b`, ""},
		"a code":                         {"echo first; echo the disk is full >&2; exit 3", "exit status 3: the disk is full"},
		"no word":                        {"exit 1", "exit status 1"},
		"a signal":                       {"kill -9 $$", "signal: killed"},
		"more output than is kept":       {"yes abc | head -c 100000; echo; echo last; exit 1", "exit status 1: last"},
		"what it leaves behind is fine":  {"sleep 20 >/dev/null 2>&1 & exit 0", ""}, // the process outlives the test, and ends soon after
		"it is waited for no open files": {"sleep 20 & exit 0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := script.Run(context.Background(), write(t, c.text), []string{"A=b"}, time.Minute)
			if (err == nil) != (c.want == "") || err != nil && !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if err := script.Run(context.Background(), "/no/such/script", nil, time.Minute); err == nil || !strings.Contains(err.Error(), "/no/such/script") {
		t.Errorf("a script that is not there: %v", err)
	}
}

// TestAScriptThatHangsIsKilledWithItsChildren: they are one process group.
func TestAScriptThatHangsIsKilledWithItsChildren(t *testing.T) {
	note := filepath.Join(t.TempDir(), "pid")
	path := write(t, fmt.Sprintf("sleep 3600 & echo $! >%s; wait", note))
	var data []byte
	for limit := 500 * time.Millisecond; len(data) == 0; limit *= 2 { // a busy host may kill the script before it has begun
		err := script.Run(context.Background(), path, nil, limit)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("has not ended within %s", limit)) {
			t.Fatalf("%v", err)
		}
		if data, err = os.ReadFile(note); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	var pid int
	if _, err := fmt.Sscan(string(data), &pid); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(state), ") Z") {
			return
		}
		if time.Now().After(end) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("process %d lives: %s", pid, state)
		}
	}
}
