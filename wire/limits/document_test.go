package limits_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/musterd/muster/wire/limits"
)

var update = flag.Bool("update", false, "write the table of docs/reference/messages.md anew")

// TestTheDocumentHasEachLimit holds docs/reference/messages.md to the table;
// `go test ./wire/limits -run Document -update` writes it anew.
func TestTheDocumentHasEachLimit(t *testing.T) {
	const path, mark = "../../docs/reference/messages.md", "<!-- The rest is generated: go test ./wire/limits -run Document -update -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, table, found := strings.Cut(string(text), mark)
	if !found {
		t.Fatalf("%s has no line %q", path, mark)
	}
	want, err := limits.Document()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+mark+"\n"+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if strings.TrimSpace(table) != strings.TrimSpace(want) {
		t.Errorf("%s is not the table of this version: go test ./wire/limits -run Document -update", path)
	}
}
