package why_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// constants lists the values of a package's string constants whose names have one of
// the prefixes.
func constants(t *testing.T, folder string, prefixes ...string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, id := range spec.Names {
				for _, prefix := range prefixes {
					if !strings.HasPrefix(id.Name, prefix) || i >= len(spec.Values) {
						continue
					}
					if value, ok := spec.Values[i].(*ast.BasicLit); ok && value.Kind == token.STRING {
						text, err := strconv.Unquote(value.Value)
						if err != nil {
							t.Fatal(err)
						}
						found[id.Name] = text
					}
				}
			}
			return true
		})
	}
	return found
}

// Every code of a reason in package api and in package resource that a node or a unit
// can have, and every bound, is in a transcript of testdata/reasons.
func TestEveryReasonHasATranscript(t *testing.T) {
	text, err := os.ReadFile("testdata/reasons")
	if err != nil {
		t.Fatal(err)
	}
	// Quota is shown by the level of the quota that is short (QuotaOfNamespace, …).
	// An agent's refusals of a message are words of Backoff. No program makes
	// AheadInQueue now.
	elsewhere := map[string]bool{
		"Quota": true, "QuotaExceeded": true, "InvalidRequest": true, "Decided": true, "StaleEpoch": true, "AheadInQueue": true,
	}
	count := 0
	check := func(code, want string) {
		t.Helper()
		if count++; !elsewhere[code] && !strings.Contains(string(text), want) {
			t.Errorf("no transcript has %q: add a case to cases() in reasons_test.go and its answer to testdata/reasons", want)
		}
	}
	for _, code := range constants(t, "../../resource", "Reason") {
		check(code, "["+code+"]")
	}
	for _, code := range constants(t, ".", "code", "Code") {
		check(code, "["+code+"]")
	}
	for name, code := range constants(t, "../whatif", "No", "Node", "Over", "TooWide") {
		if name != "NodesBack" { // a hint
			check(code, "never: "+code)
		}
	}
	if count < 40 {
		t.Errorf("%d codes were found, want at least 40: are they declared elsewhere now?", count)
	}
}
