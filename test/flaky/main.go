// Command flaky is `make flaky`: it runs the tests of each package many times and
// counts the runs that fail. Packages of real.txt, whose tests have real clocks,
// sockets, files or processes, run 30 times beside busy loops; others run 3 times,
// with new seeds; and each runs once on one core. Each package has a row in
// table.tsv with its last count.
//
// It decides how often a package runs, and which packages belong in real.txt: a rule
// over their test files (realTests), which a test holds. It does not decide why a
// test fails: the output of each failed run is kept below the build folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	root, build   string
	part          string // "2/5" is the second of five parts
	loops         int
	runs, further int // of packages in real.txt, and of others
	force         bool
	most          time.Duration // no package begins after it; 0 for no bound
	timeout       time.Duration // of one run
	patterns      []string
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "loop" {
		loop(os.Stdin, longestLoop)
		return
	}
	var o options
	var list bool
	flag.StringVar(&o.root, "root", ".", "root of the repository")
	flag.StringVar(&o.build, "build", ".build", "folder of the programs that make fetches, and of the output of failed runs")
	flag.StringVar(&o.part, "part", "1/1", "which part of how many parts of the packages")
	flag.IntVar(&o.loops, "loops", 6, "busy loops beside tests with real clocks, sockets, files or processes")
	flag.IntVar(&o.runs, "runs", 30, "runs of these tests")
	flag.IntVar(&o.further, "further", 3, "runs of all other tests")
	flag.BoolVar(&o.force, "force", false, "also run packages whose row is of the same files and as many runs")
	flag.DurationVar(&o.most, "for", 0, "begin no package after this time; 0 for no bound")
	flag.DurationVar(&o.timeout, "timeout", 15*time.Minute, "time for one run of one package")
	flag.BoolVar(&list, "list", false, "print real.txt as the rule has it, and run nothing")
	flag.Parse()
	if o.patterns = flag.Args(); len(o.patterns) == 0 {
		o.patterns = []string{"./..."}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if list {
		err = printReal(os.Stdout, o.root)
	} else {
		err = count(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "flaky:", err)
		os.Exit(1)
	}
}

// count runs the packages and writes their rows.
func count(ctx context.Context, o options) error {
	if o.loops < 0 || o.runs < 1 || o.further < 1 {
		return fmt.Errorf("%d loops, %d and %d runs: want no negative number of loops and runs from 1", o.loops, o.runs, o.further)
	}
	listed, err := packages(ctx, o)
	if err != nil {
		return err
	}
	real, err := readReal()
	if err != nil {
		return err
	}
	commit, err := commitOf(ctx, o.root)
	if err != nil {
		return err
	}
	began, failed := time.Now(), 0
	for i, folder := range listed {
		if ctx.Err() != nil || o.most > 0 && time.Since(began) > o.most {
			fmt.Printf("%d packages are left: run make flaky again\n", len(listed)-i)
			break
		}
		c := counter{options: o, folder: folder, row: row{Package: folder, Commit: commit, Kind: computes, Runs: o.further}}
		if real[folder] {
			c.row.Kind, c.row.Runs, c.row.Loops = waits, o.runs, o.loops
		}
		if c.row.Files, err = hashOf(filepath.Join(o.root, folder)); err != nil {
			return err
		}
		before, err := readTable(tablePath(o.root))
		if err != nil {
			return err
		}
		if old, found := before[folder]; found && !o.force && old.covers(&c.row) {
			fmt.Printf("%d of %d: %s: counted at %s\n", i+1, len(listed), folder, old.Commit)
			continue
		}
		fmt.Printf("%d of %d: %s\n", i+1, len(listed), folder)
		if err := c.count(ctx); err != nil {
			if ctx.Err() != nil {
				break
			}
			return fmt.Errorf("%s: %w", folder, err)
		}
		if c.row.Failures > 0 {
			failed++
		}
		if err := writeRow(tablePath(o.root), &c.row); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d packages failed now and then: mend the cause of each; no limit of a test is raised without it", failed)
	}
	return context.Cause(ctx)
}

// packages are the folders of the packages with tests, of the part that is asked for.
func packages(ctx context.Context, o options) ([]string, error) {
	var part, parts int
	if n, err := fmt.Sscanf(o.part, "%d/%d", &part, &parts); n != 2 || err != nil || part < 1 || part > parts {
		return nil, fmt.Errorf("part %q: want N/M, from 1/M to M/M", o.part)
	}
	format := `{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}`
	out, err := output(ctx, o.root, append([]string{"go", "list", "-f", format}, o.patterns...)...)
	if err != nil {
		return nil, err
	}
	top, err := filepath.Abs(o.root)
	if err != nil {
		return nil, err
	}
	var chosen []string
	for i, dir := range strings.Fields(out) {
		folder, err := filepath.Rel(top, dir)
		if err != nil {
			return nil, err
		}
		if i%parts == part-1 {
			chosen = append(chosen, filepath.ToSlash(folder))
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("no package with tests matches")
	}
	return chosen, nil
}

func commitOf(ctx context.Context, root string) (string, error) {
	out, err := output(ctx, root, "git", "rev-parse", "--short=8", "HEAD")
	return strings.TrimSpace(out), err
}
