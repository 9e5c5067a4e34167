// Command run is `make test`: it compiles every package once, then runs the tests
// of packages that wait beside those of packages that compute, the longest first,
// and `go vet` beside both. The command decides which package runs in which lane, after
// test/report/costs.txt, and judges tests and packages that are slow; how results
// are counted and printed is test/report's.
//
// `run measure PROGRAM ARGUMENTS` is the -exec of the `go test` below;
// `run parts [PART...]` is `make test-long`.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/musterd/muster/test/long"
	"github.com/musterd/muster/test/report"
)

// options are the flags.
type options struct {
	build    string        // the folder of what `make` fetches and builds
	race     bool          // under the race detector, without vet and without judging costs
	long     bool          // the tests of make test-long, without vet and without judging costs
	timeout  time.Duration // of one package's tests
	nested   string        // folders of modules below this one, with spaces between them
	packages []string      // patterns
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "measure" {
		os.Exit(report.Measure(os.Stdout, os.Args[2:]))
	}
	var o options
	flag.StringVar(&o.build, "build", ".build", "folder of the programs that make fetches")
	flag.BoolVar(&o.race, "race", false, "run the tests under the race detector, and nothing else")
	flag.BoolVar(&o.long, "long", false, "run the packages that leave tests to make test-long, with these tests at their full size")
	flag.DurationVar(&o.timeout, "timeout", 40*time.Minute, "time for the tests of one package, also beside other work")
	flag.StringVar(&o.nested, "nested", "", "folders of the modules below this one")
	flag.Parse()
	if o.packages = flag.Args(); len(o.packages) == 0 {
		o.packages = []string{"./..."}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var code int
	var err error
	if o.packages[0] == "parts" {
		code, err = runLong(ctx, o.build, o.packages[1:])
	} else {
		code, err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "run the tests: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, o options) (int, error) {
	// The -exec of go test is part of the key of a cached result, so -exec is a name
	// that is the same in every clone, and the PATH leads to this program.
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	if err := os.Setenv("PATH", filepath.Dir(self)+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return 1, err
	}
	if o.long {
		if err := os.Setenv(long.Variable, "1"); err != nil {
			return 1, err
		}
	}
	costs, err := report.ReadCosts()
	if err != nil {
		return 1, err
	}
	began := time.Now()
	r := &runner{
		options: o, costs: costs, measure: filepath.Base(self) + " measure",
		report: report.New(os.Stdout, os.Getenv("CI") == "true"),
	}
	packages := r.prepare(ctx)
	r.runLanes(ctx, packages)
	if ctx.Err() != nil {
		r.report.Fail("the run was interrupted")
	}
	if r.full() && ctx.Err() == nil {
		r.judge(ctx)
	}
	r.printPhases(time.Since(began))
	return r.report.End(), nil
}
