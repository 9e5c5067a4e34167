package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// This file draws mistakes by chance. The lists have the mistakes of people; a draw
// measures the tests of a package without their authors in mind.

// draw returns n mutations of the files of a package, for the tests of the package. Each
// kind of mistake has the same chance, and a seed always draws the same.
func draw(root, dir string, n int, seed uint64) ([]mutation, error) {
	if n < 1 {
		return nil, fmt.Errorf("-n is %d, and has to be at least 1", n)
	}
	names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go"))
	if err != nil {
		return nil, err
	}
	kinds := map[string][]mutation{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		d := drawer{files: token.NewFileSet(), text: string(text), file: dir + "/" + filepath.Base(name), kinds: kinds}
		tree, err := parser.ParseFile(d.files, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range tree.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
				d.function = f.Name.Name
				ast.Inspect(f.Body, d.look)
			}
		}
	}
	lot := rand.New(rand.NewPCG(seed, 0))
	var all []mutation
	for len(all) < n && len(kinds) > 0 {
		names := slices.Sorted(maps.Keys(kinds))
		kind := names[lot.IntN(len(names))]
		at := lot.IntN(len(kinds[kind]))
		all = append(all, kinds[kind][at])
		if kinds[kind] = slices.Delete(kinds[kind], at, at+1); len(kinds[kind]) == 0 {
			delete(kinds, kind)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("-draw %s: the folder has no Go code for mistakes", dir)
	}
	return all, nil
}

// drawer collects the mistakes of a file.
type drawer struct {
	files    *token.FileSet
	text     string
	file     string // below the module
	function string
	kinds    map[string][]mutation
}

// source is the text of a node.
func (d *drawer) source(n ast.Node) string {
	return d.text[d.files.Position(n.Pos()).Offset:d.files.Position(n.End()).Offset]
}

// add adds a mistake: text in place of a node.
func (d *drawer) add(kind string, n ast.Node, text string) {
	from := d.files.Position(n.Pos())
	line := strings.Join(strings.Fields(d.source(n)), " ")
	d.kinds[kind] = append(d.kinds[kind], mutation{
		name: fmt.Sprintf("line %d, %s: %q -> %q", from.Line, d.function, line, text),
		file: d.file, at: "draw", tests: []string{"./" + filepath.ToSlash(filepath.Dir(d.file))},
		splice: &splice{from.Offset, d.files.Position(n.End()).Offset, text},
	})
}

// splice is a mistake at offsets of a file.
type splice struct {
	from, to int
	text     string
}

// Slips are the operators and words with their neighbours.
var (
	bounds = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}
	equals = map[token.Token]string{token.EQL: "!=", token.NEQ: "=="}
	sums   = map[token.Token]string{token.ADD: "-", token.SUB: "+"}
	words  = map[string]string{"max": "min", "min": "max"}
	truths = map[string]string{"true": "false", "false": "true"}
)

// look adds the mistakes of a node.
func (d *drawer) look(n ast.Node) bool {
	switch s := n.(type) {
	case *ast.IfStmt:
		if cond := d.source(s.Cond); cond != "err != nil" {
			d.add("negated", s.Cond, "!("+cond+")")
			d.add("never", s.Cond, "("+cond+") && false")
		}
	case *ast.BinaryExpr:
		d.lookAtOperator(s)
	case *ast.ExprStmt:
		if call, ok := s.X.(*ast.CallExpr); ok && !isLog(call) {
			d.add("call left out", s, "")
		}
	case *ast.AssignStmt:
		if _, ok := s.Lhs[0].(*ast.SelectorExpr); ok && s.Tok == token.ASSIGN && len(s.Lhs) == 1 {
			d.add("assignment left out", s, "_ = "+d.source(s.Rhs[0]))
		}
	case *ast.CallExpr:
		d.lookAtCall(s)
	case *ast.BranchStmt:
		if s.Tok == token.CONTINUE && s.Label == nil {
			d.add("branch", s, "break")
		}
	case *ast.ReturnStmt:
		if len(s.Results) == 1 && truths[d.source(s.Results[0])] != "" {
			d.add("result", s, "return "+truths[d.source(s.Results[0])])
		}
	}
	return true
}

func (d *drawer) lookAtOperator(s *ast.BinaryExpr) {
	x, y := d.source(s.X), d.source(s.Y)
	for kind, to := range map[string]string{"bound": bounds[s.Op], "equal": equals[s.Op], "sum": sums[s.Op]} {
		if to != "" && !(kind == "sum" && strings.Contains(x+y, `"`)) {
			d.add(kind, s, x+" "+to+" "+y)
		}
	}
	if s.Op == token.LAND || s.Op == token.LOR {
		d.add("condition left out", s, x)
		d.add("condition left out", s, y)
	}
}

func (d *drawer) lookAtCall(s *ast.CallExpr) {
	if name, ok := s.Fun.(*ast.Ident); ok && words[name.Name] != "" && len(s.Args) == 2 {
		d.add("least and most", s, words[name.Name]+d.source(s)[3:])
	}
	if len(s.Args) != 2 {
		return
	}
	a, isName := s.Args[0].(*ast.Ident)
	b, areNames := s.Args[1].(*ast.Ident)
	if isName && areNames && a.Name != "nil" && b.Name != "nil" {
		d.add("swapped", s, d.source(s.Fun)+"("+b.Name+", "+a.Name+")")
	}
}

// isLog reports a call for people alone.
func isLog(c *ast.CallExpr) bool {
	f, ok := c.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Debug", "Info", "Warn", "Error", "Printf", "Count", "Measure", "Helper"}, f.Sel.Name)
}
