package report

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The limits above which a test or a package needs a row with a reason.
const (
	TestLimit    = 5 * time.Second  // of wall time, alone on a quiet machine
	PackageLimit = 40 * time.Second // of CPU time
)

// By how much a cost may exceed its row: CPU time by half, since neighbours on the
// same core and seeds differ; the wall time of a test to three times the row, since
// disks and waits for other processes differ more. A test without a row has half
// more than TestLimit.
const (
	margin     = 1.5
	wallMargin = 3
)

//go:embed costs.txt
var costs string

// Module is the import path of the module that costs.txt speaks of.
const Module = "github.com/musterd/muster"

// Row is the cost of a package or, if Test is not empty, of one test.
type Row struct {
	Folder string // of the package, below the repository
	Test   string
	// Waits: the package's tests wait for real clocks, processes and networks
	// for most of their time, so several of them run on one core.
	Waits  bool
	CPU    time.Duration // of a package
	Wall   time.Duration // of a package beside others, or of a test alone
	Reason string
}

// Costs is the table of the dear tests and packages.
type Costs struct {
	packages map[string]Row // by import path
	tests    map[Test]Row   // Seconds is 0
	rows     []Row          // in the order of the file
}

// ReadCosts returns the table of costs.txt.
func ReadCosts() (Costs, error) { return parseCosts(costs) }

// parseCosts reads lines of the two forms, with '#' before comments:
//
//	package FOLDER computes|waits CPU WALL REASON
//	test FOLDER NAME WALL REASON
func parseCosts(text string) (Costs, error) {
	c := Costs{packages: map[string]Row{}, tests: map[Test]Row{}}
	var errs []error
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		row, err := parseRow(line)
		if err != nil {
			errs = append(errs, fmt.Errorf("costs.txt:%d: %w", i+1, err))
			continue
		}
		c.rows = append(c.rows, row)
		if row.Test != "" {
			c.tests[Test{Package: importPath(row.Folder), Name: row.Test}] = row
		} else {
			c.packages[importPath(row.Folder)] = row
		}
	}
	return c, errors.Join(errs...)
}

func parseRow(line string) (Row, error) {
	kind, rest, _ := strings.Cut(line, " ")
	switch kind {
	case "package":
		f := strings.SplitN(rest, " ", 5)
		if len(f) < 5 || f[1] != "waits" && f[1] != "computes" {
			return Row{}, fmt.Errorf("%q is not `package FOLDER computes|waits CPU WALL REASON`", line)
		}
		cpu, err := time.ParseDuration(f[2])
		wall, err2 := time.ParseDuration(f[3])
		return Row{Folder: f[0], Waits: f[1] == "waits", CPU: cpu, Wall: wall, Reason: f[4]}, errors.Join(err, err2)
	case "test":
		f := strings.SplitN(rest, " ", 4)
		if len(f) < 4 {
			return Row{}, fmt.Errorf("%q is not `test FOLDER NAME WALL REASON`", line)
		}
		wall, err := time.ParseDuration(f[2])
		return Row{Folder: f[0], Test: f[1], Wall: wall, Reason: f[3]}, err
	}
	return Row{}, fmt.Errorf("%q begins neither with package nor with test", line)
}

func importPath(folder string) string { return Module + "/" + folder }

// Folder returns the folder of a package below the repository, with slashes.
func Folder(path string) string { return strings.TrimPrefix(path, Module+"/") }

// Package returns a package's row, and false where it has none.
func (c Costs) Package(path string) (Row, bool) {
	r, ok := c.packages[path]
	return r, ok
}

// Expensive returns a complaint for each package that used more CPU than its
// row, or without a row than PackageLimit, allows. Speed is how much longer this
// machine computes than the one whose figures the rows are.
func (c Costs) Expensive(packages []Package, speed float64) []string {
	var complaints []string
	for _, p := range slices.SortedFunc(slices.Values(packages), func(a, b Package) int { return strings.Compare(a.Path, b.Path) }) {
		limit, row := PackageLimit.Seconds()*speed, c.packages[p.Path]
		if more := row.CPU.Seconds() * margin * speed; more > limit {
			limit = more
		}
		if p.CPU > limit {
			complaints = append(complaints, fmt.Sprintf("the tests of %s used %.0f s of CPU, more than %.0f s. Make them cheaper, or leave a part to make test-long (package test/long). If the cost is worth it, test/report/costs.txt takes the row `package %s computes %.0fs %.0fs REASON`",
				p.Path, p.CPU, limit, Folder(p.Path), p.CPU/speed, p.Wall))
		}
	}
	return complaints
}

// Suspects returns the tests that took longer than their row, or without a row
// than TestLimit, allows, the longest first. Beside other packages a test takes
// longer than alone, so a suspect is judged by Slow after it ran alone. Tests of
// packages with a cached result were judged when they ran.
func (c Costs) Suspects(tests []Test, packages []Package) []Test {
	cached := map[string]bool{}
	for _, p := range packages {
		cached[p.Path] = p.Cached
	}
	var suspects []Test
	for _, t := range tests {
		if !cached[t.Package] && t.Seconds > c.limit(t) {
			suspects = append(suspects, t)
		}
	}
	slices.SortFunc(suspects, func(a, b Test) int {
		switch {
		case a.Seconds > b.Seconds:
			return -1
		case a.Seconds < b.Seconds:
			return 1
		}
		return strings.Compare(a.Package+a.Name, b.Package+b.Name)
	})
	return suspects
}

// Slow returns a complaint if a test that ran alone on a quiet machine took
// longer than its row, or without a row than TestLimit, allows, and else "".
func (c Costs) Slow(t Test) string {
	if t.Seconds <= c.limit(t) {
		return ""
	}
	return fmt.Sprintf("the test %s of %s took %.1f s alone, more than %.1f s. Make it faster, or leave a part to make test-long (package test/long). If the time is worth it, test/report/costs.txt takes the row `test %s %s %.0fs REASON`",
		t.Name, t.Package, t.Seconds, c.limit(t), Folder(t.Package), t.Name, t.Seconds)
}

func (c Costs) limit(t Test) float64 {
	row := c.tests[Test{Package: t.Package, Name: t.Name}]
	return max(TestLimit.Seconds()*margin, row.Wall.Seconds()*wallMargin)
}

// Spare returns a line for each row of a package that ran and used less than
// half of its row: the row may be lowered.
func (c Costs) Spare(packages []Package, speed float64) []string {
	used := map[string]float64{}
	for _, p := range packages {
		used[p.Path] = p.CPU
	}
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(c.packages)) {
		if row := c.packages[path]; row.CPU > PackageLimit && used[path] > 0 && used[path] < row.CPU.Seconds()*speed/2 {
			lines = append(lines, fmt.Sprintf("%s used %.0f s of CPU; its row in test/report/costs.txt has %.0f s and may be lowered", path, used[path], row.CPU.Seconds()))
		}
	}
	return lines
}
