package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// root is the repository, from this folder.
var root = filepath.Join("..", "..")

func ofThePage(t *testing.T) []row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	p := mustParse(t, string(text))
	if len(p.rows) == 0 {
		t.Fatal("docs/benchmarks.md has no row")
	}
	return p.rows
}

var benchmark = regexp.MustCompile(`(?m)^func (Benchmark\w+)\(b \*testing\.B\)`)

// benchmarksIn has the names of the benchmarks of a folder; of a script, those of its
// result lines.
func benchmarksIn(t *testing.T, c command) map[string]bool {
	t.Helper()
	form, files := benchmark, []string{filepath.Join(root, c.path)}
	if c.isScript() {
		form = regexp.MustCompile(`"(Benchmark\w+)`)
	} else {
		var err error
		if files, err = filepath.Glob(filepath.Join(root, c.path, "*_test.go")); err != nil {
			t.Fatal(err)
		}
	}
	names := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, m := range form.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
	}
	return names
}

func TestEachRowNamesABenchmarkOfTheSources(t *testing.T) {
	folders := map[string]map[string]bool{}
	for _, r := range ofThePage(t) {
		if folders[r.run.path] == nil {
			folders[r.run.path] = benchmarksIn(t, r.run)
		}
		if !folders[r.run.path][r.run.function()] {
			t.Errorf("docs/benchmarks.md:%d: %s has no %s: name the benchmark that repeats the figure, or take the row out", r.line+1, r.run.path, r.run.function())
		}
	}
}

func TestEachRowNamesADayAndACommitOfThisHistory(t *testing.T) {
	rows := ofThePage(t)
	for _, r := range rows {
		if _, err := time.Parse(time.DateOnly, r.date); err != nil {
			t.Errorf("docs/benchmarks.md:%d: %v", r.line+1, err)
		}
	}
	all, err := git(root, "rev-list", "HEAD")
	shallow, _ := git(root, "rev-parse", "--is-shallow-repository")
	if err != nil || shallow != "false" {
		t.Skip("no reference material: this copy of the sources has no git history, or a part of it")
	}
	known := map[string]bool{}
	for line := range strings.Lines(all) {
		known[line[:8]] = true
	}
	for _, r := range rows {
		if !known[r.commit] {
			t.Errorf("docs/benchmarks.md:%d: commit %s is not in the history: run `make bench-check WRITE=1 ONLY=%s` on a commit that stays", r.line+1, r.commit, r.run.function())
		}
	}
}
