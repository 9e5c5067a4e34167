package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterd/muster/test/report"
)

// runner is one run.
type runner struct {
	options
	costs   report.Costs
	measure string // the -exec of go test
	report  *report.Report

	mu     sync.Mutex
	phases []phase // in the order in which they ended
}

// full reports whether the run is make test, with vet, gofmt and limits of costs.
func (r *runner) full() bool { return !r.race && !r.long }

// phase is a part of a run.
type phase struct {
	name      string
	wall, cpu time.Duration
}

// listed is a package of `go list -json`.
type listed struct {
	ImportPath                string
	TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles []string
}

// prepare fetches the programs that tests need, while it compiles the packages.
// prepare returns the packages that have tests.
func (r *runner) prepare(ctx context.Context) []string {
	var done sync.WaitGroup
	done.Go(func() {
		r.command(ctx, "prerequisites", os.Stdout, "test/prerequisites.sh", r.build)
	})
	// One action graph compiles everything before several run side by side: the
	// go command does not divide work with another one that runs at the same time.
	var out bytes.Buffer
	arguments := []string{"list", "-export", "-json=ImportPath,TestGoFiles,XTestGoFiles,TestImports,XTestImports"}
	if r.race {
		arguments = append(arguments, "-race")
	}
	r.command(ctx, "compile", &out, goCommand(), append(arguments, r.packages...)...)
	packages, err := withTests(&out, r.long)
	if err != nil {
		r.report.Fail("read the list of packages: %v", err)
	}
	done.Wait()
	return packages
}

// withTests returns the packages of `go list -json` that have tests, or those of
// them that leave tests to make test-long.
func withTests(in io.Reader, onlyLong bool) ([]string, error) {
	var packages []string
	for d := json.NewDecoder(in); ; {
		var p listed
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return packages, nil
		case err != nil:
			return packages, err
		}
		leaves := slices.Contains(append(p.TestImports, p.XTestImports...), report.Module+"/test/long")
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 && (leaves || !onlyLong) {
			packages = append(packages, p.ImportPath)
		}
	}
}

// checkFormat fails for files of the repository that are not gofmt-ed.
func (r *runner) checkFormat(ctx context.Context) {
	var files, out bytes.Buffer
	r.command(ctx, "list of files", &files, "git", "ls-files", "*.go")
	r.command(ctx, "gofmt", &out, "nice", append([]string{"gofmt", "-l"}, strings.Fields(files.String())...)...)
	if out.Len() > 0 {
		r.report.Fail("not gofmt-ed (run gofmt -w on them): %s", bytes.TrimSpace(out.Bytes()))
	}
}

// runLanes runs all lanes at once, and vet and the nested modules beside them.
func (r *runner) runLanes(ctx context.Context, packages []string) {
	var done sync.WaitGroup
	for _, l := range plan(packages, r.costs, cores()) {
		done.Go(func() { r.test(ctx, l.name, "", l.parallel, l.packages) })
	}
	if r.full() {
		done.Go(func() {
			// At a lower priority: gofmt and vet are to fill the time in which tests
			// leave a core idle.
			r.checkFormat(ctx)
			r.command(ctx, "vet", os.Stdout, "nice", append([]string{goCommand(), "vet"}, r.packages...)...)
			for _, folder := range strings.Fields(r.nested) {
				r.command(ctx, "vet of "+folder, os.Stdout, "nice", goCommand(), "vet", "-C", folder, "./...")
				r.test(ctx, folder, folder, 1, []string{"./..."})
			}
		})
	}
	done.Wait()
}

// test runs the tests of packages, at most parallel at a time.
func (r *runner) test(ctx context.Context, name, folder string, parallel int, packages []string) {
	if len(packages) == 0 {
		return
	}
	out, in := io.Pipe()
	var done sync.WaitGroup
	done.Go(func() { r.read(out) })
	r.command(ctx, name, in, goCommand(), r.testArguments(folder, parallel, packages)...)
	_ = in.Close() // never fails
	done.Wait()
}

func (r *runner) testArguments(folder string, parallel int, packages []string) []string {
	arguments := []string{"test"}
	if folder != "" {
		arguments = append(arguments, "-C", folder)
	}
	if r.race {
		arguments = append(arguments, "-race")
	}
	arguments = append(arguments, "-json", "-vet=off", fmt.Sprintf("-timeout=%s", r.timeout), fmt.Sprintf("-p=%d", parallel), "-exec="+r.measure)
	return append(arguments, packages...)
}

// read gives each line of the go command to the report.
func (r *runner) read(in io.Reader) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSuffix(line, []byte("\n")); len(line) > 0 {
			r.report.Take(line)
		}
		if err != nil {
			return // the end: the pipe has no other error
		}
	}
}

// command runs a program as a phase. A failure counts, unless the program is
// go test: the report counts failed tests by themselves.
func (r *runner) command(ctx context.Context, name string, out io.Writer, program string, arguments ...string) {
	began := time.Now()
	c := exec.CommandContext(ctx, program, arguments...)
	c.Stdout, c.Stderr = out, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = time.Minute
	err := c.Run()
	p := phase{name: name, wall: time.Since(began)}
	if c.ProcessState != nil {
		p.cpu = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	r.note(p)
	var exit *exec.ExitError
	if isTest := slices.Contains(arguments, "-json"); err != nil && !(isTest && errors.As(err, &exit)) {
		r.report.Fail("%s: %v: %s %s", name, err, program, strings.Join(arguments[:min(len(arguments), 4)], " "))
	}
}

// goCommand returns the go command, which make names in GO.
func goCommand() string { return cmp.Or(os.Getenv("GO"), "go") }

func (r *runner) note(p phase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phases = append(r.phases, p)
}

// printPhases prints the time of each phase. Phases overlap; the CPU time of a lane
// includes compiling and linking.
func (r *runner) printPhases(total time.Duration) {
	var cpu time.Duration
	for _, p := range r.phases {
		r.report.Print("phase %s: %.0fs, cpu %.0fs", p.name, p.wall.Seconds(), p.cpu.Seconds())
		cpu += p.cpu
	}
	var tests float64
	cached := 0
	_, packages := r.report.Costs()
	for _, p := range packages {
		if p.Cached {
			cached++
		} else {
			tests += p.CPU
		}
	}
	r.report.Print("%d packages, %d of them cached", len(packages), cached)
	r.report.Print("all phases: %.0fs, cpu %.0fs of %.0fs on %d cores: tests %.0fs, the rest compiles, links and vets",
		total.Seconds(), cpu.Seconds(), total.Seconds()*float64(cores()), cores(), tests)
}
