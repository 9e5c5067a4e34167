package main

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEachPackageRunsOnceAndTheOldestFirst(t *testing.T) {
	rows := mustParse(t, sample).rows
	names := func(groups []group) (all []string) {
		for _, g := range groups {
			all = append(all, fmt.Sprint(g.path, " ", g.pattern(), " ", g.flags))
		}
		return all
	}
	ledger := "./agent/ledger ^BenchmarkReserve$/^GPU$|^BenchmarkReplay$ []"
	allocate := "./cmd/dev ^BenchmarkAllocate$/^clients=1$ [-benchtime 20x]"
	submit := "./test/start.sh ^BenchmarkStart$/^muster$ [muster bin]"
	for name, c := range map[string]struct {
		only, head string
		want       []string
	}{
		"by the oldest row of each package":               {"", "0123abcd", []string{ledger, allocate, submit}},
		"a package whose rows are of this commit is last": {"", "313882ea", []string{allocate, submit, ledger}},
		"rows of a section":                               {"^The start", "", []string{submit}},
		"rows by their text":                              {"replay", "", []string{"./agent/ledger ^BenchmarkReplay$ []"}},
		"rows by their benchmark":                         {"BenchmarkAllocate", "", []string{allocate}},
	} {
		t.Run(name, func(t *testing.T) {
			var only *regexp.Regexp
			if c.only != "" {
				only = regexp.MustCompile(c.only)
			}
			if diff := cmp.Diff(c.want, names(plan(rows, only, c.head))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResultLinesAreRead(t *testing.T) {
	suffix := ""
	if n := runtime.GOMAXPROCS(0); n > 1 {
		suffix = fmt.Sprint("-", n)
	}
	got := results{}
	for _, line := range []string{
		"goos: linux", "pkg: github.com/musterd/muster/agent/ledger",
		"BenchmarkReserve/GPU,_CPU" + suffix + "   \t  107 \t  960.5 ns/op\t    11457 ns/reserve\t      67 allocs/op",
		"BenchmarkReserve/GPU,_CPU" + suffix + "   \t  107 \t  980 ns/op",
		"BenchmarkStart/muster 10 141.0 p50-ms 171.2 p99-ms",
		"--- BENCH: BenchmarkReserve", "BenchmarkReserve", "BenchmarkBroken-2 12 text without figures", "PASS",
	} {
		got.take(line)
	}
	want := results{
		"BenchmarkReserve/GPU,_CPU": {"ns/op": {960.5, 980}, "ns/reserve": {11457}, "allocs/op": {67}},
		"BenchmarkStart/muster":     {"p50-ms": {141}, "p99-ms": {171.2}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if m, ok := got.median("BenchmarkReserve/GPU,_CPU", "ns/op"); m != 970.25 || !ok {
		t.Errorf("median %g, %t; want 970.25", m, ok)
	}
}

func TestAPatternWithoutRowsIsRefused(t *testing.T) {
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"-root", "../..", "-list", "-only", "nosuch row"}, &out, &errs); code != 2 || !strings.Contains(errs.String(), "-only nosuch row: no row of docs/benchmarks.md matches") {
		t.Errorf("exit code %d, %q", code, errs.String())
	}
}
