package docs_test

import (
	"go/ast"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/musterd/muster/test/source"
)

// nameIndex has the names that documents may have in code font.
type nameIndex struct {
	paths     map[string]bool // files and folders below the module, and every tail of these
	folders   map[string]bool // folders with Go files
	declared  map[string]bool // X, pkg.X, Type.X, pkg.Type.X
	at        map[string][]string
	literals  map[string]bool // texts in the code of the programs
	fields    map[string]bool // fields of documents and messages
	rpcs      map[string]bool // muster.v1.Agent, muster.v1.Agent/Session
	tests     []testFunction
	keys      map[string]bool     // of configurations
	series    map[string]bool     // of Prometheus
	commands  map[string][]string // "muster quota apply" → flags
	groups    map[string]bool     // commands with further verbs
	verbs     map[string]bool     // first verbs of muster
	flags     map[string]bool     // of any command
	programs  map[string]bool
	storeKeys []string // their forms, with X for what varies
	makefile  string
	foreign   map[string]string // word → meaning
}

// testFunction is a test or a benchmark with its folder.
type testFunction struct{ name, folder string }

var (
	indexOnce = sync.OnceValues(buildIndex)
	// code is the Go code of the module, read once for all tests.
	code = sync.OnceValues(func() (*source.Tree, error) { return source.Parse(root, nil) })
)

// names returns the index of the module's names.
func names(t *testing.T) *nameIndex {
	t.Helper()
	x, err := indexOnce()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func buildIndex() (*nameIndex, error) {
	x := &nameIndex{
		paths: map[string]bool{}, folders: map[string]bool{}, declared: map[string]bool{}, at: map[string][]string{}, literals: map[string]bool{}, fields: map[string]bool{}, rpcs: map[string]bool{},
		keys: map[string]bool{}, series: map[string]bool{}, commands: map[string][]string{}, groups: map[string]bool{}, verbs: map[string]bool{}, flags: map[string]bool{}, foreign: map[string]string{},
		programs: map[string]bool{"muster-dev": true},
	}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, _ := filepath.Rel(root, name)
		if d.IsDir() && below != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin") {
			return filepath.SkipDir
		}
		for tail := below; ; {
			x.paths[tail] = true
			_, rest, more := strings.Cut(tail, "/")
			if !more {
				break
			}
			tail = rest
		}
		switch folder, _ := filepath.Split(below); {
		case strings.Contains(below, "testdata/"):
		case filepath.Ext(below) == ".go":
			x.folders[filepath.Clean(folder)] = true
		case filepath.Ext(below) == ".proto":
			return x.addProto(name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	tree, err := code()
	if err != nil {
		return nil, err
	}
	for _, f := range tree.Files {
		x.addGo(f.Syntax, f.Path)
	}
	return x, x.addPages()
}

// addGo adds the names of one Go file.
func (x *nameIndex) addGo(file *ast.File, below string) {
	isTest := strings.HasSuffix(below, "_test.go") || strings.HasPrefix(below, "test/")
	pkg := file.Name.Name
	add := func(names ...string) {
		full := pkg
		for i := len(names) - 1; i >= 0; i-- { // X, Type.X
			x.note(strings.Join(names[i:], "."), below)
		}
		for _, n := range names {
			full += "." + n
		}
		x.note(full, below)
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				add(receiver(d.Recv.List[0].Type), d.Name.Name)
				continue
			}
			add(d.Name.Name)
			if isTest {
				x.tests = append(x.tests, testFunction{d.Name.Name, filepath.Dir(below)})
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name.Name)
					for _, member := range members(spec.Type) {
						add(spec.Name.Name, member)
					}
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						add(n.Name)
					}
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && !isTest {
				x.literals[text] = true
			}
		case *ast.Field:
			if n.Tag != nil && !isTest {
				tag, _ := strconv.Unquote(n.Tag.Value)
				for _, of := range []string{"json", "yaml"} {
					field, _, _ := strings.Cut(reflect.StructTag(tag).Get(of), ",")
					x.fields[field] = field != ""
				}
			}
		}
		return true
	})
}

func (x *nameIndex) note(name, file string) {
	x.declared[name] = true
	x.at[name] = append(x.at[name], file)
}

// receiver is the type of a method.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// members are the fields of a struct and the methods of an interface.
func members(e ast.Expr) (all []string) {
	var list *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		list = e.Fields
	case *ast.InterfaceType:
		list = e.Methods
	default:
		return nil
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			all = append(all, n.Name)
		}
	}
	return all
}

var protoLine = regexp.MustCompile(`^\s*(package|service|rpc) ([\w.]+)`)

// addProto adds the services and the fields of one .proto file.
func (x *nameIndex) addProto(name string) error {
	text, err := readFile(name)
	if err != nil {
		return err
	}
	pkg, service := "", ""
	for line := range strings.Lines(text) {
		switch m := protoLine.FindStringSubmatch(line); {
		case m == nil:
		case m[1] == "package":
			pkg = m[2]
			x.rpcs[pkg], x.literals[pkg] = true, true
		case m[1] == "service":
			service = pkg + "." + m[2]
			x.literals[service] = true
		case m[1] == "rpc":
			x.rpcs[service+"/"+m[2]] = true
		}
	}
	for _, m := range declaredName.FindAllStringSubmatch(text, -1) {
		x.fields[m[1]+m[2]] = true
	}
	return nil
}
