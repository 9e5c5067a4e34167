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
	Imports, Deps     []string // import paths; Deps are the imports of imports too
	GoFiles, CgoFiles []string // names of files
	Standard          bool
	DepOnly           bool // not of the module
	Error             *struct{ Err string }
	Export            string // for Check, the file of the compiler's export data
}

// Packages lists the packages of the module and all dependencies, dependencies
// first. The packages of nested modules are not among them.
func (t *Tree) Packages() ([]*Package, error) { return t.packages() }

func (t *Tree) list() ([]*Package, error) {
	return List(t.Root, nil, "-e", "-deps", "./...")
}

// List runs `go list` in a folder with more variables of the environment.
func List(dir string, env []string, args ...string) ([]*Package, error) {
	return list(dir, env, "ImportPath,Imports,Deps,GoFiles,CgoFiles,Standard,DepOnly,Error", args...)
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
