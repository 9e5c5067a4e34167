// Package long divides the tests between `make test`, which is to end within
// ten minutes on two cores, and `make test-long`. It decides which of the two a
// test is in and nothing else: the sizes of tests with flags of their own are in
// test/long/parts, and the environment variable Variable is the only switch.
//
// A test whose whole work belongs in `make test-long` begins with Only. A test
// that has a small and a large size takes its size from Size:
//
//	rounds := flag.Int("kills.rounds", long.Size(3, 200), "how many rounds")
package long

import (
	"os"
	"testing"
)

// Variable is the environment variable that `make test-long` sets to 1.
// `go test` reads it as part of a cached result's key, so a result of the short
// size is never taken for one of the long size.
const Variable = "MUSTER_TEST_LONG"

// Skipped begins the reason of each test that `make test` leaves to
// `make test-long`. test/report counts such tests apart from other skips.
const Skipped = "in test-long: "

// Enabled reports whether the tests run at the size of `make test-long`.
func Enabled() bool { return os.Getenv(Variable) == "1" }

// Only skips the test unless `make test-long` runs it. The reason says what
// costs the time, and which test of `make test` holds the same rule at a smaller
// size: "20,000 seeds take an hour; TestSeedsHoldEveryInvariant runs 300".
func Only(t testing.TB, reason string) {
	t.Helper()
	if !Enabled() {
		t.Skip(Skipped + reason)
	}
}

// Size returns short in `make test` and long in `make test-long`.
func Size[T any](short, long T) T {
	if Enabled() {
		return long
	}
	return short
}
