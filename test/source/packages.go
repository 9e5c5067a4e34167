package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Package is the answer of `go list` for a package of the module or for a
// dependency.
type Package struct {
	ImportPath        string
	Imports           []string // import paths
	GoFiles, CgoFiles []string // names of files
	DepOnly           bool     // not of the module
	Error             *struct{ Err string }
	Export            string // for Check, the file of the compiler's export data
}

// Packages lists the packages of the module and all dependencies, dependencies
// first. The packages of nested modules are not among them.
func (t *Tree) Packages() ([]*Package, error) { return t.packages() }

func (t *Tree) list() ([]*Package, error) {
	return List(t.Root, nil, "-e", "-deps", "./...")
}

// Needs returns the import paths of all packages behind a package: the imports, the
// imports of the imports and so on.
func Needs(all []*Package, importPath string) []string {
	imports := map[string][]string{}
	for _, p := range all {
		imports[p.ImportPath] = p.Imports
	}
	seen := map[string]bool{}
	var needed []string
	for todo := imports[importPath]; len(todo) > 0; {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[next] {
			seen[next] = true
			needed = append(needed, next)
			todo = append(todo[:len(todo):len(todo)], imports[next]...)
		}
	}
	return needed
}

// List runs `go list` in a folder with more variables of the environment.
func List(dir string, env []string, args ...string) ([]*Package, error) {
	return list(dir, env, "ImportPath,Imports,CgoFiles,DepOnly,Error", args...)
}

func list(dir string, env []string, fields string, args ...string) ([]*Package, error) {
	cmd := exec.Command("go", append([]string{"list", "-json=" + fields}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	var all []*Package
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p Package
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list %s: %w", strings.Join(args, " "), err)
		}
		all = append(all, &p)
	}
}

// Local returns the path of a package below the module, "." for the module's own
// folder, and whether the package is the module's.
func (t *Tree) Local(importPath string) (string, bool) {
	if importPath == t.Module {
		return ".", true
	}
	return strings.CutPrefix(importPath, t.Module+"/")
}
