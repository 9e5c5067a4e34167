package kept

import (
	"errors"
	"fmt"
	"go/ast"
	"strings"
)

// record is one paragraph of testdata/replaced.txt: names of commit 3eb49563
// that are gone, and the names that took their place.
type record struct {
	tests   []Name   // test: agent TestOld
	mutants []string // mutant: the planted mistake

	byTests   []Name   // by: agent/run TestNew
	byMutants []string // by mutant: another planted mistake
	// deleted are declarations that were tested and exist no more, the only other
	// reason for which a test may go: "deleted: coordinator/lead Leader.admit".
	deleted []Name

	why string
	at  string // for messages
}

// readRecords reads paragraphs of "key: value" lines. Lines that begin with '#'
// are comments.
func readRecords(text string) ([]record, error) {
	var all []record
	var errs []error
	var r *record
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		if line == "" {
			r = nil
			continue
		}
		if r == nil {
			all = append(all, record{at: fmt.Sprintf("replaced.txt:%d", i+1)})
			r = &all[len(all)-1]
		}
		if err := r.take(line); err != nil {
			errs = append(errs, fmt.Errorf("replaced.txt:%d: %w", i+1, err))
		}
	}
	for _, r := range all {
		switch {
		case len(r.tests)+len(r.mutants) == 0:
			errs = append(errs, fmt.Errorf("%s: the record names neither test: nor mutant:", r.at))
		case len(r.byTests)+len(r.byMutants)+len(r.deleted) == 0:
			errs = append(errs, fmt.Errorf("%s: the record names no replacement: by:, by mutant: or deleted:", r.at))
		case r.why == "":
			errs = append(errs, fmt.Errorf("%s: the record has no why:", r.at))
		}
	}
	return all, errors.Join(errs...)
}

func (r *record) take(line string) error {
	key, value, _ := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	name := func(into *[]Name) error {
		pkg, test, ok := strings.Cut(value, " ")
		if !ok {
			return fmt.Errorf("%q has to be a folder, a space and a name", value)
		}
		*into = append(*into, Name{pkg, test})
		return nil
	}
	switch key {
	case "test":
		return name(&r.tests)
	case "mutant":
		r.mutants = append(r.mutants, value)
	case "by":
		return name(&r.byTests)
	case "by mutant":
		r.byMutants = append(r.byMutants, value)
	case "deleted":
		return name(&r.deleted)
	case "why":
		r.why = value
	default:
		return fmt.Errorf("%q is no field of a record", line)
	}
	return nil
}

// declarations returns the functions, methods (as Type.Method), types, constants
// and variables of the folders that the records call deleted.
func declarations(root string, records []record) (map[Name]bool, error) {
	folders := map[string]bool{}
	for _, r := range records {
		for _, n := range r.deleted {
			folders[n.Package] = true
		}
	}
	found := map[Name]bool{}
	if len(folders) == 0 {
		return found, nil
	}
	err := eachFile(root, func(pkg, name string) error {
		if !folders[pkg] || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parse(name)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			for _, declared := range declared(d) {
				found[Name{pkg, declared}] = true
			}
		}
		return nil
	})
	return found, err
}

// declared returns the names of one declaration.
func declared(d ast.Decl) []string {
	var names []string
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		return []string{receiver(d.Recv.List[0].Type) + "." + d.Name.Name}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}

// receiver returns the name of a method's type, without star and parameters.
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
