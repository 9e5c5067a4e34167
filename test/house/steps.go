package main

import (
	"go/types"
	"regexp"

	"github.com/musterd/muster/test/house/calls"
)

// phaseName matches the names of phases: of fields, or of their types.
var phaseName = regexp.MustCompile(`(?i)(phase|stage|state)$`)

// stepsPerPhase counts the functions that write the phase of each struct. A phase is
// a field with a name of phases, or with a type of such a name; the type is an
// integer or string type of the module.
func (c *code) stepsPerPhase() []figure {
	by := map[*types.Var]map[*types.Func]bool{}
	of := map[*types.Var]*types.Named{}
	for _, w := range c.writes {
		if w.field == nil || !c.isPhase(w.field) {
			continue
		}
		if by[w.field] == nil {
			by[w.field], of[w.field] = map[*types.Func]bool{}, w.of
		}
		by[w.field][w.by] = true
	}
	var out []figure
	for field, functions := range by {
		out = append(out, figure{kind: "steps", of: c.nameOf(of[field]) + "." + field.Name(), value: len(functions)})
	}
	return out
}

func (c *code) isPhase(field *types.Var) bool {
	named := calls.Named(field.Type())
	if named == nil || named.Obj().Pkg() == nil {
		return false
	}
	if _, own := c.tree.Local(named.Obj().Pkg().Path()); !own {
		return false
	}
	_, basic := named.Underlying().(*types.Basic)
	return basic && (phaseName.MatchString(field.Name()) || phaseName.MatchString(named.Obj().Name()))
}
