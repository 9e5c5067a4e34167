package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// docs/DESIGN.md lists verbs that exist.
func TestTheDesignNamesTheVerbsThatExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "DESIGN.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| CLI verbs \| (.*); docs/reference/muster.md has all \|$`).FindSubmatch(text)
	if row == nil {
		t.Fatal("docs/DESIGN.md has no row of CLI verbs that ends with the page that has all")
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
			t.Errorf("docs/DESIGN.md names the verb %s, which does not exist: take it out of the row", m[1])
		}
	}
}
