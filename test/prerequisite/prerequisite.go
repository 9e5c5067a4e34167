// Package prerequisite decides how a test or a benchmark ends on a host that
// lacks a program of test/prerequisites.sh. A test skips with the reason; with
// CI=true the test fails. A benchmark always fails: a benchmark that is silent
// about a missing program looks like a benchmark that ran. The package looks for
// no program itself and fetches none.
package prerequisite

import (
	"fmt"
	"os"
	"testing"
)

// Missing ends a test or benchmark for which lack names the missing program and
// the way to install the program.
func Missing(tb testing.TB, format string, args ...any) {
	tb.Helper()
	lack := fmt.Sprintf(format, args...)
	if _, isBenchmark := tb.(*testing.B); isBenchmark {
		tb.Fatalf("%s; a benchmark does not skip: run `make prerequisites` and add .build/bin to PATH", lack)
	}
	if os.Getenv("CI") == "true" {
		tb.Fatalf("%s; with CI=true no test skips: run `make prerequisites`", lack)
	}
	tb.Skipf("%s (`make prerequisites` fetches the program)", lack)
}
