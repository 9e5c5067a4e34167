package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// failure is a line in which go test, a benchmark or a panic says why it failed.
var failure = regexp.MustCompile(`_test\.go:[0-9]+: |^panic: |\.go:[0-9]+:[0-9]+: `)

// sitting runs groups.
type sitting struct {
	root             string // the repository
	goCommand        string
	benchtime, count string // of rows that set none
	progress         io.Writer
}

// arguments returns the folder and the command line of a group.
func (s sitting) arguments(g group) (dir string, line []string, err error) {
	if g.isScript() {
		return s.root, append([]string{g.path}, g.flags...), nil
	}
	// A nested module has its own go.mod: the one next above the package counts.
	module := g.path
	for {
		if _, err := os.Stat(filepath.Join(s.root, module, "go.mod")); err == nil {
			break
		}
		if module = path.Dir(module); module == "." {
			break
		}
	}
	inside, err := filepath.Rel(filepath.Join(s.root, module), filepath.Join(s.root, g.path))
	if err != nil {
		return "", nil, err
	}
	flags := map[string]string{"-benchtime": s.benchtime, "-count": s.count}
	for i := 0; i+1 < len(g.flags); i += 2 {
		flags[g.flags[i]] = g.flags[i+1]
	}
	line = []string{s.goCommand, "test", "-run", "^$", "-bench", g.pattern(), "-benchtime", flags["-benchtime"], "-count", flags["-count"], "-timeout", "0", "./" + filepath.ToSlash(inside)}
	return filepath.Join(s.root, module), line, nil
}

// measure runs a group until ctx ends, and returns an outcome for each of its rows. A
// group that ctx has cut keeps the figures it had.
func (s sitting) measure(ctx context.Context, g group) []outcome {
	got := results{}
	reason, failed := "", true
	if ctx.Err() == nil {
		reason = s.execute(ctx, g, got)
	}
	if ctx.Err() != nil {
		reason, failed = "the time is over", false
	}
	var all []outcome
	for _, r := range g.rows {
		all = append(all, judge(r, got, reason, failed))
	}
	return all
}

// execute runs a group and collects its results. The returned text is the reason for
// results that are missing.
func (s sitting) execute(ctx context.Context, g group, got results) string {
	dir, line, err := s.arguments(g)
	if err != nil {
		return err.Error()
	}
	// What a killed benchmark leaves goes with this folder. The short name leaves
	// room for sockets, whose paths have at most 107 bytes.
	temporary, err := os.MkdirTemp("", "bc")
	if err != nil {
		return err.Error()
	}
	defer os.RemoveAll(temporary)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+temporary)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	reader, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer
	ended := make(chan error, 1)
	began := time.Now()
	go func() {
		err := cmd.Run()
		_ = writer.Close() // never fails
		ended <- err
	}()
	var last, why []string // the last lines without figures, and those of failed benchmarks
	lines := bufio.NewScanner(reader)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if got.take(lines.Text()) {
			fmt.Fprintf(s.progress, "  %s\n", strings.Join(strings.Fields(lines.Text()), " "))
		} else if text := strings.TrimSpace(lines.Text()); text != "" {
			last = append(last[max(0, len(last)-5):], text)
			if len(why) < 5 && failure.MatchString(text) {
				why = append(why, text)
			}
		}
	}
	if err := lines.Err(); err != nil {
		_, _ = io.Copy(io.Discard, reader) // so that the process can end
		last = append(last, err.Error())
	}
	err = <-ended
	if len(why) > 0 {
		last = why
	}
	fmt.Fprintf(s.progress, "  took %v\n", time.Since(began).Round(time.Second))
	switch {
	case err != nil && !errors.Is(err, context.Canceled):
		return fmt.Sprintf("%v: %s", err, strings.Join(last, " / "))
	case slices.ContainsFunc(g.rows, func(r row) bool { return len(got[r.run.name]) == 0 }):
		return fmt.Sprintf("no result line of this name: %s", strings.Join(last, " / "))
	}
	return ""
}
