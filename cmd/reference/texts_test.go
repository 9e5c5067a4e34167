package reference

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/test/fresh"
)

// described are the packages whose comments are texts of the reference.
var described = []string{filepath.Join("..", "..", "api"), filepath.Join("..", "..", "resource")}

// comments reads the comments of the exported structs of packages and of their
// fields, each as one line.
func comments(t *testing.T, folders ...string) texts {
	t.Helper()
	all := texts{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files in %s, %v", len(files), folder, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
					for _, s := range g.Specs {
						all.add(g, s.(*ast.TypeSpec))
					}
				}
			}
		}
	}
	return all
}

func (t texts) add(g *ast.GenDecl, s *ast.TypeSpec) {
	fields, ok := s.Type.(*ast.StructType)
	if !ok || !s.Name.IsExported() {
		return
	}
	of := s.Doc
	if of == nil {
		of = g.Doc
	}
	t[s.Name.Name] = plain(of.Text())
	for _, f := range fields.Fields.List {
		for _, name := range f.Names {
			if name.IsExported() && f.Tag != nil {
				t[s.Name.Name+"."+name.Name] = plain(f.Doc.Text())
			}
		}
	}
}

// plain makes one line of a comment.
func plain(text string) string {
	var p comment.Printer
	p.TextWidth = -1
	return strings.Join(strings.Fields(string(p.Text(new(comment.Parser).Parse(text)))), " ")
}

func TestTheTextsAreTheCommentsOfTheSource(t *testing.T) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(comments(t, described...)); err != nil {
		t.Fatal(err)
	}
	fresh.File(t, "texts.json", out.String())
	if _, err := os.Stat("texts.json"); err != nil {
		t.Fatal(err)
	}
}
