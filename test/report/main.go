// Command report reads `go test -json` and prints a line per package, the
// output of what failed, every skipped test with its reason, and a last line
// with the totals. It exits 1 if anything failed, if no test ran, or, with
// CI=true, if anything was skipped for a reason that is not among expected.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/musterd/muster/test/long"
)

// event is one line of `go test -json` (see `go doc test2json`).
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

// expected are the beginnings of reasons for which a test may skip anywhere:
// it wants more rights than the machine gives, or material that is kept beside
// the repository and never in it, or `make test-long` runs it.
var expected = []string{"not permitted here: ", "no reference material: ", long.Skipped}

type key struct{ pkg, test string }

// tally is the state of a run.
type tally struct {
	output                  map[key][]string
	passed, failed, skipped int
	unexpected              int // of the skipped
	skips                   []string
}

func main() {
	os.Exit(run(os.Stdin, os.Stdout, os.Getenv("CI") == "true"))
}

// run reports and returns the exit code.
func run(in io.Reader, out io.Writer, strict bool) int {
	t := tally{output: map[key][]string{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<20), 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(out, lines.Text()) // a build error, or the tool itself
			continue
		}
		t.take(e, out)
	}
	for _, s := range t.skips {
		fmt.Fprintln(out, s)
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
	switch {
	case t.failed > 0, t.passed == 0:
		return 1
	case strict && t.unexpected > 0:
		fmt.Fprintln(out, "CI=true: a skipped test is a failure")
		return 1
	}
	return 0
}

func (t *tally) take(e event, out io.Writer) {
	k := key{e.Package, e.Test}
	switch e.Action {
	case "output", "build-output":
		if e.Action == "build-output" {
			fmt.Fprint(out, e.Output)
			return
		}
		t.output[k] = append(t.output[k], e.Output)
	case "build-fail":
		t.failed++
	case "pass", "skip", "fail":
		t.end(e, k, out)
		delete(t.output, k)
	}
}

func (t *tally) end(e event, k key, out io.Writer) {
	if e.Test == "" {
		if e.Action == "fail" {
			t.failed++ // also a panic or a time-out outside any test
			fmt.Fprint(out, strings.Join(t.output[k], ""))
		}
		if e.Action != "skip" { // a package without tests
			fmt.Fprintf(out, "%-5s %s %.1fs\n", e.Action, e.Package, e.Elapsed)
		}
		return
	}
	switch e.Action {
	case "pass":
		t.passed++
	case "fail":
		t.failed++
		fmt.Fprint(out, strings.Join(t.output[k], ""))
	case "skip":
		t.skipped++
		why := reason(t.output[k])
		if !slices.ContainsFunc(expected, func(e string) bool { return strings.Contains(why, e) }) {
			t.unexpected++
		}
		t.skips = append(t.skips, fmt.Sprintf("skipped %s %s: %s", e.Package, e.Test, reason(t.output[k])))
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
