package docs_test

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/musterd/muster/test/source"
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
		for _, file := range sources(t, "coordinator/"+folder) {
			collectReasons(folder, file, reasons)
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
func collectReasons(folder string, file *source.File, reasons map[string]string) {
	note := func(e ast.Expr) {
		if text, is := e.(*ast.BasicLit); is && text.Kind == token.STRING {
			if reason, err := strconv.Unquote(text.Value); err == nil && regexp.MustCompile(`^[A-Z][A-Za-z]+$`).MatchString(reason) {
				reasons[reason] = file.Path
			}
		}
	}
	ast.Inspect(file.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if name, is := n.Fun.(*ast.Ident); is && folder == "events" {
				for _, at := range reasonOf[name.Name] {
					note(n.Args[at])
				}
			}
		case *ast.ValueSpec: // consts: codes of waiting, conditions whose type is the reason
			if folder == "events" || file.Name() == "waiting.go" {
				for _, v := range n.Values {
					note(v)
				}
			}
		}
		return true
	})
}
