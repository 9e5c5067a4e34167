package docs_test

import (
	"errors"
	"go/ast"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterd/muster/test/source"
)

// row is one line of a table of docs/words.md, cell by cell.
type row []string

// words reads docs/words.md: the terms, and the names that were replaced.
func words(t *testing.T) (terms, replaced []row) {
	t.Helper()
	text := read(t, filepath.Join(root, "docs", "words.md"))
	current, old, found := strings.Cut(text, "## Words that are no longer used")
	if !found {
		t.Fatal("docs/words.md has no section of replaced words")
	}
	return rows(current, "our word"), rows(old, "old")
}

// rows returns the lines of all tables of a text but their heads, the first
// cell of which is head.
func rows(text, head string) []row {
	var all []row
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if cells[0] != head {
			all = append(all, cells)
		}
	}
	return all
}

func TestWordsListsEachTermOnce(t *testing.T) {
	terms, _ := words(t)
	seen := map[string]bool{}
	for _, r := range terms {
		if len(r) != 3 || slices.Contains(r, "") {
			t.Errorf("%q has %d cells, want three that are not empty", r, len(r))
			continue
		}
		if !strings.HasSuffix(r[1], ".") {
			t.Errorf("the meaning of %s is no sentence: %q", r[0], r[1])
		}
		if term := strings.ToLower(r[0]); seen[term] {
			t.Errorf("%s is listed twice", r[0])
		} else {
			seen[term] = true
		}
	}
	if len(terms) < 60 {
		t.Errorf("%d terms, want 60 and more", len(terms))
	}
}

// TestWordsHasEachKind: a document that clients name by its kind has an entry
// with that kind in code font.
func TestWordsHasEachKind(t *testing.T) {
	terms, _ := words(t)
	var names strings.Builder
	for _, r := range terms {
		names.WriteString(r[0])
	}
	kinds := kindsOfAPI(t)
	if !slices.Contains(kinds, "QuotaDryRun") || !slices.Contains(kinds, "Job") {
		t.Fatalf("package api has the kinds %v, want QuotaDryRun and Job among them", kinds)
	}
	for _, kind := range kinds {
		if !strings.Contains(names.String(), "`"+kind+"`") {
			t.Errorf("docs/words.md has no entry for the kind %s", kind)
		}
	}
}

// kindsOfAPI returns the exported structs of package api that are documents:
// those with a field Kind. A list is a document of its elements' kind, and an
// entry of a reclaim and a reference to an object name the kind of another document,
// and the kind of a resource is its way to be counted.
func kindsOfAPI(t *testing.T) []string {
	t.Helper()
	var kinds []string
	for _, file := range sources(t, "api") {
		ast.Inspect(file.Syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() || strings.HasSuffix(spec.Name.Name, "List") || slices.Contains([]string{"QuotaReclaimed", "ObjectReference", "ResourceSpec"}, spec.Name.Name) {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok && hasField(s, "Kind") {
				kinds = append(kinds, spec.Name.Name)
			}
			return true
		})
	}
	return kinds
}

func hasField(s *ast.StructType, name string) bool {
	return slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool {
		return slices.ContainsFunc(f.Names, func(n *ast.Ident) bool { return n.Name == name })
	})
}

// TestReplacedWordsStayAway: no public name has a word that docs/words.md
// lists as replaced.
func TestReplacedWordsStayAway(t *testing.T) {
	_, replaced := words(t)
	var old [][]string
	for _, r := range replaced {
		for _, name := range strings.Split(r[0], ",") {
			old = append(old, split(strings.TrimSpace(name)))
		}
	}
	if len(old) < 6 {
		t.Fatalf("docs/words.md lists the replaced words %v, want six and more", old)
	}
	names := publicNames(t)
	for _, name := range []string{"resourceVersion", "resource_version", "CreateAllocationRequest", "QuotaTrees"} { // of JSON, of proto twice, of the SDK
		if !slices.Contains(names, name) {
			t.Fatalf("%d public names, without %s", len(names), name)
		}
	}
	for _, name := range names {
		for _, o := range old {
			if containsRun(split(name), o) {
				t.Errorf("%s is public and has the replaced word %s", name, strings.Join(o, " "))
			}
		}
	}
}

// publicNames lists the exported identifiers and JSON fields of api and sdk,
// and the messages, calls and fields of the .proto files of Muster.
func publicNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, file := range append(sources(t, "api"), sources(t, "sdk")...) {
		ast.Inspect(file.Syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if n.IsExported() {
					names = append(names, n.Name)
				}
			case *ast.Field:
				if n.Tag != nil {
					tag, err := strconv.Unquote(n.Tag.Value)
					if err != nil {
						t.Fatal(err)
					}
					name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
					names = append(names, name)
				}
			}
			return true
		})
	}
	ofAgents, err := filepath.Glob(filepath.Join(root, "proto", "muster", "v1", "*.proto"))
	ofAPI, err2 := filepath.Glob(filepath.Join(root, "proto", "muster", "api", "v1", "*.proto"))
	protos := append(ofAgents, ofAPI...)
	if err := errors.Join(err, err2); err != nil || len(ofAgents) == 0 || len(ofAPI) == 0 {
		t.Fatalf("%d .proto files of agents and %d of the API, %v", len(ofAgents), len(ofAPI), err)
	}
	for _, name := range protos {
		for _, m := range declaredName.FindAllStringSubmatch(read(t, name), -1) {
			names = append(names, m[1]+m[2])
		}
	}
	return names
}

// sources parses the files of a package that are no tests.
func sources(t *testing.T, folder string) []*source.File {
	t.Helper()
	tree, err := source.Parse(root, func(name string) bool { return path.Dir(name) == folder && !strings.HasSuffix(name, "_test.go") })
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Files) == 0 {
		t.Fatalf("no sources in %s", folder)
	}
	return tree.Files
}

var (
	// declaredName finds the names that a .proto file declares.
	declaredName = regexp.MustCompile(`(?m)^\s*(?:(?:message|enum|service|rpc) (\w+)|.* (\w+) = \d+\b)`)
	// wordEnd finds the ends of words in a name.
	wordEnd = regexp.MustCompile(`([a-z0-9])([A-Z])|_`)
)

// split returns the words of a name, in lower case: of nobodyYields and of
// nobody_yields nobody and yields.
func split(name string) []string {
	return strings.Fields(strings.ToLower(wordEnd.ReplaceAllString(name, "$1 $2")))
}

// containsRun reports whether part stands in all without a gap.
func containsRun(all, part []string) bool {
	for i := 0; i+len(part) <= len(all); i++ {
		if slices.Equal(all[i:i+len(part)], part) {
			return true
		}
	}
	return false
}
