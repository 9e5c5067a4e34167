package docs_test

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterd/muster/test/ratchet/history"
)

var lower = flag.Bool("lower", false, "write smaller numbers of words into testdata/size.txt")

// sizeFile has the most words of the documents: for each group a row with its folder, the
// number, and after a rise the ADR with the reason.
var sizeFile = filepath.Join("testdata", "size.txt")

// slack is the part of a number, one in slack, by which the words may be fewer before the
// number has to be lowered: commits that cut a sentence each do not all meet in one line.
const slack = 50

// group is the row of sizeFile that a document counts in, "" for none: docs/reference is
// written from the code, and other folders than docs are small.
func group(document string) string {
	switch folder, _ := filepath.Split(document); folder {
	case "docs/":
		return "docs"
	case "docs/adr/":
		return "docs/adr"
	}
	return ""
}

// written is a document without the figures of test/cost in docs/benchmarks.md.
func written(text string) string {
	before, rest, found := strings.Cut(text, "<!-- cost: begin")
	_, after, ended := strings.Cut(rest, "<!-- cost: end -->")
	if !found || !ended {
		return text
	}
	return before + after
}

// judgeSize compares the words of a group with its number.
func judgeSize(words, most int) string {
	switch {
	case words > most:
		return fmt.Sprintf("%d words, at most %d: cut as many as came; a page that repeats another page or the reference has some. If more words are right, raise the number in a commit of its own, with the ADR that says why in its row", words, most)
	case words < most-most/slack:
		return fmt.Sprintf("%d words, and the number is %d: go test ./test/docs -run DocumentsOnlyShrink -args -lower", words, most)
	}
	return ""
}

func TestDocumentsOnlyShrink(t *testing.T) {
	words := map[string]int{}
	for name, text := range documents(t) {
		document, _ := filepath.Rel(root, name)
		words[group(document)] += len(strings.Fields(written(text)))
	}
	var kept []string
	seen := map[string]bool{}
	for line := range strings.Lines(read(t, sizeFile)) {
		line = strings.TrimSpace(line)
		row := strings.Fields(line)
		if line == "" || strings.HasPrefix(line, "#") {
			kept = append(kept, line)
			continue
		}
		most, err := strconv.Atoi(strings.Join(row[1:min(2, len(row))], ""))
		if err != nil {
			t.Fatalf("%s: %q: want a folder, a number of words, and after a rise the ADR", sizeFile, line)
		}
		seen[row[0]] = true
		if why := judgeSize(words[row[0]], most); why != "" && !(*lower && words[row[0]] < most) {
			t.Errorf("%s: %s", row[0], why)
		}
		kept = append(kept, strings.Join(append([]string{row[0], strconv.Itoa(min(most, words[row[0]]))}, row[2:]...), " "))
	}
	for of := range words {
		if of != "" && !seen[of] {
			t.Errorf("%s has no row of %s", sizeFile, of)
		}
	}
	if *lower {
		if err := os.WriteFile(sizeFile, []byte(strings.Join(kept, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSizes(t *testing.T) {
	for name, c := range map[string]struct {
		words, most int
		refused     bool
	}{
		"as many as allowed":   {1000, 1000, false},
		"one word more":        {1001, 1000, true},
		"a few fewer":          {980, 1000, false},
		"so many fewer":        {979, 1000, true},
		"a folder of no words": {0, 1000, true},
	} {
		if why := judgeSize(c.words, c.most); (why != "") != c.refused {
			t.Errorf("%s: %q, want refused %t", name, why, c.refused)
		}
	}
}

// A number rises alone in a commit, with an ADR in the row.
func TestNumbersOfWordsRiseAlone(t *testing.T) {
	const list = "test/docs/testdata/size.txt"
	for _, c := range history.Of(t, root, list) {
		alone := !slices.ContainsFunc(c.Files, func(f string) bool { return f != list && path.Dir(f) != "docs/adr" })
		for _, sentence := range raisedWords(c, alone) {
			t.Error(sentence)
		}
	}
}

// raisedWords returns a sentence for each number raised beside other work, or without an
// ADR in the row.
func raisedWords(c history.Commit, alone bool) (sentences []string) {
	before := map[string]int{}
	for _, line := range c.Removed {
		if row := strings.Fields(line); len(row) > 1 {
			before[row[0]], _ = strconv.Atoi(row[1])
		}
	}
	for _, line := range c.Added {
		row := strings.Fields(line)
		if len(row) < 2 || before[row[0]] == 0 {
			continue
		}
		if words, _ := strconv.Atoi(row[1]); words > before[row[0]] && !(alone && len(row) > 2) {
			sentences = append(sentences, fmt.Sprintf("%s raised the words of %s from %d to %d: a rise is a commit that changes the number and docs/adr alone, with the ADR in the row", c.Name, row[0], before[row[0]], words))
		}
	}
	return sentences
}

func TestARaiseOfWordsIsTold(t *testing.T) {
	rise := history.Commit{Name: "commit 1", Removed: []string{"docs 100"}, Added: []string{"docs 120"}}
	decided := history.Commit{Name: "commit 2", Removed: []string{"docs 100"}, Added: []string{"docs 120 ADR 132"}}
	for name, c := range map[string]struct {
		commit history.Commit
		alone  bool
		told   int
	}{
		"beside other work":         {decided, false, 1},
		"alone, without a decision": {rise, true, 1},
		"alone, with a decision":    {decided, true, 0},
		"a fall beside other work":  {history.Commit{Removed: []string{"docs 100"}, Added: []string{"docs 90"}}, false, 0},
		"the first number":          {history.Commit{Added: []string{"docs 90"}}, false, 0},
	} {
		if got := raisedWords(c.commit, c.alone); len(got) != c.told {
			t.Errorf("%s: %q, want %d sentences", name, got, c.told)
		}
	}
}
