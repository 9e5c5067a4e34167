package main

import (
	"cmp"
	"fmt"
	"slices"
)

// figure is a measured number of a thing.
type figure struct {
	kind  string // of kinds
	of    string
	value int
	words int    // of a kind with a rate: the words of the comments
	tests bool   // of tests or of test/, where words count
	note  string // for the reader of a failure
}

// kind is a way to measure a module.
type kind struct {
	name    string
	counts  string // of a figure, as "lines"
	advice  string // how a figure falls
	moves   bool   // a sum: a part of a figure may move to another
	isRate  bool   // the limit is per perWords words
	measure func(*code) []figure
}

// kinds are the figures with a limit, in the order of the list.
var kinds = append([]kind{
	{name: "package", counts: "lines", advice: "move a part of the package into a package of its own", measure: (*code).linesOfPackages},
	{name: "file", counts: "lines", advice: "split the file by its ideas", measure: (*code).linesOfFiles},
	{name: "type", counts: "methods", advice: "move a part of the type's state, and the methods and functions that write it, to a type of its own", measure: (*code).methodsPerType},
	{name: "circle", counts: "functions", advice: "let the lower functions return what happened, instead of calling the upper ones", measure: (*code).circlesOfCalls},
	{name: "steps", counts: "functions", advice: "change the phase in the step methods of the struct alone", measure: (*code).stepsPerPhase},
	{name: "setters", counts: "setters", moves: true, advice: "write a method for the thing that happened, which changes all that changes with it", measure: (*code).settersPerPackage},
	{name: "assigned", counts: "assignments from other packages", moves: true, advice: "change the struct by a method of its own package", measure: (*code).assignedOutside},
	{name: "reach", counts: "percent of the functions of the room that change a field", advice: "let fewer functions change the state: return what happened to the owner", measure: (*code).reachOfWrites},
	{name: "edits", counts: "files to open", advice: "let the files range over a table of such fields or kinds", measure: (*code).filesToOpen},
}, kindsOfWords()...)

func kindsOfWords() []kind {
	var all []kind
	for _, name := range []string{"what", "that", "it", "one", "nobody", "told"} {
		measure := func(c *code) []figure {
			return slices.DeleteFunc(c.wordsOfComments(), func(f figure) bool { return f.kind != name })
		}
		all = append(all, kind{name: name, counts: "uses", moves: true, isRate: true, advice: "name the subject, the object or the time instead", measure: measure})
	}
	return all
}

// subject names the thing of a figure in a sentence.
func (f figure) subject() string {
	if kindOf(f.kind).isRate {
		return fmt.Sprintf("%q and its like in the comments of %s", f.kind, f.of)
	}
	return f.kind + " " + f.of
}

// kindOf is the kind with a name, or nil.
func kindOf(name string) *kind {
	if i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name }); i >= 0 {
		return &kinds[i]
	}
	return nil
}

// byValue orders figures by value, descending, then by name.
func byValue(a, b figure) int {
	return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.of, b.of))
}
