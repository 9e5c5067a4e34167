package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed parts.txt
var parts string

// record is the document that has a row for each part's last run.
const record = "docs/reliability.md"

// part is a part of make test-long.
type part struct{ name, command string }

func readParts(text string) ([]part, error) {
	var all []part
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, command, ok := strings.Cut(line, ": ")
		if !ok || slices.ContainsFunc(all, func(p part) bool { return p.name == name }) {
			return nil, fmt.Errorf("parts.txt:%d: %q is not a new name, a colon and a command", i+1, line)
		}
		all = append(all, part{name, command})
	}
	return all, nil
}

// choose returns the parts of the given names, or all without names.
func choose(all []part, names []string) ([]part, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []part
	for _, name := range names {
		i := slices.IndexFunc(all, func(p part) bool { return p.name == name })
		if i < 0 {
			var known []string
			for _, p := range all {
				known = append(known, p.name)
			}
			return nil, fmt.Errorf("there is no part %q; the parts are %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// runLong runs parts one after the other. The output of each is kept in the
// folder, and its row in docs/reliability.md is written at once, so that an
// interrupted run keeps the parts that ended.
func runLong(ctx context.Context, build string, names []string) (int, error) {
	all, err := readParts(parts)
	if err != nil {
		return 1, err
	}
	chosen, err := choose(all, names)
	if err != nil {
		return 1, err
	}
	code := 0
	for _, p := range chosen {
		failures, err := runPart(ctx, build, p)
		if err != nil {
			return 1, fmt.Errorf("part %s: %w", p.name, err)
		}
		if failures > 0 {
			code = 1
		}
	}
	return code, nil
}

// runPart runs one part, writes the row and returns the number of failures.
func runPart(ctx context.Context, build string, p part) (int, error) {
	commit, err := cleanCommit(ctx)
	if err != nil {
		return 0, err
	}
	log := filepath.Join(build, "long", p.name+".log")
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return 0, err
	}
	file, err := os.Create(log)
	if err != nil {
		return 0, err
	}
	fmt.Printf("part %s: %s\n", p.name, p.command)
	began := time.Now()
	c := exec.CommandContext(ctx, "sh", "-c", p.command)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = time.Minute
	out := io.MultiWriter(os.Stdout, file)
	c.Stdout, c.Stderr = out, out
	ran := c.Run()
	if err := errors.Join(file.Close(), ctx.Err()); err != nil {
		return 0, err
	}
	output, err := os.ReadFile(log)
	if err != nil {
		return 0, err
	}
	l := last{part: p.name, commit: commit, date: began.UTC().Format(time.DateOnly), duration: time.Since(began), failures: countFailures(output, ran)}
	text, err := os.ReadFile(record)
	if err != nil {
		return 0, err
	}
	changed, err := l.writeInto(string(text))
	if err != nil {
		return 0, err
	}
	fmt.Printf("part %s: %d failures in %s; the output is in %s, the row in %s\n", p.name, l.failures, l.duration.Round(time.Second), log, record)
	return l.failures, os.WriteFile(record, []byte(changed), 0o644)
}

// cleanCommit returns the commit of the tree, and an error if the tree is not
// that of a commit: a row of another tree would say nothing.
func cleanCommit(ctx context.Context) (string, error) {
	status, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ".", ":!"+record).Output()
	if err != nil {
		return "", fmt.Errorf("git status: %w", err)
	}
	if len(bytes.TrimSpace(status)) > 0 {
		return "", fmt.Errorf("the row in %s names the commit that ran, and the tree has changes; commit or stash them:\n%s", record, status)
	}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=8", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("git rev-parse: %w", err)
	}
	return string(bytes.TrimSpace(commit)), nil
}

// failure matches a failed test of go test and a survivor of make mutate.
var failure = regexp.MustCompile(`(?m)^(--- FAIL: |.*\bSURVIVED\b)`)

// countFailures returns the failures in the output of a part; a command that
// failed without naming any has one.
func countFailures(output []byte, ran error) int {
	n := len(failure.FindAll(output, -1))
	if n == 0 && ran != nil {
		return 1
	}
	return n
}
