package docs_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestTheStoresPageHasEachKey: docs/store.md has a heading for each prefix and each key that
// package record declares as a constant.
func TestTheStoresPageHasEachKey(t *testing.T) {
	x := names(t)
	keys := constantsOf(t, "coordinator/record", "/registry/")
	if len(keys) < 20 || keys["TxPrefix"] != "/registry/tx/" {
		t.Fatalf("package record has the keys %v, want 20 and more, TxPrefix among them", keys)
	}
	for name, key := range keys {
		below := strings.TrimPrefix(key, "/registry/")
		if !slices.ContainsFunc(x.storeKeys, func(form string) bool {
			return strings.HasPrefix(form, below) || strings.HasSuffix(form, "…") && strings.HasPrefix(below, strings.TrimSuffix(form, "…"))
		}) {
			t.Errorf("docs/store.md has no heading for %s (record.%s): add \"## `%s<…>`\", who writes the key, and when it goes", below, name, below)
		}
	}
}

// constantsOf are the constants of a package that are texts with a beginning, made of
// literals and of each other.
func constantsOf(t *testing.T, folder, beginning string) map[string]string {
	t.Helper()
	exprs := map[string]ast.Expr{}
	for _, file := range sources(t, folder) {
		for _, d := range file.Syntax.Decls {
			g, is := d.(*ast.GenDecl)
			if !is || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				if v := spec.(*ast.ValueSpec); len(v.Values) == len(v.Names) {
					for i, n := range v.Names {
						exprs[n.Name] = v.Values[i]
					}
				}
			}
		}
	}
	var value func(e ast.Expr) string
	value = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			text, _ := strconv.Unquote(e.Value)
			return text
		case *ast.Ident:
			return value(exprs[e.Name])
		case *ast.BinaryExpr:
			return value(e.X) + value(e.Y)
		}
		return ""
	}
	all := map[string]string{}
	for name, e := range exprs {
		if text := value(e); strings.HasPrefix(text, beginning) {
			all[name] = text
		}
	}
	return all
}
