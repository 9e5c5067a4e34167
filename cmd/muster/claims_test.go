package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/DESIGN.md lists verbs that exist, and names as planned only verbs that do
// not.
func TestTheDesignNamesTheVerbsThatExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "DESIGN.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| CLI verbs \| (.*?)\. Planned, not built: (.*) \|$`).FindSubmatch(text)
	if row == nil {
		t.Fatal("docs/DESIGN.md has no row of CLI verbs that ends with those that are planned")
	}
	verbs := map[string]bool{}
	for _, c := range tree().Commands() {
		verbs[c.Name()] = true
	}
	verbs["completion"] = true // cobra adds it when the program runs
	claimed := regexp.MustCompile("`([a-z]+)").FindAllSubmatch(row[1], -1)
	if len(claimed) < 10 {
		t.Errorf("only %d verbs are named: %s", len(claimed), row[1])
	}
	for _, m := range claimed {
		if !verbs[string(m[1])] {
			t.Errorf("docs/DESIGN.md names the verb %s, which does not exist: mark it as planned", m[1])
		}
	}
	for planned := range strings.SplitSeq(string(row[2]), ", ") {
		if verbs[planned] {
			t.Errorf("docs/DESIGN.md says that %s is planned, and it exists", planned)
		}
	}
}
