package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// seeded are the flags of tests whose seed is the same in each run, by folder. rapid and
// the other tests that draw take a new seed in each run by themselves.
var seeded = map[string]string{
	"test/sim":                      "-sim.from",
	"test/failpoints":               "-failpoints.seed",
	"coordinator/history/warehouse": "-crash.seed",
}

// counter counts the failures of one package.
type counter struct {
	options
	folder string
	row    row
}

// count compiles the tests once and runs them.
func (c *counter) count(ctx context.Context) error {
	kept, err := filepath.Abs(filepath.Join(c.build, "flaky"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return err
	}
	flat := strings.ReplaceAll(c.folder, "/", "_")
	binary := filepath.Join(kept, flat+".test")
	defer os.Remove(binary)
	if _, err := output(ctx, c.root, "go", "test", "-vet=off", "-c", "-o", binary, "./"+c.folder); err != nil {
		return err
	}
	stop, err := startLoops(ctx, c.row.Loops)
	if err != nil {
		return err
	}
	defer stop()
	began := time.Now()
	for i := range c.row.Runs + 1 {
		arguments := []string{fmt.Sprintf("-test.timeout=%s", c.timeout)}
		if name := seeded[c.folder]; name != "" {
			arguments = append(arguments, fmt.Sprintf("%s=%d", name, began.Unix()+int64(i)*1_000_000))
		}
		if i == c.row.Runs {
			stop()
			arguments = append(arguments, "-test.cpu=1")
		}
		text, err := c.run(ctx, binary, arguments)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			continue
		}
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
			return err
		}
		path := filepath.Join(kept, fmt.Sprintf("%s.%d.txt", flat, i+1))
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
		names := failedTests(text)
		fmt.Printf("  run %d of %d with %s failed: %s; its output is in %s\n", i+1, c.row.Runs+1, strings.Join(arguments, " "), strings.Join(names, ", "), path)
		c.row.Failures++
		c.row.Failed = append(c.row.Failed, names...)
	}
	slices.Sort(c.row.Failed)
	c.row.Failed = slices.Compact(c.row.Failed)
	c.row.Date = time.Now().UTC().Format(time.DateOnly)
	fmt.Printf("  %d runs and one on one core in %s, %d failures\n", c.row.Runs, time.Since(began).Round(time.Second), c.row.Failures)
	return nil
}

// run runs the tests once, in the folder of their package.
func (c *counter) run(ctx context.Context, binary string, arguments []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, binary, arguments...)
	cmd.Dir = filepath.Join(c.root, c.folder)
	cmd.WaitDelay = 10 * time.Second // of children that keep the output open
	return cmd.CombinedOutput()
}

var failedLine = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// failedTests are the names of the tests that failed, without those of which a subtest
// did; of a run without any, its last line.
func failedTests(text []byte) []string {
	var names []string
	for _, m := range failedLine.FindAllSubmatch(text, -1) {
		names = append(names, string(m[1]))
	}
	leaves := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, name+"/") })
	})
	if len(leaves) > 0 {
		return leaves
	}
	lines := strings.Split(string(bytes.TrimSpace(text)), "\n")
	return []string{"(" + strings.Join(strings.Fields(lines[len(lines)-1]), " ") + ")"}
}

// output runs a command and returns its standard output.
func output(ctx context.Context, dir string, command ...string) (string, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	var out, text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &text
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, text.String())
	}
	return out.String(), nil
}
