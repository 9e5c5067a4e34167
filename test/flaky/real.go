package main

import (
	_ "embed"
	"fmt"
	"go/ast"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/test/source"
)

//go:embed real.txt
var realText string

// realHead begins real.txt.
const realHead = `# Packages with tests that have real clocks, sockets, files or processes, each with the
# first reasons that the rule of test/flaky/real.go finds in its test files.
# go run ./test/flaky -list >test/flaky/real.txt writes the list.
`

// realImports are packages outside the module that bring sockets or processes.
var realImports = []string{"net", "net/http", "net/http/httptest", "os/exec", "os/signal", "syscall", "golang.org/x/sys/unix"}

// realCalls are functions that bring a clock or files.
var realCalls = map[string]bool{
	"time.Sleep": true, "time.After": true, "time.AfterFunc": true, "time.NewTimer": true, "time.NewTicker": true, "time.Tick": true,
	"context.WithTimeout": true, "context.WithDeadline": true, "os.MkdirTemp": true, "os.CreateTemp": true,
}

// realMethods are methods of testing.TB that bring files.
var realMethods = map[string]bool{"TempDir": true}

// readReal reads the folders of real.txt.
func readReal() (map[string]bool, error) {
	folders := map[string]bool{}
	for i, line := range strings.Split(realText, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		folder, reasons, found := strings.Cut(line, "\t")
		if !found || reasons == "" || folders[folder] {
			return nil, fmt.Errorf("real.txt:%d: %q: want a folder, a tab and reasons, and each folder once", i+1, line)
		}
		folders[folder] = true
	}
	return folders, nil
}

// realTests are the folders whose test files have real clocks, sockets, files or
// processes, with the reasons: an import of realImports or of a package below test/ that
// has such an import itself, a call of realCalls outside files that import
// testing/synctest, or a temporary folder.
func realTests(root string) (map[string][]string, error) {
	tree, err := source.Parse(root, nil)
	if err != nil {
		return nil, err
	}
	r := rule{tree: tree, helpers: map[string]bool{}}
	for more := true; more; { // until no further helper imports one
		more = false
		for _, f := range tree.Files {
			folder := f.Folder
			if !f.IsTest() && strings.HasPrefix(folder, "test/") && !r.helpers[folder] && r.importOf(f) != "" {
				r.helpers[folder], more = true, true
			}
		}
	}
	found := map[string][]string{}
	for _, f := range tree.Files {
		if !f.IsTest() {
			continue
		}
		folder := f.Folder
		for _, reason := range r.reasons(f) {
			if !slices.Contains(found[folder], reason) {
				found[folder] = append(found[folder], reason)
			}
		}
	}
	for folder := range found {
		slices.Sort(found[folder])
		if isNested(root, folder) {
			delete(found, folder)
		}
	}
	return found, nil
}

// isNested reports whether a folder is in a module below the root, which is not counted.
func isNested(root, folder string) bool {
	for ; folder != "."; folder = path.Dir(folder) {
		if _, err := os.Stat(filepath.Join(root, folder, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

// rule looks for reasons in the files of a tree.
type rule struct {
	tree    *source.Tree
	helpers map[string]bool // folders below test/ with sockets or processes
}

// importOf is the first import of a file that brings sockets or processes, "" for none.
func (r *rule) importOf(f *source.File) string {
	for _, spec := range f.Syntax.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if slices.Contains(realImports, name) {
			return name
		}
		if folder, local := r.tree.Local(name); local && r.helpers[folder] {
			return folder
		}
	}
	return ""
}

func (r *rule) reasons(f *source.File) (reasons []string) {
	if name := r.importOf(f); name != "" {
		reasons = append(reasons, name)
	}
	inBubbles := slices.ContainsFunc(f.Syntax.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"testing/synctest"` })
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		called, is := call.Fun.(*ast.SelectorExpr)
		if !is {
			return true
		}
		of, is := called.X.(*ast.Ident)
		switch {
		case !is:
		case realCalls[of.Name+"."+called.Sel.Name] && !inBubbles:
			reasons = append(reasons, of.Name+"."+called.Sel.Name)
		case realMethods[called.Sel.Name]:
			reasons = append(reasons, called.Sel.Name)
		}
		return true
	})
	return reasons
}

func printReal(w io.Writer, root string) error {
	found, err := realTests(root)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, realLines(found))
	return err
}

// realLines is real.txt, with at most three reasons for each folder.
func realLines(found map[string][]string) string {
	text := realHead
	for _, folder := range slices.Sorted(maps.Keys(found)) {
		text += folder + "\t" + strings.Join(found[folder][:min(3, len(found[folder]))], " ") + "\n"
	}
	return text
}
