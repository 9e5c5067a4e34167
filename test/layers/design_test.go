package layers_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheDesignListsEachPackage: docs/DESIGN.md section 2 has each package of the table
// once, under its layer.
func TestTheDesignListsEachPackage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "DESIGN.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## 2. Packages\n")
	_, section, _ = strings.Cut(section, "\n```\n")
	section, _, found := strings.Cut(section, "\n```\n")
	if !found {
		t.Fatal("docs/DESIGN.md section 2 has no fenced list of packages")
	}
	heading := regexp.MustCompile(`^L([0-4]) \S`)
	entry := regexp.MustCompile(`^  (\S+)/\s+\S`)
	listed := map[string]bool{}
	layer := -1
	for line := range strings.Lines(section) {
		if m := heading.FindStringSubmatch(line); m != nil {
			layer = int(m[1][0] - '0')
			continue
		}
		m := entry.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("docs/DESIGN.md section 2: %q is neither \"L<n> …\" nor \"  folder/  meaning\"", line)
			continue
		}
		switch r, known := table[m[1]]; {
		case !known:
			t.Errorf("docs/DESIGN.md section 2 lists %s, which is no package of test/layers/table_test.go: take the line out", m[1])
		case listed[m[1]]:
			t.Errorf("docs/DESIGN.md section 2 lists %s twice", m[1])
		case r.layer != layer:
			t.Errorf("docs/DESIGN.md section 2 lists %s under L%d; it is of L%d", m[1], layer, r.layer)
		}
		listed[m[1]] = true
	}
	for name := range table {
		if !listed[name] {
			t.Errorf("docs/DESIGN.md section 2 does not list %s: add \"  %s/  \" and its meaning under L%d", name, name, table[name].layer)
		}
	}
}
