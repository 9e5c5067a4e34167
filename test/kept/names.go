package kept

import (
	"bufio"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Name is a test, benchmark, fuzz target or example.
type Name struct {
	Package string // its folder below the repository, with slashes
	Test    string
}

func (n Name) String() string { return n.Package + " " + n.Test }

// compare orders names for lists and messages.
func compare(a, b Name) int {
	return cmp.Or(strings.Compare(a.Package, b.Package), strings.Compare(a.Test, b.Test))
}

// listed matches the names that `go test -list` can show. TestMain is none.
var listed = regexp.MustCompile(`^(Test|Benchmark|Fuzz|Example)([^a-z].*)?$`)

// Tests returns the tests of every package below root, nested modules included.
func Tests(root string) (map[Name]bool, error) {
	found := map[Name]bool{}
	err := eachFile(root, func(pkg, name string) error {
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parse(name)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name != "TestMain" && listed.MatchString(f.Name.Name) {
				found[Name{pkg, f.Name.Name}] = true
			}
		}
		return nil
	})
	return found, err
}

// eachFile calls f for each Go file of the tree that the go command would read.
func eachFile(root string, f func(pkg, name string) error) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") || d.Name() == "testdata" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		below, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		return f(filepath.ToSlash(below), name)
	})
}

func parse(name string) (*ast.File, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse a file of tests: %w", err)
	}
	return file, nil
}

// missing returns the names of before that today's names lack. A test counts as
// moved, not as missing, if a package that had no test of its name before has one
// today; each such package stands for one missing test.
func missing(before, today map[Name]bool) []Name {
	arrived := map[string]int{} // by the test's name
	for n := range today {
		if !before[n] {
			arrived[n.Test]++
		}
	}
	var lost []Name
	for _, n := range slices.SortedFunc(maps.Keys(before), compare) {
		switch {
		case today[n]:
		case arrived[n.Test] > 0:
			arrived[n.Test]--
		default:
			lost = append(lost, n)
		}
	}
	return lost
}

// readTests reads a list of packages, each followed by its tests with a tab
// before each name. Lines that begin with '#' are comments.
func readTests(text string) (map[Name]bool, error) {
	all := map[Name]bool{}
	pkg := ""
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		test, indented := strings.CutPrefix(line, "\t")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !indented:
			pkg = line
		case pkg == "":
			return nil, fmt.Errorf("the test %s stands before any package", test)
		default:
			all[Name{pkg, test}] = true
		}
	}
	return all, lines.Err()
}
