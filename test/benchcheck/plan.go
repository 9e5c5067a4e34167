package main

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// command is the benchmark of a row: a folder of the repository and the name of a
// result line, or a script of the repository that prints such a line.
type command struct {
	path  string   // "./agent/ledger", or "./test/bench/start/start.sh"
	name  string   // "BenchmarkReserveOneGPU/gpu"
	flags []string // of go test, in pairs; of a script, its arguments
}

// allowed are the flags of go test that a row may set.
var allowed = []string{"-benchtime", "-count"}

// parseCommand reads a code span: `./PACKAGE BenchmarkNAME [-benchtime T] [-count N]`,
// or `./SCRIPT.sh BenchmarkNAME [ARGUMENT …]`.
func parseCommand(cell string) (c command, err error) {
	fields := strings.Fields(strings.Trim(cell, "`"))
	if len(fields) < 2 || !strings.HasPrefix(cell, "`") || !strings.HasSuffix(cell, "`") ||
		!strings.HasPrefix(fields[0], "./") || path.Clean(fields[0]) != fields[0][2:] || !filepath.IsLocal(fields[0]) || !strings.HasPrefix(fields[1], "Benchmark") {
		return c, fmt.Errorf("benchmark %q: want `./PACKAGE BenchmarkNAME`, or `./SCRIPT.sh BenchmarkNAME ARGUMENT`", cell)
	}
	c = command{fields[0], fields[1], fields[2:]}
	if c.isScript() {
		return c, nil
	}
	for i := 0; i < len(c.flags); i += 2 {
		if !slices.Contains(allowed, c.flags[i]) || i+1 == len(c.flags) {
			return c, fmt.Errorf("benchmark %q: %s: want one of %s with its value", cell, c.flags[i], strings.Join(allowed, ", "))
		}
	}
	return c, nil
}

func (c command) String() string {
	return strings.Join(append([]string{c.path, c.name}, c.flags...), " ")
}

// short is the command without its flags, as reports show a row.
func (c command) short() string { return strings.TrimPrefix(c.path, "./") + " " + c.name }

func (c command) isScript() bool { return strings.HasSuffix(c.path, ".sh") }

// function is the name of the benchmark's function.
func (c command) function() string {
	name, _, _ := strings.Cut(c.name, "/")
	return name
}

// group is the rows that one process measures.
type group struct {
	path  string
	flags []string
	rows  []row
}

func (g group) isScript() bool { return command{path: g.path}.isScript() }

// pattern selects exactly the benchmarks of the rows.
func (g group) pattern() string {
	var all []string
	for _, r := range g.rows {
		var parts []string
		for part := range strings.SplitSeq(r.run.name, "/") {
			parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
		}
		if p := strings.Join(parts, "/"); !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return strings.Join(all, "|")
}

// plan groups the selected rows by package and flags. The group whose oldest figure
// has waited longest comes first; a group whose figures are all of this commit is last.
func plan(rows []row, only *regexp.Regexp, head string) []group {
	var groups []group
	for _, r := range rows {
		if only != nil && !only.MatchString(r.name()+" "+r.run.String()) {
			continue
		}
		at := slices.IndexFunc(groups, func(g group) bool { return g.path == r.run.path && slices.Equal(g.flags, r.run.flags) })
		if at < 0 {
			groups = append(groups, group{path: r.run.path, flags: r.run.flags})
			at = len(groups) - 1
		}
		groups[at].rows = append(groups[at].rows, r)
	}
	age := func(g group) string {
		oldest := "9999" // all rows are of this commit
		for _, r := range g.rows {
			if r.commit != head {
				oldest = min(oldest, r.date)
			}
		}
		return oldest
	}
	slices.SortStableFunc(groups, func(x, y group) int { return cmp.Compare(age(x), age(y)) })
	return groups
}
