// Package fuzzed holds every decoder to a fuzz target.
package fuzzed

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/test/programs"
)

// decodes are the names of functions that read bytes or a text from outside.
var decodes = regexp.MustCompile(`^(Decode|Parse|UnmarshalJSON$|UnmarshalText$)`)

// unfuzzed are decoders without a target of their own, with the reason. An entry that a
// target reaches, or that is gone, fails the test.
var unfuzzed = map[string]string{
	"cmd/configfile.UnmarshalJSON":     "a value of the administrator's own configuration file",
	"coordinator/record.UnmarshalText": "ParseUnitKey reads the same text",
	"devices.ParseLink":                "a switch over the names of links",
	"devices/fake.UnmarshalJSON":       "FuzzParseProfile reads it through encoding/json",
	"grant.UnmarshalText":              "a switch over the names of states",
	"pki.ParseKey":                     "the administrator's own key file",
	"resource.UnmarshalJSON":           "FuzzReadReason reads it through encoding/json",
	"resource/bitset.UnmarshalText":    "Parse reads the same text",
}

// function is a function of a package.
type function struct{ of, name string }

// tree is the functions of the module: those by name in each package, the fuzz targets,
// and the decoders.
type tree struct {
	functions map[function][]*ast.FuncDecl
	targets   map[*ast.FuncDecl]string // the packages
	decoders  map[function]string      // the files
}

// isOwn reports whether a folder has code of the programs or tests of it.
func isOwn(name string) bool {
	return !strings.HasPrefix(name, ".") && name != "testdata" && name != "tools" && name != "node_modules"
}

func read(t *testing.T) tree {
	t.Helper()
	root, err := programs.Root()
	if err != nil {
		t.Fatal(err)
	}
	all := tree{map[function][]*ast.FuncDecl{}, map[*ast.FuncDecl]string{}, map[function]string{}}
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != root && !isOwn(e.Name()):
			return filepath.SkipDir
		case e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".pb.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		of, err := filepath.Rel(root, filepath.Dir(path))
		if err == nil {
			all.take(filepath.ToSlash(of), path, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// take takes the functions of a file.
func (a tree) take(of, path string, file *ast.File) {
	isTest := strings.HasSuffix(path, "_test.go")
	for _, d := range file.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is {
			continue
		}
		key := function{of, f.Name.Name}
		a.functions[key] = append(a.functions[key], f)
		switch {
		case isTest && strings.HasPrefix(f.Name.Name, "Fuzz"):
			a.targets[f] = of
		case !isTest && !strings.HasPrefix(of, "test") && of != "cmd/reference" && decodes.MatchString(f.Name.Name) && takesBytes(f):
			a.decoders[key] = path
		}
	}
}

// takesBytes reports whether a function has a parameter of bytes, a text or a reader.
func takesBytes(f *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool {
		switch t := p.Type.(type) {
		case *ast.ArrayType:
			id, is := t.Elt.(*ast.Ident)
			return is && id.Name == "byte"
		case *ast.Ident:
			return t.Name == "string"
		case *ast.SelectorExpr:
			return t.Sel.Name == "Reader"
		}
		return false
	})
}

// reached are the names that the fuzz targets use, through functions of their packages.
func (a tree) reached() map[string]bool {
	names, seen := map[string]bool{}, map[*ast.FuncDecl]bool{}
	var follow func(of string, f *ast.FuncDecl)
	follow = func(of string, f *ast.FuncDecl) {
		if seen[f] {
			return
		}
		seen[f] = true
		ast.Inspect(f, func(n ast.Node) bool {
			if id, is := n.(*ast.Ident); is {
				names[id.Name] = true
				for _, next := range a.functions[function{of, id.Name}] {
					follow(of, next)
				}
			}
			return true
		})
	}
	for f, of := range a.targets {
		follow(of, f)
	}
	return names
}

// Every decoder of bytes from outside has a fuzz target: write one beside the decoder's
// tests, or say here why there is none.
func TestEveryDecoderHasAFuzzTarget(t *testing.T) {
	all := read(t)
	if len(all.targets) < 60 || len(all.decoders) < 60 {
		t.Fatalf("found %d targets and %d decoders: the walk has missed most of the module", len(all.targets), len(all.decoders))
	}
	reached, needless := all.reached(), maps.Clone(unfuzzed)
	for d, path := range all.decoders {
		name := d.of + "." + d.name
		switch {
		case reached[d.name]:
		case unfuzzed[name] == "":
			t.Errorf("%s: %s has no fuzz target, and no reason in test/fuzzed says why", path, name)
		default:
			delete(needless, name)
		}
	}
	for name := range needless {
		t.Errorf("unfuzzed has %s, which a target reaches or which is gone: take the entry out", name)
	}
}
