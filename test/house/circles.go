package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/test/house/calls"
)

// circlesOfCalls counts the functions of each circle of calls, under the name of the
// room with the most functions. Closures count with the function around them.
func (c *code) circlesOfCalls() []figure {
	var out []figure
	for _, circle := range c.graph.Circles() {
		writers, rooms := map[*calls.Func]bool{}, map[string]int{}
		for _, f := range circle {
			if !writers[f.Writer] {
				writers[f.Writer] = true
				rooms[room(f.Folder)]++
			}
		}
		if len(writers) > 1 {
			of, note := most(rooms)
			out = append(out, figure{kind: "circle", of: of, value: len(writers), note: note})
		}
	}
	slices.SortFunc(out, byValue)
	seen := map[string]int{}
	for i := range out {
		if seen[out[i].of]++; seen[out[i].of] > 1 { // the smaller ones of a room have a number
			out[i].of = fmt.Sprintf("%s %d", out[i].of, seen[out[i].of])
		}
	}
	return out
}

// most is the key with the greatest count, and all counts as a text.
func most(counts map[string]int) (of, text string) {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, k := range keys {
		parts = append(parts, fmt.Sprintf("%s %d", k, counts[k]))
	}
	return keys[0], strings.Join(parts, ", ")
}
