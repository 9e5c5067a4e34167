package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns the exit code: 1 where a row has failed, or a figure is off and was not
// written; 2 where the program could not begin.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("benchcheck", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", ".", "the repository")
	only := flags.String("only", "", "rows whose section, text or benchmark matches this regular expression")
	limit := flags.Duration("time", 0, "stop after this time; the rows that have waited longest run first (0: no limit)")
	replace := flags.Bool("write", false, "put figures, commit, date and machine of the rows that ran into the page, after each package")
	list := flags.Bool("list", false, "print the order of the rows, and run none")
	s := sitting{progress: stderr}
	flags.StringVar(&s.goCommand, "go", "go", "the go command")
	flags.StringVar(&s.benchtime, "benchtime", "500ms", "for rows that set none")
	flags.StringVar(&s.count, "count", "3", "runs of each benchmark, of which the median counts, for rows that set none")
	if err := flags.Parse(arguments); err != nil {
		return 2
	}
	err := error(nil)
	if s.root, err = filepath.Abs(*root); err != nil {
		fmt.Fprintln(stderr, "benchcheck:", err)
		return 2
	}
	off, failed, err := s.check(ctx, *only, *limit, *list, *replace, stdout)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "benchcheck:", err)
		return 2
	case failed > 0 || off > 0 && !*replace:
		return 1
	}
	return 0
}

func (s sitting) check(ctx context.Context, only string, limit time.Duration, list, replace bool, stdout io.Writer) (off, failed int, err error) {
	name := filepath.Join(s.root, "docs", "benchmarks.md")
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, 0, err
	}
	p, err := parsePage(string(text))
	if err != nil {
		return 0, 0, err
	}
	var selected *regexp.Regexp
	if only != "" {
		if selected, err = regexp.Compile(only); err != nil {
			return 0, 0, fmt.Errorf("-only: %w", err)
		}
	}
	h, err := look(s.root)
	switch {
	case err != nil:
		return 0, 0, err
	case replace && h.head == "":
		return 0, 0, errors.New("-write: no git history says of which commit the figures are")
	case replace && h.dirty:
		return 0, 0, errors.New("-write: files differ from the last commit, so the figures would be of no commit; commit or stash them")
	case h.load >= 1 && !list:
		fmt.Fprintf(s.progress, "the load of the last minute is %.1f: times are those of a busy machine\n", h.load)
	}
	groups := plan(p.rows, selected, h.head)
	if len(groups) == 0 {
		return 0, 0, fmt.Errorf("-only %s: no row of docs/benchmarks.md matches; -list prints the rows", only)
	}
	if list {
		for _, g := range groups {
			for _, r := range g.rows {
				fmt.Fprintf(stdout, "%s %s  %s  (%s)\n", r.date, r.commit, r.name(), r.run)
			}
		}
		return 0, 0, nil
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	var all []outcome
	for i, g := range groups {
		if ctx.Err() == nil {
			fmt.Fprintf(s.progress, "%d of %d: %d rows of %s\n", i+1, len(groups), len(g.rows), g.path)
		}
		done := s.measure(ctx, g)
		all = append(all, done...)
		if replace {
			if err := p.enter(done, h, time.Now()); err != nil {
				return 0, 0, err
			}
			if err := os.WriteFile(name, []byte(p.text()), 0o644); err != nil {
				return 0, 0, err
			}
		}
	}
	off, failed = write(stdout, all)
	return off, failed, nil
}

// enter puts the figures of the rows that ran into the page.
func (p *page) enter(done []outcome, h host, now time.Time) error {
	for _, o := range done {
		if o.reason != "" {
			continue
		}
		letter, err := p.machineFor(h.machine)
		if err != nil {
			return err
		}
		r := p.rows[slices.IndexFunc(p.rows, o.isSame)] // a new machine has moved the lines
		r.figures, r.commit, r.date, r.machine = o.now, h.head, now.Format(time.DateOnly), h.column(letter)
		p.put(r)
	}
	return nil
}
