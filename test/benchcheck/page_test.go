package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sample is a page with both kinds of rows.
const sample = `# Benchmarks
Prose without a figure.

| machine | hardware and software |
|---|---|
| A | 2 cores of X, 24 GiB, ext4, Linux 6.18, go1.26.8 |

## Agent: ledger
| what | figures | benchmark | commit | date | machine |
|---|---|---|---|---|---|
| reserve one GPU | 960 ns/op | ` + "`./agent/ledger BenchmarkReserve/GPU`" + ` | 313882ea | 2026-11-21 | A |
| replay | 1.73 ms/op | ` + "`./agent/ledger BenchmarkReplay`" + ` | 313882ea | 2026-11-20 | A |
| an allocation | 0.93 p50-ms · 761 allocs/s | ` + "`./cmd/dev BenchmarkAllocate/clients=1 -benchtime 20x`" + ` | c81da9d3 | 2026-11-22 | A, load 12 |

` + "```sh" + `
sleep 3 s # a fenced block is no prose
` + "```" + `

## The start of work
| what | figures | benchmark | commit | date | machine |
|---|---|---|---|---|---|
| submit | 141 p50-ms | ` + "`./test/start.sh BenchmarkStart/muster muster bin`" + ` | aaaaaaaa | 2026-11-27 | A |

<!-- cost: begin -->
1,600 allocations, 168 KB
<!-- cost: end -->
`

func mustParse(t *testing.T, text string) *page {
	t.Helper()
	p, err := parsePage(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestThePageIsItsRows(t *testing.T) {
	p := mustParse(t, sample)
	want := []row{
		{10, "Agent: ledger", "reserve one GPU", []figure{{960, "ns/op"}}, command{"./agent/ledger", "BenchmarkReserve/GPU", []string{}}, "313882ea", "2026-11-21", "A"},
		{11, "Agent: ledger", "replay", []figure{{1.73e6, "ns/op"}}, command{"./agent/ledger", "BenchmarkReplay", []string{}}, "313882ea", "2026-11-20", "A"},
		{12, "Agent: ledger", "an allocation", []figure{{0.93, "p50-ms"}, {761, "allocs/s"}}, command{"./cmd/dev", "BenchmarkAllocate/clients=1", []string{"-benchtime", "20x"}}, "c81da9d3", "2026-11-22", "A, load 12"},
		{21, "The start of work", "submit", []figure{{141, "p50-ms"}}, command{"./test/start.sh", "BenchmarkStart/muster", []string{"muster", "bin"}}, "aaaaaaaa", "2026-11-27", "A"},
	}
	if diff := cmp.Diff(want, p.rows, cmp.AllowUnexported(row{}, figure{}, command{})); diff != "" {
		t.Error(diff)
	}
	for _, r := range p.rows {
		p.put(r)
	}
	if diff := cmp.Diff(sample, p.text()); diff != "" {
		t.Errorf("the rows written again:\n%s", diff)
	}
}

func TestAPageThatIsWrongIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"a figure in prose":             {"Prose without a figure.", "A start takes 3 s.", "in prose"},
		"a table with other columns":    {"| what | figures | benchmark | commit | date | machine |\n|---|---|---|---|---|---|\n| submit", "| call | ns/op |\n|---|---|\n| submit", "columns call, ns/op"},
		"a row with a column less":      {" | 2026-11-21 | A |", " | A |", "5 columns"},
		"a row without a benchmark":     {"`./agent/ledger BenchmarkReplay`", "a run by hand", "want `./PACKAGE BenchmarkNAME`"},
		"a row without a commit":        {"| 313882ea | 2026-11-21", "| | 2026-11-21", "eight digits"},
		"a row without a date":          {"2026-11-20", "yesterday", "year-month-day"},
		"a row without a machine":       {"| 2026-11-20 | A |", "| 2026-11-20 | |", "letter of a machine"},
		"a machine that is not listed":  {"| 2026-11-20 | A |", "| 2026-11-20 | C |", "machine C"},
		"a flag that changes the code":  {"-benchtime 20x", "-tags fast", "-tags: want one of"},
		"a flag without a value":        {"-benchtime 20x", "-benchtime", "with its value"},
		"a range instead of a figure":   {"960 ns/op", "960 to 990 ns/op", "want a number and the unit"},
		"two rows that are the same":    {"| replay | 1.73 ms/op | `./agent/ledger BenchmarkReplay`", "| reserve one GPU | 1 ns/op | `./agent/ledger BenchmarkReserve/GPU`", "second row"},
		"a path that leaves the folder": {"./test/start.sh", "./../start.sh", "want `./PACKAGE BenchmarkNAME`"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(sample, c.old, c.new, 1)
			if text == sample {
				t.Fatalf("the sample has no %q", c.old)
			}
			if _, err := parsePage(text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestNewFiguresStandInTheirRows(t *testing.T) {
	p := mustParse(t, sample)
	got := results{"BenchmarkReplay": {"ns/op": {2e6, 4e6, 3e6}}}
	var done []outcome
	for _, r := range p.rows {
		done = append(done, judge(r, got, "the time is over", false))
	}
	h := host{machine: "4 cores of Y, 8 GiB, xfs, Linux 6.20, go1.26.9", load: 3.2, head: "0123abcd"}
	if err := p.enter(done, h, time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(sample, "| replay | 1.73 ms/op | `./agent/ledger BenchmarkReplay` | 313882ea | 2026-11-20 | A |",
		"| replay | 3 ms/op | `./agent/ledger BenchmarkReplay` | 0123abcd | 2026-12-01 | B, load 3 |", 1)
	want = strings.Replace(want, "go1.26.8 |\n", "go1.26.8 |\n| B | 4 cores of Y, 8 GiB, xfs, Linux 6.20, go1.26.9 |\n", 1)
	if diff := cmp.Diff(want, p.text()); diff != "" {
		t.Error(diff)
	}
	mustParse(t, p.text())
}

func TestWithoutNewFiguresThePageStays(t *testing.T) {
	p := mustParse(t, sample)
	if err := p.enter([]outcome{judge(p.rows[0], results{}, "the time is over", false)}, host{machine: "another", head: "0123abcd"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample, p.text()); diff != "" {
		t.Error(diff)
	}
}
