package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// reasonOf are the functions that make an event, with the arguments that are reasons.
var reasonOf = map[string][]int{"normal": {0}, "warning": {0}, "crossings": {0, 1}}

// noReasons are literals that are no reasons of events: of work that was not tried yet and
// of nodes of which nothing is written yet there are no events, and Queued is a condition.
var noReasons = map[string]bool{"Unscheduled": true, "NotObserved": true, "NewIncarnation": true, "Queued": true}

// TestTroubleshootingHasEachReasonOfAnEvent: docs/troubleshooting.md has a row for each
// reason that the code can write. Reasons are the literals of package events, and the codes
// by which work waits (package shown). Phases and conditions of nodes have a row for all.
func TestTroubleshootingHasEachReasonOfAnEvent(t *testing.T) {
	table := read(t, filepath.Join("..", "..", "docs", "troubleshooting.md"))
	table = table[strings.Index(table, "## By event"):strings.Index(table, "## By symptom")]
	documented := map[string]bool{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, word := range regexp.MustCompile(`[A-Z][A-Za-z]+`).FindAllString(cells[1], -1) {
				documented[word] = true
			}
		}
	}
	reasons := map[string]string{}
	for _, folder := range []string{"events", "shown"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "coordinator", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, path := range files {
			if !strings.HasSuffix(path, "_test.go") {
				collectReasons(t, folder, path, reasons)
			}
		}
	}
	if len(reasons) < 30 {
		t.Fatalf("only %d reasons were found: %v", len(reasons), reasons)
	}
	for reason, path := range reasons {
		if !documented[reason] && !noReasons[reason] {
			t.Errorf("docs/troubleshooting.md has no row for the reason %s of %s", reason, path)
		}
	}
}

// collectReasons adds the reasons of one file.
func collectReasons(t *testing.T, folder, path string, reasons map[string]string) {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	note := func(e ast.Expr) {
		if text, is := e.(*ast.BasicLit); is && text.Kind == token.STRING {
			if reason, err := strconv.Unquote(text.Value); err == nil && regexp.MustCompile(`^[A-Z][A-Za-z]+$`).MatchString(reason) {
				reasons[reason] = path
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if name, is := n.Fun.(*ast.Ident); is && folder == "events" {
				for _, at := range reasonOf[name.Name] {
					note(n.Args[at])
				}
			}
		case *ast.ValueSpec: // consts: codes of waiting, conditions whose type is the reason
			if folder == "events" || filepath.Base(path) == "waiting.go" {
				for _, v := range n.Values {
					note(v)
				}
			}
		}
		return true
	})
}
