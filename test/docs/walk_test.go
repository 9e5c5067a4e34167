package docs_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// walkFile finds the functions of docs/walk.md with the file in parentheses behind them:
// one function, or several joined by commas and "and".
var walkFile = regexp.MustCompile("((?:`[\\w.]+`(?:, | and ))*`[\\w.]+`)\\s+\\(([\\w/]+\\.go)\\)")

// TestTheWalkNamesFunctionsWithTheirFiles: each function that docs/walk.md names before a
// file is declared in that file.
func TestTheWalkNamesFunctionsWithTheirFiles(t *testing.T) {
	x := names(t)
	text := read(t, filepath.Join(root, "docs", "walk.md"))
	all := walkFile.FindAllStringSubmatch(text, -1)
	if files := strings.Count(text, ".go)"); len(all) != files || files < 15 {
		t.Errorf("docs/walk.md has %d files in parentheses, %d of them right behind a function; want the same number, 15 and more: write `Type.function` (file.go)", files, len(all))
	}
	for _, m := range all {
		for _, f := range codeFont.FindAllStringSubmatch(m[1], -1) {
			if !slices.Contains(x.at[f[1]], m[2]) {
				t.Errorf("docs/walk.md: %s is not in %s; it is in %v: mend the step of the walk", f[1], m[2], x.at[f[1]])
			}
		}
	}
}

var (
	// packageTests finds a package with tests of it behind it: `wire/limits` TestA, `TestB`.
	packageTests = regexp.MustCompile("`([\\w/]+)`((?:,? `?(?:Test|Fuzz)[A-Z]\\w+…?`?)+)")
	testName     = regexp.MustCompile(`((?:Test|Fuzz)[A-Z]\w+)(…?)`)
)

// TestTestsAreInTheirPackages: a test that a document names right behind a package is in
// that package. A name that ends in "…" stands for all that begin with it.
func TestTestsAreInTheirPackages(t *testing.T) {
	x := names(t)
	found := 0
	for name, text := range documents(t) {
		if strings.Contains(name, "docs/adr/") {
			continue
		}
		for _, m := range packageTests.FindAllStringSubmatch(text, -1) {
			if !x.folders[m[1]] {
				continue
			}
			for _, test := range testName.FindAllStringSubmatch(m[2], -1) {
				found++
				if !slices.ContainsFunc(x.tests, func(f testFunction) bool {
					return (f.folder == m[1] || strings.HasPrefix(f.folder, m[1]+"/")) && (f.name == test[1] || test[2] != "" && strings.HasPrefix(f.name, test[1]))
				}) {
					t.Errorf("%s names %s of %s: no test of that package has the name", name, test[0], m[1])
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("the documents name %d tests with their packages, want 30 and more", found)
	}
}
