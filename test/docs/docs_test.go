// Package docs_test keeps the documents true where a machine can tell: links
// lead somewhere, examples are the golden files, make targets exist.
package docs_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/grant"
)

// root is the module's folder, from this one.
var root = filepath.Join("..", "..")

// documents lists every Markdown file outside testdata and hidden folders.
func documents(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"bin", "testdata"}, d.Name())) {
			return filepath.SkipDir
		}
		if filepath.Ext(name) == ".md" {
			all[name] = read(t, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	for name, text := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
		}
	}
}

func TestNamedFilesOfTheTreeExist(t *testing.T) {
	named := regexp.MustCompile(`\b(?:examples|systemd|docs|test|tools)/[A-Za-z0-9_./-]*\.(?:yaml|service|md|go|sh|mod|json)\b`)
	for name, text := range documents(t) {
		for _, path := range named.FindAllString(text, -1) {
			at := []string{filepath.Join(root, path), filepath.Join(filepath.Dir(name), path)}
			if !slices.ContainsFunc(at, func(p string) bool { _, err := os.Stat(p); return err == nil }) {
				t.Errorf("%s names %s, which does not exist", name, path)
			}
		}
	}
}

// TestNamedGoFilesExist: a Go file that a document names with a folder is in the tree; the
// folder may be the end of its path. ADRs tell of their time.
func TestNamedGoFilesExist(t *testing.T) {
	x := names(t)
	named := regexp.MustCompile(`[\w.-]+(?:/[\w-]+)*/\w+\.(?:go|proto)\b`)
	for name, text := range documents(t) {
		if strings.Contains(name, "docs/adr/") || strings.HasSuffix(name, "CHANGELOG.md") {
			continue
		}
		for _, path := range named.FindAllString(text, -1) {
			const ofNVIDIA = "internal/rm/health.go"
			if path != ofNVIDIA && !x.paths[strings.TrimPrefix(filepath.Clean(path), "../")] {
				t.Errorf("%s names %s, which does not exist: name its file of today, or the package alone", name, path)
			}
		}
	}
}

func TestMakeTargetsExist(t *testing.T) {
	makefile := read(t, filepath.Join(root, "Makefile"))
	target := regexp.MustCompile("(?m)(?:^|`|; |&& )make ([a-z][a-z-]*)")
	for name, text := range documents(t) {
		for _, m := range target.FindAllStringSubmatch(text, -1) {
			if !regexp.MustCompile(`(?m)^` + m[1] + `:`).MatchString(makefile) {
				t.Errorf("%s says make %s, which is no target", name, m[1])
			}
		}
	}
}

func TestTheStoresExamplesAreItsGoldenFiles(t *testing.T) {
	text := read(t, filepath.Join(root, "docs", "store.md"))
	files, err := filepath.Glob(filepath.Join(root, "coordinator", "record", "testdata", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, file := range files {
		if golden := strings.TrimSpace(read(t, file)); !strings.Contains(text, "\n"+golden+"\n") {
			t.Errorf("docs/store.md lacks the value of %s:\n%s", file, golden)
		}
	}
}

func TestTheProtocolHasTheStepsOfTheCode(t *testing.T) {
	text := read(t, filepath.Join(root, "docs", "PROTOCOL.md"))
	var record, host steps
	for _, e := range grant.RecordEdges() {
		record.add(e.From, e.To)
	}
	for _, e := range grant.Edges() {
		host.add(e.From, e.To)
	}
	for _, line := range []string{"Steps of a record: " + record.String() + ".", "Steps of a grant: " + host.String() + "."} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("docs/PROTOCOL.md lacks the line\n%s", line)
		}
	}
}

// steps writes edges as "`FROM → TO, TO`; `FROM → TO`". Edges of one state are
// added one after the other.
type steps struct {
	from  string
	lines []string
}

func (s *steps) add(from, to fmt.Stringer) {
	if f := from.String(); f != s.from || len(s.lines) == 0 {
		s.from = f
		s.lines = append(s.lines, f+" → "+to.String())
		return
	}
	s.lines[len(s.lines)-1] += ", " + to.String()
}

func (s *steps) String() string { return "`" + strings.Join(s.lines, "`; `") + "`" }

func TestTheInspectPictureIsAGoldenFile(t *testing.T) {
	picture := read(t, filepath.Join(root, "agent", "inspect", "testdata", "gpu-host.txt"))
	if !strings.Contains(read(t, filepath.Join(root, "docs", "inspect.md")), strings.TrimSpace(picture)) {
		t.Error("docs/inspect.md does not show agent/inspect/testdata/gpu-host.txt")
	}
}

// A document that names a test as the evidence of a claim has to name one that
// is there. A name that ends in "…" stands for all that begin with it.
func TestNamedTestsExist(t *testing.T) {
	functions := testFunctions(t)
	named := regexp.MustCompile(`\b((?:Test|Fuzz)[A-Z]\w+)(…?)`)
	for name, text := range documents(t) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			prefixed := func(f string) bool { return strings.HasPrefix(f, m[1]) }
			if !functions[m[1]] && (m[2] == "" || !slices.ContainsFunc(slices.Collect(maps.Keys(functions)), prefixed)) {
				t.Errorf("%s names %s, which is no test", name, m[1]+m[2])
			}
		}
	}
}

// testFunctions lists the names of all tests and fuzz targets of the module.
func testFunctions(t *testing.T) map[string]bool {
	t.Helper()
	functions := map[string]bool{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, "_test.go") {
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(read(t, name), -1) {
				functions[m[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return functions
}
