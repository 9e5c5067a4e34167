package main

import (
	"flag"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	"github.com/musterd/muster/test/house/budget"
	"github.com/musterd/muster/test/ratchet/history"
)

var (
	lowers = flag.Bool("lower", false, "write lower figures into "+listFile+", and delete the rows of what keeps to the limits; nothing rises")
	moves  = flag.Bool("moved", false, "as -lower, and write higher figures where the falls of the same kind cover them: code was moved")
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(-1) // the tree lives as long as the process, in about 800 MB
	debug.SetMemoryLimit(2 << 30)
	os.Exit(m.Run())
}

// root is the module's folder, from the folder of the test.
var root = filepath.Join("..", "..")

// tree is the module itself.
var tree = sync.OnceValues(func() (*code, error) { return load(root, generatedBy) })

// readList reads the list of a module.
func readList(t *testing.T, root string) list {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(listFile)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := parseList(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// measured returns all figures of a module.
func measured(c *code) []figure {
	var all []figure
	for _, k := range kinds {
		all = append(all, k.measure(c)...)
	}
	return all
}

func TestTheTreeKeepsToItsLimits(t *testing.T) {
	c, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	l := readList(t, root)
	verdicts, err := judge(l, measured(c))
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case *moves:
		l, verdicts = move(l, verdicts)
	case *lowers:
		l = lower(l, verdicts)
		verdicts = slices.DeleteFunc(verdicts, func(v verdict) bool { return !v.rises() })
	}
	if *moves || *lowers {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(listFile)), []byte(l.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range verdicts {
		t.Error(v.sentence())
	}
}

func TestTheProductKeepsToItsBudget(t *testing.T) {
	c, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := budget.Sum()
	if err != nil {
		t.Fatal(err)
	}
	for column, measured := range c.totals() {
		if sentence := budget.Judge(allowed, column, measured); sentence != "" {
			t.Error(sentence)
		}
	}
}

// TestTheLimitsAreThoseOfTheDecision holds the limits themselves: a limit may
// become lower.
func TestTheLimitsAreThoseOfTheDecision(t *testing.T) {
	limits := map[string]int{
		"package": 6000, "file": 500, "type": 60, "circle": 12, "steps": 16, "setters": 0, "assigned": 0, "reach": 0, "edits": 0,
		"what": 5, "that": 180, "it": 150, "one": 40, "nobody": 8, "told": 6,
	}
	rows := readList(t, root).byKey()
	for kind, most := range limits {
		if row, ok := rows[key{kind, anyone}]; !ok || row.value > most {
			t.Errorf("%s says %d for the limit of %s (there: %t), and docs/adr/0129 allows at most %d", listFile, row.value, kind, ok, most)
		}
	}
	if len(limits) != len(kinds) {
		t.Errorf("there are %d limits here for %d kinds of figures; add the new kind to both", len(limits), len(kinds))
	}
}

func TestTheListIsInItsOrderAndNamesDecisions(t *testing.T) {
	l := readList(t, root)
	text := l.String()
	l.sort()
	if l.String() != text {
		t.Errorf("%s is not in its order: kinds, then figures from the highest; make house-lower sorts it", listFile)
	}
	for _, r := range l.rows {
		if found, _ := filepath.Glob(filepath.Join(root, "docs", "adr", r.adr+"-*.md")); r.adr != "" && len(found) != 1 {
			t.Errorf("the row of %s %s names the decision %q, which is not in docs/adr", r.kind, r.of, r.adr)
		}
	}
}

func TestNoFigureRoseBesideOtherWork(t *testing.T) {
	commits, err := readHistory(history.Of(t, root, listFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, sentence := range judgeHistory(commits) {
		t.Error(sentence)
	}
}
