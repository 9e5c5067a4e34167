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
