package main

import (
	"fmt"
	"go/types"
	"slices"

	"github.com/musterd/muster/test/house/calls"
)

// stateStructs are the structs with the state of the coordinator and of the agent,
// by folder.
var stateStructs = map[string][]string{
	"agent":               {"owner"},
	"agent/ledger":        {"Ledger"},
	"coordinator/cluster": {"State"},
	"coordinator/follow":  {"Follower"},
	"coordinator/lead":    {"Leader", "view", "unit", "attempt", "job", "node"},
	"coordinator/objects": {"Cache"},
	"coordinator/quota":   {"Manager", "tree"},
	"coordinator/sched":   {"Room"},
	"coordinator/txn":     {"Machine"},
	"fit":                 {"Host"},
}

// reachOfWrites measures, for each state struct, how many functions of the struct's
// room reach a write of a field: the mean over the fields, in percent of the room's
// functions. A function reaches the writes in its own body and in all functions
// behind its calls.
func (c *code) reachOfWrites() []figure {
	callers := c.graph.Callers()
	functions := map[string]int{}
	for _, f := range c.graph.Funcs {
		if f.Object != nil {
			functions[room(f.Folder)]++
		}
	}
	writers := map[*types.Var][]*calls.Func{}
	for _, w := range c.writes {
		writers[w.field] = append(writers[w.field], c.graph.Of(w.by))
	}
	var out []figure
	for _, p := range c.checked {
		for _, name := range stateStructs[p.Folder] {
			f := figure{kind: "reach", of: p.Folder + "." + name}
			object := p.Types.Scope().Lookup(name)
			if object == nil {
				f.note = "the struct is gone: name its successor in test/house/reach.go"
				out = append(out, f)
				continue
			}
			fields := object.Type().Underlying().(*types.Struct)
			reached := 0
			for i := range fields.NumFields() {
				reached += countBehind(callers, writers[fields.Field(i)], room(p.Folder))
			}
			if fields.NumFields() == 0 || functions[room(p.Folder)] == 0 {
				continue
			}
			f.value = ceil(reached*100, fields.NumFields()*functions[room(p.Folder)])
			f.note = fmt.Sprintf("%d of %d functions a field, %d fields", ceil(reached, fields.NumFields()), functions[room(p.Folder)], fields.NumFields())
			out = append(out, f)
		}
	}
	return out
}

func ceil(a, b int) int { return (a + b - 1) / b }

// countBehind counts the declared functions of a room that are these functions or
// reach them.
func countBehind(callers [][]*calls.Func, of []*calls.Func, inRoom string) int {
	seen, n := make([]bool, len(callers)), 0
	of = slices.Clone(of)
	for len(of) > 0 {
		f := of[len(of)-1]
		of = of[:len(of)-1]
		if seen[f.Index] {
			continue
		}
		seen[f.Index] = true
		if f.Object != nil && room(f.Folder) == inRoom {
			n++
		}
		of = append(of, callers[f.Index]...)
	}
	return n
}
