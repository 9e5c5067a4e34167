// Package script runs the scripts of a host around the members of jobs, its prolog and its
// epilog, as the user of this process. It decides neither when they run nor what follows
// from a failure.
package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// maxOutput bounds the output of a script that is kept, in bytes: its last part.
const maxOutput = 4096

// waitAfter bounds the wait for the output of processes that a script has left behind.
const waitAfter = time.Second

// Run runs the program at path with an environment, and waits for its end, at most for the
// time limit. The error has the exit code and the last line of the output. The processes
// that the script has started are killed with it.
func Run(ctx context.Context, path string, env []string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := exec.CommandContext(ctx, path)
	c.Dir, c.Env = "/", append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = waitAfter
	var out tail
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s has not ended within %s%s", path, limit, out.lastLine())
	default:
		return fmt.Errorf("%s: %w%s", path, err, out.lastLine())
	}
}

// tail keeps the last part of what is written.
type tail struct{ data []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	if over := len(t.data) - maxOutput; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(p), nil
}

// lastLine is ": " and the last line with text, or "".
func (t *tail) lastLine() string {
	lines := bytes.Split(bytes.TrimSpace(t.data), []byte("\n"))
	text := strings.ToValidUTF8(string(bytes.TrimSpace(lines[len(lines)-1])), "?")
	if text == "" {
		return ""
	}
	return ": " + text
}
