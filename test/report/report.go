// Package report reads `go test -json` of several runs at once and prints a line
// per package with its wall time, its CPU time and whether its result was cached;
// the output of failed tests; each skipped test with its reason; and a last line
// with the totals. It decides whether the run failed: if anything failed, if no
// test ran, or, with CI=true, if anything was skipped for a reason that is not
// among expected. It decides by costs.txt which tests and packages are slow, and
// starts nothing itself: test/run does.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/musterd/muster/test/long"
)

// event is one line of `go test -json` (see `go doc test2json`).
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

// expected are the beginnings of reasons for which a test may skip anywhere:
// it wants more rights than the machine gives, or material that is kept beside
// the repository and never in it, or a program that is compiled otherwise, or
// `make test-long` runs it.
var expected = []string{"not permitted here: ", "no reference material: ", "not counted here: ", long.Skipped}

type key struct{ pkg, test string }

// Test is the time of one test of the highest level.
type Test struct {
	Package, Name string
	Seconds       float64 // without the time in which it waited for its turn among parallel tests
}

// Package is the cost of one package's tests.
type Package struct {
	Path   string
	Wall   float64 // seconds
	CPU    float64 // seconds of the test binary and of the children that it waited for; of the run that was cached, if Cached
	Cached bool
}

// Report is the state of a run. Several goroutines may call Take.
type Report struct {
	out    io.Writer
	strict bool

	mu                      sync.Mutex
	output                  map[key][]string // of tests and packages that have not ended
	cost                    map[string]*Package
	tests                   []Test
	packages                []Package
	passed, failed, skipped int
	long                    int // of the skipped: `make test-long` runs them
	unexpected              int // of the skipped
	skips                   []string
}

// New returns the report of a run that has not begun. A strict one fails if a
// test is skipped for a reason that is not expected.
func New(out io.Writer, strict bool) *Report {
	return &Report{out: out, strict: strict, output: map[key][]string{}, cost: map[string]*Package{}}
}

// Take takes one line of `go test -json`, or a line of the go command itself.
func (r *Report) Take(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		fmt.Fprintf(r.out, "%s\n", line)
		return
	}
	k := key{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		if !r.noteCost(e) {
			r.output[k] = append(r.output[k], e.Output)
		}
	case "build-fail":
		r.failed++
	case "pass", "skip", "fail":
		if e.Test == "" {
			r.endPackage(e)
		} else {
			r.endTest(e)
		}
		delete(r.output, k)
	}
}

// Fail counts a failure outside any test and prints what has to be done.
func (r *Report) Fail(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed++
	fmt.Fprintf(r.out, "FAIL: "+format+"\n", args...)
}

// Print prints a line among the report's.
func (r *Report) Print(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format+"\n", args...)
}

// End prints the skipped tests and the totals. It returns the exit code.
func (r *Report) End() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.skips {
		fmt.Fprintln(r.out, s)
	}
	if r.long > 0 {
		fmt.Fprintf(r.out, "%d of the skipped tests are left to make test-long\n", r.long)
	}
	code := 0
	switch {
	case r.failed > 0, r.passed == 0:
		code = 1
	case r.strict && r.unexpected > 0:
		fmt.Fprintf(r.out, "CI=true: %d skipped tests are a failure; the expected reasons begin with %q\n", r.unexpected, expected)
		code = 1
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	return code
}

// noteCost keeps what a line says of a package's cost, and reports whether the
// line says that alone.
func (r *Report) noteCost(e event) bool {
	cpu, only := parseCPU(e.Output)
	cached := e.Test == "" && strings.HasPrefix(e.Output, "ok ") && strings.HasSuffix(e.Output, "\t(cached)\n")
	if !only && !cached {
		return false
	}
	p := r.cost[e.Package]
	if p == nil {
		p = &Package{Path: e.Package}
		r.cost[e.Package] = p
	}
	p.CPU += cpu
	p.Cached = p.Cached || cached
	return only
}

func (r *Report) endPackage(e event) {
	if e.Action == "fail" {
		r.failed++ // also a panic or a time-out outside any test
		for _, k := range r.unended(e.Package) {
			fmt.Fprint(r.out, strings.Join(r.output[k], ""))
			delete(r.output, k)
		}
	}
	if e.Action == "skip" { // a package without tests
		return
	}
	p := Package{Path: e.Package}
	if r.cost[e.Package] != nil {
		p = *r.cost[e.Package]
	}
	p.Wall = e.Elapsed
	r.packages = append(r.packages, p)
	fmt.Fprintf(r.out, "%-5s %s %.1fs, cpu %.1fs%s\n", e.Action, e.Package, p.Wall, p.CPU, map[bool]string{true: " (cached)"}[p.Cached])
}

// unended returns the keys of a package with output, the tests first: a test
// has some at the end of its package if it neither passed nor failed nor
// skipped, as in a panic.
func (r *Report) unended(pkg string) []key {
	var keys []key
	for k := range r.output {
		if k.pkg == pkg {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b key) int { return strings.Compare(b.test, a.test) })
	return keys
}

func (r *Report) endTest(e event) {
	k := key{e.Package, e.Test}
	if !strings.Contains(e.Test, "/") {
		r.tests = append(r.tests, Test{e.Package, e.Test, e.Elapsed})
	}
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		r.failed++
		fmt.Fprint(r.out, strings.Join(r.output[k], ""))
	case "skip":
		r.skipped++
		why := reason(r.output[k])
		if strings.Contains(why, long.Skipped) {
			r.long++
		}
		if !slices.ContainsFunc(expected, func(e string) bool { return strings.Contains(why, e) }) {
			r.unexpected++
		}
		r.skips = append(r.skips, fmt.Sprintf("skipped %s %s: %s", e.Package, e.Test, why))
	}
}

// reason is what a test said before it skipped.
func reason(lines []string) string {
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if l != "" && !strings.HasPrefix(l, "=== ") && !strings.HasPrefix(l, "--- ") {
			return l
		}
	}
	return "no reason given"
}

// Costs returns the tests of the highest level and the packages that have ended.
func (r *Report) Costs() ([]Test, []Package) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tests), slices.Clone(r.packages)
}
